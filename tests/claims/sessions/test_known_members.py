"""Attackers who know any number of members, against real sessions: every setting of all coins is gone through.

Shares no code with clocks and charges: what an attacker knows is added up over all 256 settings of eight coins.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import leakcap as lc
from leakcap.sessions import desk
from leakcap.sessions.clock import Clock
from leakcap.sessions.linear import with_noise

PEOPLE, CAP, SESSIONS, FAULT = 8, 0.6, 180, 1.3
IDS = np.arange(PEOPLE, dtype=float)[:, None]
COINS = (np.arange(2**PEOPLE)[:, None] // 2 ** np.arange(PEOPLE)[::-1]) % 2  # (settings, people)


class Asked:
    """A session of eight people, and how far every coin moves each answer, in deviations of its noise."""

    def __init__(self, seed: int) -> None:
        self.session = lc.Session(IDS, cap=CAP, seed=seed)
        self.moves: list[Any] = []
        self.seen: list[float] = []

    def ask(self, weights: Any, share: float) -> None:
        """A weighted sum over people that takes so much of the clock of whoever has the largest weight."""
        given = np.asarray(weights, dtype=float) / np.abs(weights).max()
        answer = self.session.linear(lambda rows: given[int(rows[0, 0])], bounds=(-1, 1), share=share)
        assert not answer.again
        self.moves.append(2 * given / answer.noise[0])
        self.seen.append(answer.value / answer.noise[0])


def chain(joint: Any, person: int, order: Any) -> Any:
    """Success against a person, `(games, known)`, by how many others are known: those first in order first.

    `joint` has an axis for games, one for what was seen, and one of length 2 for every coin: probabilities.
    """
    table, names, found = joint, list(range(PEOPLE)), []
    for dropped in [None, *reversed(order)]:
        if dropped is not None:
            table = table.sum(axis=2 + names.index(dropped))
            names.remove(dropped)
        found.append(table.max(axis=2 + names.index(person)).reshape(len(table), -1).sum(axis=1))
    return np.array(found[::-1]).T


def chains(joint: Any) -> Any:
    """`(games, people, known)`: success against everybody, each with an own order in which others are known."""
    rng = np.random.default_rng(5)
    shaped = joint.reshape(*joint.shape[:2], *[2] * PEOPLE)
    orders = [rng.permutation(np.delete(np.arange(PEOPLE), person)).tolist() for person in range(PEOPLE)]
    return np.stack([chain(shaped, person, order) for person, order in enumerate(orders)], axis=1)


def integrated(moves: Any, step: float = 0.9) -> Any:
    """Over all answers to three questions that are fixed before: a grid of what can be seen, and all coins."""
    means = COINS @ np.asarray(moves).T
    axes = []
    for mean in means.T:
        grid = np.arange(mean.min() - 5, mean.max() + 5 + step, step)
        axes.append(step * norm.pdf(grid[:, None] - mean))
    joint = np.einsum("is,js,ks->ijks", *axes, optimize=True) / 2**PEOPLE
    assert abs(joint.sum() - 1) < 1e-5
    return chains(joint.reshape(1, -1, 2**PEOPLE))[0]


def fixed_questions(share: float) -> Any:
    """Three answers of a real session, which together take so much of somebody's clock."""
    play, rng = Asked(1), np.random.default_rng(2)
    for part in (0.5, 0.2, 0.3):
        weights = rng.uniform(-1, 1, size=PEOPLE)
        weights[3] = 1.0  # whose clock is used up
        play.ask(weights, part * share)
    return integrated(play.moves)


def test_no_number_of_known_members_beats_the_cap_over_all_coins() -> None:
    found = fixed_questions(1.0)
    assert found.max() <= CAP + 1e-4  # the grid's
    assert found[3, -1] > CAP - 1e-3  # whoever used up the clock, with all others known
    assert (np.diff(found, axis=1) > -1e-9).all()  # to know more never harms
    assert (found[:, 0] < found[:, -1]).all()


def test_charges_for_more_noise_than_there_is_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    share = Clock.share
    monkeypatch.setattr(Clock, "share", lambda clock, part: share(clock, part) * FAULT**2)
    charged = Clock.ticks
    monkeypatch.setattr(Clock, "ticks", lambda clock, squares: charged(clock, squares / FAULT**2))
    assert fixed_questions(1.0)[3, -1] > CAP + 0.02


def transcripts(finer: float = 1.0) -> tuple[Any, Any]:
    """Means over real sessions of how sure attackers are, `(people, known)`, and standard errors.

    The second and third question follow from what the answers told so far. `finer` is by how much smaller than declared
    attackers know the noise to be.
    """
    posteriors = []
    for seed in range(SESSIONS):
        play, logs = Asked(seed), np.zeros(2**PEOPLE)
        weights = np.random.default_rng(seed).choice([-1.0, 1.0], size=PEOPLE)
        for part in (0.4, 0.32, 0.28):
            play.ask(weights, part)
            logs -= (finer * (play.seen[-1] - COINS @ play.moves[-1])) ** 2 / 2
            odds = np.exp(logs - logs.max()) @ (2 * COINS - 1)
            far = np.abs(odds) > np.median(np.abs(odds))
            # The likelier side of everybody first; then who is known best against who is known least.
            weights = np.where(odds > 0, 1.0, -1.0) if len(play.seen) == 1 else np.where(far, 1.0, -1.0)
        posterior = np.exp(logs - logs.max())
        posteriors.append(posterior / posterior.sum())
    found = chains(np.array(posteriors)[:, None])
    return found.mean(axis=0), found.std(axis=0) / np.sqrt(SESSIONS)


def test_attackers_of_adaptive_sessions_never_beat_the_cap_on_what_was_drawn() -> None:
    """Four standard errors, and the seeds are fixed."""
    mean, error = transcripts()
    assert (mean <= CAP + 4 * error).all()
    assert mean[:, -1].mean() > CAP - 0.01  # clocks are used up


def test_noise_that_is_drawn_too_small_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    class Small:
        def __init__(self, randomness: Any) -> None:
            self.randomness = randomness

        def normals(self, count: int) -> Any:
            return self.randomness.normals(count) / FAULT

    def faulty(total: Any, grains: Any, deviations: Any, randomness: Any) -> Any:
        return with_noise(total, grains, deviations, Small(randomness))

    monkeypatch.setattr(desk, "with_noise", faulty)
    mean, error = transcripts(FAULT)
    assert (mean[:, -1] > CAP + 4 * error[:, -1]).mean() > 0.5
