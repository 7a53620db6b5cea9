"""Cases of a test that say the same as others: some run always, the rest with the slow tests (`make test-all`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

__all__ = ["others_later"]


def others_later(cases: Iterable[Any], *always: Any) -> list[Any]:
    """What a test is parametrised with: the hardest cases and an easy one, named here, and all others marked slow."""
    known = list(cases)
    assert always and all(one in known for one in always), "a case that always runs is one of the cases"
    return [case if case in always else pytest.param(case, marks=pytest.mark.slow) for case in known]
