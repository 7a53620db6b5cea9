"""The published attacks on a PAC database, in SQL: under a pool cap they stay below it, and bounds are what does it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.sessions.brought import Within
from leakcap.sessions.brought_cells import BroughtByCell
from leakcap.sql import asking
from tests.leaks.sql_attacks import BOUNDED, REFUSED, UNBOUNDED, Played, Success, attacked

CAP, FEW_TRIALS, TRIALS = 0.55, 12, 36
POOL = {"cap": lc.pool_membership(CAP)}


def played(declared: dict[str, Any], question: str, trials: int, **how: Any) -> Success:
    with Played.of(declared, **how) as known:
        return attacked(*known.seen(question, trials))


@pytest.mark.parametrize("question", ["filter, count", "outlier, sum"])
def test_under_a_pool_cap_with_bounds_the_attacks_stay_below_the_cap(question: str) -> None:
    assert played(BOUNDED, question, TRIALS, **POOL).lower < CAP


def test_noise_for_a_twentieth_of_what_somebody_may_bring_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault, in the noise and in the charge: with noise alone the person would be left out in silence."""
    limits, charges = asking.limits_of, BroughtByCell.charges

    def small(made: Any, rows: Any) -> Within:
        extent = limits(made, rows).extent
        return Within(replace(extent, limits=extent.limits / 20))

    monkeypatch.setattr(asking, "limits_of", small)
    assert played(BOUNDED, "filter, count", TRIALS, **POOL).lower < CAP
    monkeypatch.setattr(BroughtByCell, "charges", lambda *given: charges(*given) // 400)
    assert played(BOUNDED, "filter, count", TRIALS, **POOL).lower > CAP


def test_under_a_pool_cap_without_bounds_nothing_is_answered_either_way() -> None:
    with Played.of(UNBOUNDED, **POOL) as known:
        for one in known.seen("outlier, count", 2):
            np.testing.assert_array_equal(one, np.tile(REFUSED, (2, 1)))


@pytest.mark.parametrize("how", [{"cap": 0.6}, {"cap": 0.6, "design": "worlds", "worlds": 8}], ids=["bits", "worlds"])
def test_a_cap_on_the_first_game_alone_does_not_stop_them_without_bounds(how: dict[str, Any]) -> None:
    """Noise that is made of the pool tells by itself who is in it: that game is not promised."""
    assert played(UNBOUNDED, "outlier, count", FEW_TRIALS, **how).share == 1
