"""The formulas of the score attacks once more, in plain Python, and on known laws."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest
from scipy.stats import binom, norm

from leakcap.audit.shadow.lira import EmpiricalLira, Lira
from leakcap.audit.shadow.threshold import Threshold
from tests.claims.audit.scored import ATTACKS, ONLINE, auc, clean, tables

# The formulas once more, in plain Python, a unit and a target at a time.


def plain_deviation(values: list[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((v - mean) ** 2 for v in values) / len(values))


def pooled_deviation(shadow: np.ndarray, side: np.ndarray) -> float:
    squares, count = 0.0, 0
    for j in range(shadow.shape[1]):
        own = clean(shadow[side[:, j], j])
        squares += plain_deviation(own) ** 2 * len(own)
        count += len(own)
    return math.sqrt(squares / count)


def plain(attack: object, shadow: np.ndarray, inside: np.ndarray, target: np.ndarray) -> np.ndarray:
    found = np.empty(target.shape)
    everything = clean(shadow.ravel())
    for j in range(shadow.shape[1]):
        members, others = clean(shadow[inside[:, j], j]), clean(shadow[~inside[:, j], j])
        for i, x in enumerate(target[:, j].tolist()):
            if isinstance(attack, Threshold):
                usual = everything if attack.calibration == "none" else others
                found[i, j] = x - math.fsum(usual) / len(usual)
            elif isinstance(attack, EmpiricalLira):
                found[i, j] = plain_window(members, others, x) if attack.variant == "online" else plain_rank(others, x)
            else:
                assert isinstance(attack, Lira)
                out, own = plain_deviation(others), plain_deviation(members)
                if attack.variance == "pooled":
                    out, own = pooled_deviation(shadow, ~inside), pooled_deviation(shadow, inside)
                found[i, j] = (x - math.fsum(others) / len(others)) / out
                if attack.variant == "online":
                    found[i, j] = norm.logpdf(x, math.fsum(members) / len(members), own) - norm.logpdf(
                        x, math.fsum(others) / len(others), out
                    )
    return found


def plain_rank(others: list[float], x: float) -> float:
    rank = sum(o < x for o in others) + sum(o == x for o in others) / 2
    return NormalDist().inv_cdf((rank + 0.5) / (len(others) + 1))


def plain_window(members: list[float], others: list[float], x: float) -> float:
    every = sorted(members + others)
    below, upto = sum(v < x for v in every), sum(v <= x for v in every)
    reach = max(0.0, (len(every) ** 0.8 - (upto - below)) / 2)
    low, high = max(below - reach, 0), min(upto + reach, len(every))
    own = rest = 0.0
    for value in set(every):
        first, last = every.index(value), every.index(value) + every.count(value)
        share = max(0.0, min(last, high) - max(first, low)) / (last - first)
        own += share * members.count(value)
        rest += share * others.count(value)
    prior = len(members) / len(every)
    return math.log((own + prior) / (rest + 1 - prior)) - math.log(prior / (1 - prior))


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
@pytest.mark.parametrize("shape", [(37, 29, 5), (40, 8, 3), (64, 3, 4)], ids=str)
def test_all_units_at_once_equal_the_formulas_unit_by_unit(attack: Lira, shape: tuple[int, int, int]) -> None:
    shadow, inside, target = tables(*shape)
    expected = plain(attack, shadow, inside, target)
    assert np.allclose(attack.fit(shadow, inside)(target), expected, rtol=1e-10, atol=1e-10)
    sliced = np.asfortranarray(shadow), np.asfortranarray(inside)  # another layout is copied block by block
    assert np.allclose(attack.fit(*sliced)(target), expected, rtol=1e-10, atol=1e-10)


def test_equal_scores_count_in_equal_parts() -> None:
    shadow, inside, target = (np.round(table) if table.dtype != bool else table for table in tables(120, 15, 6))
    assert max(np.unique(column, return_counts=True)[1].max() for column in shadow.T) > 60
    for variant in ("online", "offline"):
        attack = EmpiricalLira(variant)
        expected = plain(attack, shadow, inside, target)
        assert np.allclose(attack.fit(shadow, inside)(target), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_single_precision_is_added_up_in_double(attack: Lira) -> None:
    shadow, inside, target = (table.astype(np.float32) if table.dtype != bool else table for table in tables(61, 21, 4))
    wide = attack.fit(shadow.astype(float), inside)(target.astype(float))
    assert np.allclose(attack.fit(shadow, inside)(target), wide, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_threads_and_blocks_change_nothing(attack: Lira, monkeypatch: pytest.MonkeyPatch) -> None:
    shadow, inside, target = tables(50, 83, 6)
    whole = attack.fit(shadow, inside)(target)
    monkeypatch.setattr("leakcap.audit.shadow.sides.MIN_THREADED_SCORES", 1)
    monkeypatch.setattr("leakcap.audit.shadow.sides.threads", lambda: 3)
    monkeypatch.setattr("leakcap.audit.shadow.sides.MAX_COPIED_SCORES", 50 * 9)
    assert np.allclose(attack.fit(shadow, inside)(target), whole, rtol=1e-13, atol=1e-13)
    assert np.allclose(attack.fit(shadow.T.copy().T, inside)(target), whole, rtol=1e-13, atol=1e-13)


def test_a_far_level_and_a_wide_other_side_do_not_drown_a_narrow_law() -> None:
    """Scores of outsiders lie at 1e6 with spread 1e-3, those of members at 0 with spread 1e9."""
    rng = np.random.default_rng(1)
    s, n = 400, 16
    inside = rng.random((s, n)) < 0.5
    shadow = np.where(inside, 1e9 * rng.normal(size=(s, n)), 1e6 + 1e-3 * rng.normal(size=(s, n)))
    target = 1e6 + 1e-3 * rng.normal(size=(3, n))
    expected = plain(Lira(), shadow, inside, target)
    assert np.allclose(Lira().fit(shadow, inside)(target), expected, rtol=1e-6)


# Known laws.


@pytest.mark.parametrize("attack", ONLINE, ids=str)
@pytest.mark.parametrize("shift", [0.5, 1.5])
def test_on_normal_scores_success_comes_near_the_best_possible(attack: Lira, shift: float) -> None:
    """Members score N(shift, 1), others N(0, 1): success at most Phi(shift / 2), area Phi(shift / sqrt 2)."""
    rng = np.random.default_rng(2)
    s, n, t = 1024, 40, 2000
    inside, member = rng.random((s, n)) < 0.5, rng.random((t, n)) < 0.5
    fitted = attack.fit(rng.normal(size=(s, n)) + shift * inside, inside)
    found = fitted(rng.normal(size=(t, n)) + shift * member)
    success = ((found > 0) == member).mean()
    best = norm.cdf(shift / 2)
    noise = 5 * math.sqrt(best * (1 - best) / found.size)  # false alarms 3e-7 for each bound
    assert best - 0.012 < success < best + noise
    area = np.mean([auc(found[:, j], member[:, j]) for j in range(n)])
    tolerance = 0.02 if isinstance(attack, EmpiricalLira) else 0.006
    assert norm.cdf(shift / math.sqrt(2)) - tolerance < area < norm.cdf(shift / math.sqrt(2)) + 0.006


def test_members_that_differ_by_spread_alone_are_found_online_and_not_offline() -> None:
    """Members score N(0, 1/16), others N(0, 1): the best test is |x| < c."""
    rng = np.random.default_rng(3)
    s, n, t = 1024, 30, 1500
    inside, member = rng.random((s, n)) < 0.5, rng.random((t, n)) < 0.5
    shadow = rng.normal(size=(s, n)) * np.where(inside, 0.25, 1)
    target = rng.normal(size=(t, n)) * np.where(member, 0.25, 1)
    cut = math.sqrt(2 * math.log(4) / (16 - 1))
    best = 0.5 * (1 - 2 * norm.cdf(-cut / 0.25)) + norm.cdf(-cut)
    for attack, slack in ((Lira(), 0.01), (EmpiricalLira(), 0.035)):
        success = ((attack.fit(shadow, inside)(target) > 0) == member).mean()
        assert best - slack < success < best + 0.012
    for attack in (Lira("offline"), EmpiricalLira("offline"), Threshold("outside")):
        assert abs(((attack.fit(shadow, inside)(target) > 0) == member).mean() - 0.5) < 0.02


@pytest.mark.parametrize("attack", [Lira("offline"), Lira("offline", "pooled"), EmpiricalLira("offline")], ids=str)
def test_offline_statistics_of_outsiders_are_standard_normal(attack: Lira) -> None:
    rng = np.random.default_rng(4)
    inside = rng.random((2000, 20)) < 0.5
    found = attack.fit(rng.normal(size=(2000, 20)) + 3 * inside, inside)(rng.normal(size=(1000, 20)))
    assert abs(found.mean()) < 0.06
    assert abs(found.std() - 1) < 0.04


def worst_p_value(attack: object, planted: float, seed: int) -> float:
    """Least of the units' p-values for "right half of the time", times their number; one unit's scores may tell."""
    rng = np.random.default_rng(seed)
    s, n, t = 200, 60, 1000
    inside, member = rng.random((s, n)) < 0.5, rng.random((t, n)) < 0.5
    shadow, target = rng.normal(size=(s, n)), rng.normal(size=(t, n))
    shadow[:, 17] += planted * inside[:, 17]
    target[:, 17] += planted * member[:, 17]
    right = ((attack.fit(shadow, inside)(target) > 0) == member).sum(axis=0)
    least = binom.sf(right - 1, t, 0.5).argmin()
    assert planted == 0 or least == 17
    return float(n * binom.sf(right[least] - 1, t, 0.5))


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_null_scores_favour_no_unit_and_a_planted_one_is_found(attack: Lira) -> None:
    """False alarms: once in 1e4 runs for each attack; seeds are fixed."""
    assert worst_p_value(attack, planted=0.0, seed=5) > 1e-4
    assert worst_p_value(attack, planted=0.8, seed=5) < 1e-6
