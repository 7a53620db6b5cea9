"""The rule for every transcript, information about the world, and what they cost in answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.errors import CapError
from leakcap.sessions.listed_worlds.cells import REACH
from leakcap.sessions.listed_worlds.engine import ListedWorlds
from leakcap.sessions.listed_worlds.rules import (
    CLOSED,
    AlwaysRule,
    BrokenRealisedRule,
    WorldInformationRule,
    budget_in_nats,
)
from tests.claims.sessions.play import CAP, View, engine_of, leaves, pool, recognised, success


def surest(engine: ListedWorlds, analyst: Any, answers: int, targets: int) -> float:
    """The largest posterior that any end of the session has about anybody, as the one for whom it was asked."""
    found = 0.5
    for target in range(targets):
        found = max(found, *(max(end) / sum(end) for end in leaves(engine, analyst, target, answers) if sum(end) > 0))
    return found


def about_the_first(view: View) -> Any:
    """Everybody watches the same questions, which are about the first person and a crowd."""
    crowd = view.masks.sum(axis=1) - view.masks[:, :2] @ [1, 1]
    return (view.masks[:, 0] + 0.3 * crowd + (view.step % 2)).astype(float), 4.0 * 1.3**view.refusals


def within_on_every_transcript(rule: Any, reach: float) -> bool:
    engine = ListedWorlds(pool(16, 6), rule, reach)
    direct = surest(engine, lambda view: (view.members.astype(float), 5.0 * 1.3**view.refusals), 3, 1)
    return max(direct, surest(engine, about_the_first, 2, 4)) <= CAP


def test_every_transcript_stays_within_the_cap_for_everybody() -> None:
    assert within_on_every_transcript(AlwaysRule(CAP), CLOSED)


def test_on_every_transcript_participants_are_recognised_no_more_often_than_the_odds_allow() -> None:
    """By all ends of a session; the figure is the certificate's. The clock alone does not keep it."""
    session = lc.Session(np.arange(6.0)[:, None], cap=CAP, design="worlds", worlds=16, seed=0, always=True)
    most = session.certificate.true_positive_rate(0.01)
    assert most == pytest.approx(0.01 * CAP / (1 - CAP))
    direct = {True: AlwaysRule(CAP), False: engine_of(pool(16, 6)).rule}
    found = {}
    for always, rule in direct.items():
        engine = ListedWorlds(pool(16, 6), rule, CLOSED)
        ends = leaves(engine, lambda view: (view.members.astype(float), 5.0 * 1.3**view.refusals), 0, 3)
        found[always] = recognised(ends, 0.01)
    assert 0.01 < found[True] <= most < found[False]


def test_planted_averages_in_its_place_are_caught() -> None:
    assert not within_on_every_transcript(BrokenRealisedRule(CAP), CLOSED)
    assert not within_on_every_transcript(engine_of(pool(16, 6)).rule, CLOSED), "the clock is an average, too"


def test_the_rule_for_every_transcript_answers_something() -> None:
    engine = ListedWorlds(pool(16, 6), AlwaysRule(CAP), CLOSED)
    assert success(leaves(engine, lambda view: (view.members.astype(float), 9.0), 0, 2)) > 0.53
    with pytest.raises(CapError, match="rate"):
        AlwaysRule(CAP, rate=0.25)


def entropy(weights: np.ndarray) -> float:
    return float(-sum(p * np.log(p) for p in weights if p > 0))


class Watching:
    """Adds up the information about the world that each answer of a session is said to have told."""

    def __init__(self, worlds: Any) -> None:
        self.rule, self.rows, self.leaning = WorldInformationRule(CAP), 1, False
        self.engine = ListedWorlds(worlds, self, REACH)
        self.amount = 0.0

    def price(self, prospect: Any, left: Any) -> Any:
        self.amount = float(self.rule.amounts(prospect)[0])
        return np.zeros_like(left)


def test_answers_tell_at_most_log_m_about_the_world() -> None:
    """Ever sharper answers: what they are said to tell adds up to what is known in the end, never above log m."""
    m, sessions = 16, 60
    watch, rng = Watching(pool(m, 6)), np.random.default_rng(0)
    said, known = np.zeros(sessions), np.zeros(sessions)
    for number in range(sessions):
        state, secret = watch.engine.begin(), int(rng.integers(m))
        for noise in (8.0, 4.0, 2.0, 1.0, 0.5, 0.2):
            priced = watch.engine.price(state, rng.permutation(m).astype(float), noise)
            assert priced is not None
            said[number] += watch.amount
            law = priced.cells.masses()[secret]
            state = watch.engine.after(state, priced, int(rng.choice(len(law), p=law / law.sum())))
        known[number] = np.log(m) - entropy(state.posterior.weights())
    off = said - known
    assert abs(off.mean()) < 4 * off.std() / np.sqrt(sessions)
    assert 0.9 * np.log(m) < known.mean() <= np.log(m)


def test_information_about_the_world_is_the_most_cautious() -> None:
    """The budget is what a fair bit may tell; one answer about everybody spends it."""
    assert budget_in_nats(0.6) == pytest.approx(0.6 * np.log(1.2) + 0.4 * np.log(0.8))
    engine = ListedWorlds(pool(64, 8), WorldInformationRule(CAP), REACH)
    answers = {
        name: len(found)
        for name, found in (
            ("world", _answers(engine)),
            ("clock", _answers(engine_of(pool(64, 8), reach=REACH))),
        )
    }
    assert 1 <= answers["world"] < answers["clock"] / 4


def _answers(engine: ListedWorlds) -> list[int]:
    rng, state, found = np.random.default_rng(3), engine.begin(), []
    while True:
        outputs = engine.worlds.masks() @ rng.standard_normal(engine.worlds.n)
        priced = engine.price(state, outputs, 12 * float(outputs.std()))
        if priced is None:
            return found
        law = priced.cells.masses()[0]
        found.append(int(rng.choice(len(law), p=law / law.sum())))
        state = engine.after(state, priced, found[-1])
