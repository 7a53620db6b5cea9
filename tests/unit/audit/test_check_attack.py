"""An attack of one's own is checked: a sound one passes, and each kind of slip is named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from leakcap.audit.trials import Known, Trials
from leakcap.errors import InputError
from leakcap.testing import check_attack


def correlation(known: Known, learn: Trials) -> Any:
    """A plain one: how each number goes with each membership."""
    centre, spread = learn.seen.mean(axis=0), learn.seen.std(axis=0)
    weights = ((learn.seen - centre) / spread).T @ (learn.inside() - 0.5)
    return lambda seen: ((seen - centre) / spread) @ weights


def test_a_sound_attack_passes() -> None:
    check_attack(correlation)


def one_column(known: Known, learn: Trials) -> Any:
    return lambda seen: correlation(known, learn)(seen)[:, :1]


def infinite(known: Known, learn: Trials) -> Any:
    return lambda seen: np.log(np.zeros((len(seen), known.units)))


def restless(known: Known, learn: Trials) -> Any:
    return lambda seen: correlation(known, learn)(seen) + np.random.default_rng().normal(size=(len(seen), known.units))


def careless(known: Known, learn: Trials) -> Any:
    def score(seen: Any) -> Any:
        found = correlation(known, learn)(seen)
        seen[:] = 0
        return found

    return score


def upside_down(known: Known, learn: Trials) -> Any:
    return lambda seen: -correlation(known, learn)(seen)


def blind(known: Known, learn: Trials) -> Any:
    return lambda seen: np.ones((len(seen), known.units))


@pytest.mark.parametrize(
    ("attack", "says"),
    [
        (one_column, "each of"),
        (infinite, "finite"),
        (restless, "same scores"),
        (careless, "must not change|same scores"),
        (upside_down, "larger scores"),
        (blind, "finds nothing"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_a_slip_is_named(attack: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        check_attack(attack)
