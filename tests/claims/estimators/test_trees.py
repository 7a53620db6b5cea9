"""Trees learnt in rounds: what all rounds together tell of one person, by code of this file's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import leakcap as lc
from leakcap import estimators as le
from leakcap.caps import PoolMembership
from leakcap.estimators import own_session
from leakcap.estimators.base import planned
from leakcap.estimators.rounds import RoundRows
from leakcap.sessions.clock import Clock

CAP, PEOPLE = 0.6, 12
RNG = np.random.default_rng(5)
X = RNG.uniform(0, 1, size=(PEOPLE, 2))
Y = (X[:, 0] > 0.5).astype(int)
Y[3] = 1 - Y[3]  # somebody whose residuals are the largest
DECLARED: dict[str, Any] = {"options": {"bounds": (0, 1), "rows_per_unit": 1}, "classes": [0, 1]}
MAKE: dict[str, Any] = {
    "boosting": lambda **given: le.HistGradientBoostingClassifier(3, n_trees=2, max_depth=1, **given),
    "tree": lambda **given: le.DecisionTreeClassifier(2, n_thresholds=3, **given),
}


class Transcript:
    """All that was asked in a fit: what everybody brought, what was answered, how large the noise was."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[tuple[Any, Any, float]] = []
        plain = RoundRows.asked

        def listening(rows: RoundRows, inside: Any, values: Any, *, most: float, **how: Any) -> Any:
            short = values * np.minimum(1, most / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-300))
            found, deviation = plain(rows, inside, values, most=most, **how)
            self.asked.append((np.einsum("ni,nj->nij", inside, short), found, deviation))
            return found, deviation

        monkeypatch.setattr(RoundRows, "asked", listening)

    def squares(self, factor: float) -> Any:
        """Of how far everybody's coin moves the answers, in deviations, over all rounds."""
        return sum(((factor * each / deviation) ** 2).sum(axis=(1, 2)) for each, _, deviation in self.asked)


@pytest.mark.parametrize("name", MAKE)
@pytest.mark.parametrize("cap", [lc.membership(CAP), lc.pool_membership(CAP)], ids=["coins", "pool"])
def test_all_rounds_together_keep_the_cap(name: str, cap: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever knows everybody else tells two normal laws apart in each round, whose squared distances add up."""
    factor = 1.0 if isinstance(cap, PoolMembership) else 2.0
    worst = 0.0
    for seed in range(20):
        transcript = Transcript(monkeypatch)
        MAKE[name](cap=cap, random_state=seed, **DECLARED).fit(X, Y)
        worst = max(worst, float(norm.cdf(np.sqrt(transcript.squares(factor).max()) / 2)))
        monkeypatch.undo()
    assert worst <= CAP + 1e-9
    assert worst >= CAP - 0.03, "less than half of the noise would do"


@pytest.mark.parametrize("name", MAKE)
def test_the_best_attacker_wins_no_more_often_than_the_cap(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever knows all other coins and sees all answers, by likelihood: 120 games about each of 12 people."""
    wins, exposed = np.zeros(PEOPLE), np.zeros(PEOPLE)
    games = 120
    sessions: list[Any] = []

    class Watched(lc.Session):
        def __init__(self, *data: Any, **how: Any) -> None:
            super().__init__(*data, **how)
            sessions.append(self)

    for seed in range(games):
        transcript = Transcript(monkeypatch)
        monkeypatch.setattr(own_session, "Session", Watched)
        MAKE[name](cap=lc.membership(CAP), random_state=seed, **DECLARED).fit(X, Y)
        coins = sessions.pop()._desk.coins
        ratio = np.zeros(PEOPLE)
        for each, answer, deviation in transcript.asked:
            total = np.tensordot(2.0 * coins, each, axes=1)
            for person in range(PEOPLE):
                step = 2 * each[person]
                apart = answer - (total - coins[person] * step) - step / 2
                ratio[person] += (step * apart).sum() / deviation**2
        wins += (ratio > 0) == coins
        exposed = np.maximum(exposed, transcript.squares(2.0))
        monkeypatch.undo()
    error = np.sqrt(0.25 / games)
    assert (wins / games <= CAP + 4.5 * error).all()
    # All together: 1,440 games, of which each person's are independent of those of other seeds.
    assert wins.mean() / games >= 0.5 + 0.4 * (norm.cdf(np.sqrt(exposed.mean()) / 2) - 0.5), "the attacker learns"


def test_half_of_the_noise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: a clock that is read as four times as long."""
    monkeypatch.setattr("leakcap.sessions.session.Clock.of", _longer(Clock.of))
    transcript = Transcript(monkeypatch)
    MAKE["boosting"](cap=lc.membership(CAP), random_state=1, **DECLARED).fit(X, Y)
    assert norm.cdf(np.sqrt(transcript.squares(2.0).max()) / 2) > CAP + 0.03


def _longer(plain: Any) -> Any:
    def of(caps: Any) -> Clock:
        made = plain(caps)
        return Clock(4 * made.square, made.distance)

    return of


def test_a_forest_with_coins_moves_by_what_the_certificate_says() -> None:
    """Values of leaves are linear in what the coins add up: how far one person moves them, in units of the noise."""
    rows = RNG.normal(size=(40, 3))
    kinds = (rows[:, 0] + 0.5 * RNG.normal(size=40) > 0).astype(int)
    forest = le.RandomForestClassifier(
        6, max_depth=2, cap=lc.membership(CAP), options={"design": "bits"}, random_state=2, n_directions=4
    )
    plan, _ = planned(forest, rows, kinds, cap=forest.cap)
    moved = 2 * (plan.run.brings.values - plan.run.brings.values.mean(axis=0))
    inverse = np.linalg.pinv(plan.noise.covariance(), rcond=1e-9, hermitian=True)
    success = norm.cdf(np.sqrt(np.einsum("ud,de,ue->u", moved, inverse, moved)) / 2)
    assert success.max() <= CAP + 1e-6
    assert success == pytest.approx(plan.exposure, abs=1e-5)
    assert plan.certificate.membership_success <= CAP
