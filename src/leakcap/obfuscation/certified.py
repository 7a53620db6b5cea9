"""The one place where the encoder asks for certified noise: the least that keeps a cap on the success about one row."""

from __future__ import annotations

from typing import Any

from leakcap.errors import MissingExtra
from leakcap.ground.arrays import Floats, Ints
from leakcap.obfuscation.design import MixingDesign

__all__ = ["least_noise"]


def least_noise(pool: Floats, labels: Ints, design: MixingDesign, *, cap: Any, confidence: float, **more: Any) -> Any:
    """The least noise that keeps a cap, with its figures: `noise`, `success`, `mean_success`, `true_positives`."""
    try:
        from leakcap.obfuscation.sampled import least_noise as found  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        found = None
    if found is None:
        raise MissingExtra("this version finds no noise for a cap: give noise= instead, of which nothing is claimed")
    return found(pool, labels, design, cap=cap, confidence=confidence, **more)
