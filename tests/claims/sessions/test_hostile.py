"""Hostile analysts against sessions on small pools, played out to the end, and against servers with planted faults."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from benchmarks import hostile

from leakcap.sessions.listed_worlds.cells import REACH, SCALE
from leakcap.sessions.listed_worlds.directions import next_direction
from leakcap.sessions.listed_worlds.engine import ListedWorlds
from leakcap.sessions.listed_worlds.rules import AdditiveRule, BrokenRealisedRule, SquaredRule, UnitInformationRule
from tests.claims.sessions.analysts import ANALYSTS, SHARP, balanced, direct, noise_probing, set_splitting
from tests.claims.sessions.play import CAP, all_coins, branches, engine_of, leaves, pool, success

POOLS = {"16 worlds, 6 people": pool(16, 6), "32 worlds, 8 people": pool(32, 8, 1), "all of 6 coins": all_coins(6)}
SETS = ("gambler", "set splitting")  # exact answers: all cells, which tell the same, are few branches


def best_guess(name: str, worlds: Any, target: int = 0) -> float:
    analyst, answers = ANALYSTS[name]
    engine = engine_of(worlds, reach=REACH if name in SETS else 1.0)
    return success(leaves(engine, analyst, target, answers))


@pytest.mark.parametrize("pool_name", POOLS)
@pytest.mark.parametrize("name", ANALYSTS)
def test_no_analyst_knows_more_than_the_cap_in_the_end(name: str, pool_name: str) -> None:
    assert 0.5 <= best_guess(name, POOLS[pool_name]) <= CAP


def test_the_best_analysts_reach_the_cap() -> None:
    assert best_guess("largest step", POOLS["32 worlds, 8 people"]) > 0.5999
    assert all(best_guess(name, POOLS["32 worlds, 8 people"]) > 0.595 for name in ("averaging", "noise probing"))


def test_sessions_with_drawn_answers_stay_within_the_cap() -> None:
    """All analysts of the benchmark, five sessions each: within four standard errors of each."""
    played = {name: hostile.measure(name, 5) for name in ANALYSTS}
    assert all(mean <= CAP + 4 * error for mean, error in played.values())
    assert played["largest step"][0] > 0.595


@pytest.mark.parametrize("rule", [AdditiveRule, UnitInformationRule, SquaredRule])
@pytest.mark.parametrize("analyst", [direct, noise_probing, set_splitting])
def test_weaker_rules_hold_too(rule: Any, analyst: Any) -> None:
    engine = ListedWorlds(pool(16, 6), rule(CAP), REACH if analyst is set_splitting else 1.0)
    assert success(leaves(engine, analyst, 0, 3)) <= CAP


@pytest.mark.parametrize(("worlds", "least"), [(all_coins(6), 0.8), (pool(64, 8), 0.8), (pool(1024, 10), 0.81)])
def test_the_realised_rule_is_broken_by_sets_of_worlds_and_the_clock_is_not(worlds: Any, least: float) -> None:
    assert success(leaves(ListedWorlds(worlds, BrokenRealisedRule(CAP), REACH), set_splitting, 0, 14)) > least
    assert success(leaves(engine_of(worlds, reach=REACH), set_splitting, 0, 14)) <= CAP


@pytest.mark.parametrize(("sure", "often"), [(1.0, 0.18), (0.75, 0.37)])
def test_single_transcripts_are_not_bounded(sure: float, often: float) -> None:
    """Sets of worlds, most of one side, named exactly: within the cap on average, and sure of the target often."""
    engine = engine_of(all_coins(6), reach=REACH)
    members = engine.worlds.masks()[:, 0]
    size = 6 if sure == 1 else 12
    most, few = round(sure * size), size - round(sure * size)
    outputs = np.zeros(64)
    for side, number in ((members, 1), (~members, 2)):
        main, other = (balanced(engine.worlds.masks(), np.flatnonzero(half), 32) for half in (side, ~side))
        outputs[main[:most]] = number
        outputs[other[most : most + few]] = number
    ends = leaves(engine, lambda view: None if view.refusals else (outputs, SHARP), 0, 1)
    assert success(ends) <= CAP
    assert sum(sum(end) for end in ends if max(end) >= (sure - 1e-9) * sum(end)) > often


def a_pair_of_worlds(members: np.ndarray, number: int) -> np.ndarray:
    """One world with the target, and one without."""
    outputs = np.zeros(len(members))
    outputs[np.flatnonzero(members)[number]] = 1
    outputs[np.flatnonzero(~members)[number]] = 2
    return outputs


def rolled_back(engine: ListedWorlds) -> float:
    """Planted: vectors of two numbers; where the second is refused the whole vector is, and the server forgets it.

    First number: which of two worlds it is, or neither. Second: the target's own bit with little noise, for which the
    clock pays only if the first has told it already. So a refusal says "neither", for nothing.
    """
    members = engine.worlds.masks()[:, 0]
    joint, state, found = np.full(engine.worlds.m, 1 / engine.worlds.m), engine.begin(), 0.0
    for number in range(engine.worlds.m // 2):
        priced = engine.price(state, a_pair_of_worlds(members, number), SHARP)
        assert priced is not None
        rest = np.zeros(engine.worlds.m)
        for cell, law in branches(priced.cells.counts / SCALE, joint):
            moved = joint * law
            if engine.price(engine.after(state, priced, cell), members.astype(float), 1.0) is None:
                rest += moved
            else:
                found += max(moved[members].sum(), moved[~members].sum())
        joint = rest
    return float(found + max(joint[members].sum(), joint[~members].sum()))


def both_numbers(view: Any) -> Any:
    """The same questions to an honest server, which charges and delivers the first, whatever happens to the second."""
    if view.step >= 16:
        return None
    first = a_pair_of_worlds(view.members, view.step)
    return (view.members.astype(float), 1.0) if view.refusals else (first, SHARP)


def test_a_server_that_rolls_back_refused_vectors_is_broken_and_one_that_charges_is_not() -> None:
    engine = engine_of(all_coins(6), reach=REACH)
    assert rolled_back(engine) > 0.715
    assert 0.54 < success(leaves(engine, both_numbers, 0, 16)) <= CAP


def test_charges_are_taken_whatever_is_drawn() -> None:
    engine = engine_of(pool(16, 6))
    state = engine.begin()
    priced = engine.price(state, *direct_question(engine))
    assert priced is not None
    after = [engine.after(state, priced, cell).clocks for cell in range(len(priced.cells.values))]
    assert all((clocks == state.clocks - priced.charges).all() for clocks in after)
    assert priced.charges.min() >= 1
    damaged = replace(state, clocks=np.zeros_like(state.clocks))
    assert engine.price(damaged, *direct_question(engine)) is None


def direct_question(engine: ListedWorlds) -> Any:
    return engine.worlds.masks()[:, 0].astype(float), 3.0


def test_vectors_are_asked_along_the_posteriors_own_directions() -> None:
    """Orthonormal, largest first, until worlds do not differ; under the posterior as it is then."""
    rng = np.random.default_rng(0)
    table = rng.standard_normal((32, 3)) * [5.0, 1.0, 0.2] @ np.linalg.qr(rng.standard_normal((5, 5)))[0][:3]
    weights, asked, spreads = rng.dirichlet(np.ones(32)), np.empty((0, 5)), []
    while (direction := next_direction(table, weights, asked)) is not None:
        asked = np.vstack([asked, direction])
        along = table @ direction
        spreads.append(weights @ (along - weights @ along) ** 2)
    assert len(asked) == 3
    assert np.allclose(asked @ asked.T, np.eye(3), atol=1e-12)
    covariance = (table - weights @ table).T @ (weights[:, None] * (table - weights @ table))
    assert spreads == pytest.approx(np.linalg.eigvalsh(covariance)[:1:-1])


def test_a_vector_keeps_the_cap_coordinate_by_coordinate() -> None:
    """The target's bit hidden in two correlated outputs: all coordinates, each its own answer."""
    worlds = pool(16, 6)
    masks = worlds.masks().astype(float)
    table = np.column_stack([masks[:, 0] + masks[:, 1], masks[:, 0] - masks[:, 2]]) / 3

    def vector(view: Any) -> Any:
        asked = np.array([question[0] for question, _ in view.trail]).reshape(-1, 16)
        known = np.linalg.lstsq(table - table.mean(axis=0), (asked - asked.mean(axis=1, keepdims=True)).T)[0].T
        direction = next_direction(table, view.weights, known.reshape(-1, 2))
        return None if direction is None else (table @ direction, 1.2**view.refusals)

    ends = leaves(engine_of(worlds), vector, 0, 2)
    assert 0.55 < success(ends) <= CAP
