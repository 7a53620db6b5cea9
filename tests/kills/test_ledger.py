"""A session that is killed at any step: no answer is uncharged or changed, and the same request goes on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.kills.asking import STEPS, ask, asker, check, dying_at, session, told_in

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path, own_key: Path) -> str:
    return f"sqlite:///{tmp_path}/ledger.db" if request.param == "sqlite" else request.getfixturevalue("database")


@pytest.mark.parametrize(("when", "step"), STEPS)
def test_killed_at_a_step(when: str, step: str, place: str, tmp_path: Path) -> None:
    told = tmp_path / "told"
    own = session(place)
    first = float(ask(own, 0))
    asker(place, told, 1, dying_at(when, step)).died()
    stored = (when, step) in [("after", "COMMIT"), *(one for one in STEPS if one[1] == "head")]
    assert not told_in(told), "nothing is handed out before all is done"
    assert check(place, {0: {repr(first)}}) == 1 + stored
    again = ask(own, 1)
    assert again.again == stored, "what was stored is what is given"
    assert float(ask(session(place), 1)) == float(again)
    assert check(place, {0: {repr(first)}, 1: {repr(float(again))}}) == 2


@pytest.mark.parametrize("kills", [25, pytest.param(500, marks=pytest.mark.slow)])
def test_killed_at_random(kills: int, place: str, tmp_path: Path) -> None:
    assert random_kills(place, tmp_path / "told", kills) >= kills // 4, "too few answers among the kills"


def random_kills(place: str, log: Path, kills: int) -> int:
    """Kill askers at random moments; how many answers there are at the end."""
    rng, answers = np.random.default_rng(7), 0
    session(place)
    for kill in range(kills):
        told = told_in(log)
        # The last answer is asked for again: it must be the same.
        asker(place, log, max(told, default=0)).killed(int(rng.integers(4)), float(rng.uniform(0, 0.01)))
        if kill % 10 == 9 or kill == kills - 1:
            answers = check(place, told_in(log))
    return answers


def test_the_checks_see_a_changed_a_second_and_a_lost_answer(tmp_path: Path, own_key: Path) -> None:
    """The planted twin."""
    place = f"sqlite:///{tmp_path}/ledger.db"
    value = repr(float(ask(session(place), 0)))
    assert check(place, {0: {value}}) == 1
    for told in ({0: {"0.5"}}, {0: {value, "0.5"}}, {0: {value}, 1: {"0.5"}}):
        with pytest.raises((AssertionError, IndexError)):
            check(place, told)
