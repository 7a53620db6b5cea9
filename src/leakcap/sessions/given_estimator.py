"""What is given to be fitted, as an estimator."""

from __future__ import annotations

import sys
from typing import Any

from leakcap.errors import InputError

__all__ = ["as_estimator"]


def as_estimator(given: Any) -> Any:
    """A torch module becomes an estimator; where torch was never loaded, there is none."""
    if isinstance(given, type):
        raise InputError(f"{given.__name__} is a class, without settings: give session.fit({given.__name__}(), ...)")
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(given, torch.nn.Module):
        return given
    from leakcap.sessions.networks.estimator import NeuralNetwork

    return NeuralNetwork(given)
