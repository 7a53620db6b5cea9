"""Worlds chosen by looking at the pool: balance counted, and certificates against the best attacker by enumeration.

The attacker is computed here from the masks and the answers, by code that no bound shares: Bayes' rule on a fine grid
of released numbers. Tests of coins reject a true hypothesis with probability 1e-6 or less.
"""

from __future__ import annotations

import importlib
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare, norm

import leakcap as lc
from leakcap.worlds import independent_worlds
from leakcap.worlds.central import DRAWN, central_halves
from leakcap.worlds.matched import Matched, partners

matched = importlib.import_module("leakcap.worlds.matched")
POOLS = {
    "spread": np.random.default_rng(0).standard_normal(10),
    "odd": np.random.default_rng(1).standard_normal(9),
    "an outlier": np.array([0.0, 0.1, -0.2, 0.3, 0.0, 12.0, 0.1, 0.2]),
    "two groups": np.array([0.0, 0.05, 0.1, 0.15, 5.0, 5.2, 5.1, 5.3]),
}
DESIGNS = ("matched", "central")
CAP = lc.membership(0.6)
INTEGRATED = 1e-5  # what the sums over released numbers may be off by


def planned(values: Any, design: str, fn: Any = np.mean, **options: Any) -> lc.Plan:
    return lc.plan(fn, values, **{"cap": CAP, "design": design, "worlds": 24, "seed": 1} | options)


def posteriors(plan: lc.Plan) -> tuple[np.ndarray, np.ndarray]:
    """Chance of each released number on a grid, and of each world given it; for answers of one number."""
    means, deviation = plan.outputs[:, 0], float(plan.noise.output_deviations[0])
    y = np.linspace(means.min() - 8 * deviation, means.max() + 8 * deviation, 4001)
    joint = norm.pdf(y[:, None], means, deviation) * (y[1] - y[0]) / len(means)
    chance = joint.sum(axis=1)
    return chance, joint / np.maximum(chance[:, None], 1e-300)


def success(masks: np.ndarray, chance: np.ndarray, posterior: np.ndarray) -> np.ndarray:
    """Of the best guess at every unit's membership."""
    took_part = posterior @ masks
    return chance @ np.maximum(took_part, 1 - took_part)


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("name", POOLS)
@pytest.mark.parametrize("fn", [np.mean, np.max])
def test_the_best_attacker_stays_within_the_certificate(name: str, fn: Any, design: str) -> None:
    plan = planned(POOLS[name], design, fn)
    assert plan.certificate.membership_success <= CAP.success
    if plan.noise.space.rank:
        best = success(plan.worlds.masks(), *posteriors(plan))
        assert (best <= plan.exposure + INTEGRATED).all()
        assert best.max() > CAP.success - 0.02, "no more noise than the cap needs"
    else:
        assert np.ptp(plan.outputs) < 1e-12


@pytest.mark.parametrize("design", DESIGNS)
def test_two_numbers_at_once_stay_within_the_certificate(design: str) -> None:
    rows = np.random.default_rng(2).standard_normal((10, 2))
    plan = planned(rows, design, lambda some: some.mean(axis=0), worlds=16)
    masks, outputs = plan.worlds.masks(), plan.outputs @ np.linalg.inv(np.linalg.cholesky(plan.noise.covariance())).T
    axes = [np.arange(one.min() - 6, one.max() + 6, 0.06) for one in outputs.T]
    parts = [norm.pdf(axis[:, None], one) * 0.06 for axis, one in zip(axes, outputs.T, strict=True)]
    joint = np.einsum("aw,bw->abw", *parts).reshape(-1, len(outputs)) / len(outputs)
    chance = joint.sum(axis=1)
    best = success(masks, chance, joint / np.maximum(chance[:, None], 1e-300))
    assert (best <= plan.exposure + 1e-3).all()
    assert plan.exposure.max() <= CAP.success


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("k", [1, 3])
def test_known_memberships_are_those_of_the_worlds_as_they_are(design: str, k: int) -> None:
    """Every set of `k` people who are told: the partner is among them as often as chance puts it there."""
    plan = planned(POOLS["spread"], design)
    masks, (chance, posterior) = plan.worlds.masks(), posteriors(plan)
    found = []
    for unit in range(plan.worlds.n):
        others = [one for one in range(plan.worlds.n) if one != unit]
        told = [_told_success(masks, chance, posterior, unit, some) for some in combinations(others, k)]
        found.append(np.mean(told))
    bound = dict(plan.certificate.known_memberships)[k]
    assert max(found) <= bound + INTEGRATED
    assert plan.certificate.given(k) >= bound
    if design == "matched":
        pair = [_told_success(masks, chance, posterior, unit, [_partner(masks, unit)]) for unit in range(10)]
        assert np.allclose(pair, 1.0, atol=INTEGRATED), "and whoever is told the partner needs no release"


def _told_success(masks: Any, chance: Any, posterior: Any, unit: int, told: Any) -> float:
    """Of the best guess at a unit by somebody who sees the release and is told others' memberships."""
    answers = masks[:, list(told)] @ 2 ** np.arange(len(told))
    total = 0.0
    for answer in np.unique(answers):
        agree = answers == answer
        joint = chance[:, None] * posterior[:, agree]
        inside = joint @ masks[agree, unit]
        total += float(np.maximum(inside, joint.sum(axis=1) - inside).sum())
    return total


def _partner(masks: np.ndarray, unit: int) -> int:
    opposite = (masks != masks[:, [unit]]).all(axis=0)
    return int(np.flatnonzero(opposite)[0])


STRATA = np.array([0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3])


@pytest.mark.parametrize("n", [4, 5, 14, 33])
@pytest.mark.parametrize("strata", [False, True])
@pytest.mark.parametrize("design", DESIGNS)
def test_everybody_is_in_exactly_half_of_the_worlds(n: int, strata: bool, design: str) -> None:
    groups = (np.arange(n) >= n // 2).astype(int) if strata else None
    rows = np.random.default_rng(n).standard_normal((n, 3))
    options = {} if groups is None else {"strata": groups}
    worlds = planned(rows, design, lambda some: some.sum(axis=0), worlds=12, draws=256, **options).worlds
    masks = worlds.masks()
    assert (masks.sum(axis=0) == 6).all()
    assert (masks[:6] != masks[6:]).all()
    assert np.ptp(masks.sum(axis=1)) <= 1


@pytest.mark.parametrize("n", [4, 7, 10, 101])
def test_every_world_holds_one_of_each_pair(n: int) -> None:
    rows = np.random.default_rng(n).standard_normal((n, 2))
    order = partners(rows)
    assert sorted(order) == list(range(n))
    masks = Matched(order).draw(64, np.random.default_rng(0)).masks()
    pairs = order[: n // 2 * 2].reshape(-1, 2)
    assert (masks[:, pairs[:, 0]] != masks[:, pairs[:, 1]]).all()


def test_pairs_are_made_inside_strata_as_far_as_they_go() -> None:
    rows = np.random.default_rng(3).standard_normal((len(STRATA), 2))
    order = partners(rows, STRATA)
    pairs = STRATA[order].reshape(-1, 2)
    assert (pairs[:, 0] != pairs[:, 1]).sum() == 1, "two odd strata leave one each"
    masks = Matched(order, True).draw(32, np.random.default_rng(0)).masks()
    for stratum in range(4):
        members = np.equal(STRATA, stratum)
        assert (np.abs(2 * masks[:, members].sum(axis=1) - members.sum()) <= 1).all()


@pytest.mark.parametrize("design", DESIGNS)
def test_a_list_without_complements_is_refused_and_would_break_the_bound(design: str, monkeypatch: Any) -> None:
    """The planted twin: the first halves twice. The check sees it; without the check the certificate would be false."""
    for module in ("matched", "central"):
        monkeypatch.setattr(importlib.import_module(f"leakcap.worlds.{module}"), "complement", lambda packed, _: packed)
    with pytest.raises(lc.InputError, match="not balanced"):
        planned(POOLS["spread"], design, worlds=8)
    for module in ("matched", "central"):
        monkeypatch.setattr(importlib.import_module(f"leakcap.worlds.{module}"), "refuse_unbalanced", lambda _: None)
    plan = planned(POOLS["spread"], design, worlds=8, cap=lc.mutual_information(0.1))
    assert (success(plan.worlds.masks(), *posteriors(plan)) > plan.exposure + 0.01).any()


def test_one_person_on_both_sides_of_one_pair_is_seen() -> None:
    worlds = Matched(np.arange(11)).draw(16, np.random.default_rng(0))
    matched.refuse_unbalanced(worlds)
    for world, unit in ((0, 0), (3, 10), (15, 7)):
        masks = worlds.masks()
        masks[world, unit] ^= True
        with pytest.raises(lc.InputError, match="not balanced"):
            matched.refuse_unbalanced(replace(worlds, packed=np.packbits(masks, axis=1)))


@pytest.mark.parametrize("loaded", [False, True])
def test_coins_of_pairs_are_fair_and_independent(loaded: bool) -> None:
    class Loaded:
        def __init__(self) -> None:
            self.rng = np.random.default_rng(4)

        def integers(self, low: int, high: int, **options: Any) -> Any:
            return self.rng.integers(low, high, **options) & ~np.uint8(0x40 if loaded else 0)

    pairs, worlds = 4, 8000
    masks = Matched(np.arange(2 * pairs)).draw(2 * worlds, Loaded()).masks()[:worlds]
    ways = masks[:, ::2] @ 2 ** np.arange(pairs)
    assert (chisquare(np.bincount(ways, minlength=2**pairs)).pvalue > 1e-6) != loaded


@pytest.mark.parametrize("strata", [None, np.arange(40) % 3])
def test_the_nearest_halves_are_kept_with_their_complements(strata: Any) -> None:
    """Distances are computed here from dense masks and the covariance of the rows."""
    rows = np.random.default_rng(5).standard_normal((40, 3)) @ np.diag([1.0, 3.0, 0.2])
    turned = (rows - rows.mean(axis=0)) @ np.linalg.eigh(np.cov(rows.T))[1]
    keep = 10
    chosen = central_halves(turned, 2 * keep, np.random.default_rng(6), strata)
    worlds = chosen.draw(2 * keep, np.random.default_rng(6)).masks()
    drawn = independent_worlds(40, DRAWN * keep, np.random.default_rng(6), strata=strata).masks()
    precision = np.linalg.inv(np.cov(rows.T, bias=True))

    def away(masks: np.ndarray) -> np.ndarray:
        moved = masks @ (rows - rows.mean(axis=0))
        return np.einsum("wi,ij,wj->w", moved, precision, moved)

    nearest = np.sort(away(drawn))[:keep]
    assert np.allclose(np.sort(away(worlds[:keep])), nearest)
    assert (worlds[:keep] != worlds[keep:]).all()
    assert np.allclose(away(worlds[keep:]), away(worlds[:keep])), "a half and its complement are equally near"
    assert {half.tobytes() for half in worlds[:keep]} <= {half.tobytes() for half in drawn}


def test_a_designed_list_says_nothing_about_uniform_halves() -> None:
    """The example of the proof page: 1/2 in the game over the list, 2/3 over all halves, and the pool's own mean."""
    pool = np.array([0.0, 0.0, 1.0, 1.0])
    plan = planned(pool, "matched", worlds=8, seed=None)
    assert plan.certificate.membership_success == 0.5 and plan.noise.std == 0
    halves = list(combinations(range(4), 2))
    by_answer: dict[float, list[bool]] = {}
    for half in halves:
        by_answer.setdefault(float(pool[list(half)].mean()), []).append(0 in half)
    right = sum(max(sum(inside), len(inside) - sum(inside)) for inside in by_answer.values())
    assert right / len(halves) == pytest.approx(2 / 3)
    assert plan.release().value == pool.mean(), "in the second game"
    assert any("MIP" in line for line in plan.certificate.not_promised)
    assert "uniform-halves" not in plan.certificate.theorems
