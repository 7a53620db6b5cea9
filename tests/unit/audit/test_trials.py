"""Parts of the releases, shares of alpha, and who is told what."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from leakcap.audit.attacks.collude import _others
from leakcap.audit.trials import Trials
from leakcap.audit.verdicts import HOLDS, INCONCLUSIVE, REFUTED, UNBOUNDED, overall
from tests.unit.audit import plans

module = import_module("leakcap.audit.run")  # the package has a function of that name


def test_parts_share_no_release() -> None:
    """What is judged was neither learnt from nor chosen by."""
    seen = np.arange(20.0)[:, None]
    trials = Trials(seen=seen, secret=np.arange(20), packed=np.zeros((20, 1), dtype=np.uint8), units=3, scores=None)
    parts = trials.split(0.3, 0.2, 0.5)
    assert [len(part) for part in parts] == [6, 4, 10]
    assert np.array_equal(np.concatenate([part.seen for part in parts]), seen)
    assert np.array_equal(np.concatenate([np.asarray(part.secret) for part in parts]), np.arange(20))


@pytest.mark.parametrize("unit", [0, 4, 9])
def test_nobody_is_told_the_one_who_is_attacked(unit: int) -> None:
    told = _others(10, unit, rows=400, told=3, rng=np.random.default_rng(unit))
    assert set(np.unique(told)) == set(range(10)) - {unit}
    assert all(len(set(row)) == 3 for row in told.tolist())


@pytest.mark.filterwarnings("ignore::leakcap.errors.LeakcapWarning")
def test_attacks_share_alpha(monkeypatch: Any) -> None:
    given = []

    def attack(bench: Any, alpha: float) -> Iterator[Any]:
        given.append(alpha)
        return iter(())

    for name in ("world", "law"):
        monkeypatch.setitem(module._NAMED, name, attack)
    module.run(plans.plan(worlds=16, draws=256), attacks=["world", "law"], trials=200, alpha=0.02)
    assert sum(given) == pytest.approx(0.02)


def test_one_refutation_refutes() -> None:
    def of(*verdicts: str) -> str:
        return overall(SimpleNamespace(verdict=verdict) for verdict in verdicts)  # type: ignore[misc]

    assert of(HOLDS, REFUTED, INCONCLUSIVE) == REFUTED
    assert of(HOLDS, INCONCLUSIVE, UNBOUNDED) == INCONCLUSIVE
    assert of(UNBOUNDED, HOLDS) == HOLDS
    assert of() == UNBOUNDED
