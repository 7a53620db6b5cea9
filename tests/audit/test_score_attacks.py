"""Attacks on scores: the plain formulas unit by unit, known laws at their optimum, no favour where there is nothing."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest
from scipy.stats import binom, norm

from leakcap.audit import scores
from leakcap.audit.attacks.lira import EmpiricalLira, Lira
from leakcap.audit.attacks.rmia import Rmia
from leakcap.audit.attacks.threshold import Threshold
from leakcap.errors import InputError

ATTACKS = [
    Lira("online", "unit"),
    Lira("online", "pooled"),
    Lira("offline", "unit"),
    Lira("offline", "pooled"),
    EmpiricalLira("online"),
    EmpiricalLira("offline"),
    Threshold("none"),
    Threshold("outside"),
]
ONLINE = [Lira("online", "unit"), Lira("online", "pooled"), EmpiricalLira("online")]


def tables(s: int, n: int, t: int, seed: int = 0, shift: float = 0.7) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores of units of different level and scale, higher for members; some are missing."""
    rng = np.random.default_rng(seed)
    inside = rng.random((s, n)) < 0.5
    inside[:4] = [[True], [True], [False], [False]]
    level, scale = rng.normal(size=n) * 5, np.exp(rng.normal(size=n))
    shadow = level + scale * (rng.normal(size=(s, n)) + shift * inside)
    target = level + scale * rng.normal(size=(t, n))
    shadow[5:][rng.random((s - 5, n)) < 0.03] = np.nan
    shadow[7, ::5], shadow[8, ::7] = np.inf, -np.inf
    return shadow, inside, target


# The formulas once more, in plain Python, a unit and a target at a time.


def clean(values: np.ndarray) -> list[float]:
    return [float(v) for v in values if math.isfinite(v)]


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
    monkeypatch.setattr("leakcap.audit.sides.WORTH", 1)
    monkeypatch.setattr("leakcap.audit.sides.threads", lambda: 3)
    monkeypatch.setattr("leakcap.audit.sides.AT_ONCE", 50 * 9)
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


def auc(statistics: np.ndarray, member: np.ndarray) -> float:
    order = np.argsort(np.argsort(statistics))
    k = member.sum()
    return float((order[member].sum() - k * (k - 1) / 2) / (k * (~member).sum()))


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


# What must not matter.


def increasing(table: np.ndarray) -> np.ndarray:
    """A strictly increasing map of its own for every unit."""
    columns = np.arange(table.shape[1])
    return np.where(columns % 2 == 0, np.arctan(table / 9), table**3 + columns)


@pytest.mark.parametrize("variant", ["online", "offline"])
def test_empirical_laws_see_ranks_only(variant: str) -> None:
    shadow, inside, target = tables(90, 25, 8)
    shadow, target = np.round(shadow, 1), np.round(target, 1)  # with ties
    shadow[~np.isfinite(shadow)] = np.nan
    attack = EmpiricalLira(variant)
    found = attack.fit(shadow, inside)(target)
    assert np.array_equal(attack.fit(increasing(shadow), inside)(increasing(target)), found)
    turned = attack.fit(-shadow, inside)(-target)
    assert np.allclose(turned, found if variant == "online" else -found, atol=1e-12)


@pytest.mark.parametrize("attack", [Lira("online"), Lira("offline")], ids=str)
def test_unit_laws_do_not_depend_on_units_of_measurement(attack: Lira) -> None:
    shadow, inside, target = tables(90, 25, 8)
    scale, level = np.exp(np.random.default_rng(6).normal(size=(2, 25)) * 3)
    found = attack.fit(shadow, inside)(target)
    assert np.allclose(attack.fit(scale * shadow + level, inside)(scale * target + level), found, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_the_order_of_shadows_and_of_units_does_not_matter(attack: Lira) -> None:
    shadow, inside, target = tables(70, 19, 5)
    rng = np.random.default_rng(7)
    rows, columns = rng.permutation(70), rng.permutation(19)
    found = attack.fit(shadow, inside)(target)
    moved = attack.fit(shadow[rows][:, columns], inside[rows][:, columns])(target[:, columns])
    assert np.allclose(moved, found[:, columns], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("attack", ONLINE, ids=str)
def test_members_and_others_exchanged_change_the_sign(attack: Lira) -> None:
    shadow, inside, target = tables(70, 19, 5)
    found = attack.fit(shadow, inside)(target)
    assert np.allclose(attack.fit(shadow, ~inside)(target), -found, rtol=1e-9, atol=1e-9)


# Nothing to be said.


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_where_nothing_is_known_statistics_are_zero_and_the_others_untouched(attack: Lira) -> None:
    shadow, inside, target = tables(60, 12, 6)
    alone = attack.fit(shadow, inside)(target)
    shadow[:, 3] = np.nan  # never scored
    target[2, 5], target[3, 5], target[4, 5] = np.nan, np.inf, -np.inf
    fitted = attack.fit(shadow, inside)
    found = fitted(target)
    if attack != Threshold("none"):
        assert (found[:, 3] == 0).all()
    assert (found[2:5, 5] == 0).all()
    assert np.isfinite(found).all()
    kept = np.delete(np.arange(12), [3, 5])
    if "pooled" not in str(attack) and attack != Threshold("none"):
        assert np.array_equal(found[:, kept], alone[:, kept])


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
@pytest.mark.parametrize("value", [0.0, 0.1, 1e300, np.nan, -np.inf])
def test_constant_scores_say_nothing(attack: Lira, value: float) -> None:
    inside = np.random.default_rng(8).random((40, 9)) < 0.5
    found = attack.fit(np.full((40, 9), value), inside)(np.full((3, 9), value))
    assert np.abs(found).max() <= 1e-12 * max(1.0, abs(np.nan_to_num(value, neginf=0)))


@pytest.mark.parametrize("attack", ONLINE, ids=str)
def test_a_unit_that_is_always_or_never_inside_says_nothing(attack: Lira) -> None:
    shadow, inside, target = tables(60, 12, 6)
    inside[:, 4], inside[:, 7] = True, False
    found = attack.fit(shadow, inside)(target)
    assert (found[:, [4, 7]] == 0).all()
    assert np.isfinite(found).all() and (found[:, 0] != 0).all()


@pytest.mark.parametrize("attack", ONLINE, ids=str)
def test_a_model_that_knows_its_rows_by_heart_is_recognised(attack: Lira) -> None:
    """A member's score is always 1; an outsider's is 0 or 1. No spread on a side is no reason to fail."""
    rng = np.random.default_rng(9)
    inside, member = rng.random((200, 10)) < 0.5, rng.random((50, 10)) < 0.5
    shadow = np.where(inside, 1.0, rng.random((200, 10)) < 0.2)
    target = np.where(member, 1.0, 0.0)
    found = attack.fit(shadow, inside)(target)
    assert np.isfinite(found).all()
    assert ((found > 0) == member).all()
    certain = attack.fit(inside.astype(float), inside)(target)
    assert np.isfinite(certain).all() and ((certain > 0) == member).all()


def test_differences_in_the_last_digits_are_not_taken_for_rounding() -> None:
    """Low-order bits may name a world: MATH.md 1.5."""
    rng = np.random.default_rng(10)
    inside, member = rng.random((100, 8)) < 0.5, rng.random((40, 8)) < 0.5
    shadow, target = (np.where(side, np.nextafter(1.0, 2), 1.0) for side in (inside, member))
    for attack in (Lira(), EmpiricalLira()):
        assert ((attack.fit(shadow, inside)(target) > 0) == member).all()


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_tables_that_do_not_fit_are_refused(attack: Lira) -> None:
    shadow, inside, target = tables(20, 6, 2)
    with pytest.raises(InputError, match="inside"):
        attack.fit(shadow, inside[:, :5])
    with pytest.raises(InputError, match="inside"):
        attack.fit(shadow, inside.astype(int))
    with pytest.raises(InputError, match="shadow"):
        attack.fit(shadow[0], inside[0])
    with pytest.raises(InputError, match="no rows"):
        attack.fit(shadow[:0], inside[:0])
    with pytest.raises(InputError, match="columns"):
        attack.fit(shadow, inside)(target[:, :5])


def test_unknown_variants_are_refused() -> None:
    for make in (
        lambda: Lira("both"),
        lambda: Lira(variance="none"),
        lambda: EmpiricalLira("x"),
        lambda: Threshold("y"),
    ):
        with pytest.raises(InputError, match="must be one of"):
            make()


# RMIA.


def probabilities(s: int, n: int, z: int, t: int, seed: int, pull: float = 1.0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    level = rng.normal(size=n + z)

    def drawn(rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        inside = rng.random((rows, n)) < 0.5
        logits = level + 0.7 * rng.normal(size=(rows, n + z))
        logits[:, :n] += pull * inside
        p = 1 / (1 + np.exp(-logits))
        return p[:, :n], p[:, n:], inside

    shadow, population, inside = drawn(s)
    target, target_population, member = drawn(t)
    return {
        "shadow": shadow,
        "inside": inside,
        "population": population,
        "target": target,
        "beside": target_population,
        "member": member,
    }


@pytest.mark.parametrize("gamma", [1.0, 2.0])
@pytest.mark.parametrize("variant", ["online", "offline"])
def test_rmia_equals_the_share_of_pairs_counted_one_by_one(variant: str, gamma: float) -> None:
    p = probabilities(30, 11, 17, 4, seed=11)
    p["shadow"][3, 2] = p["population"][4, 5] = p["target"][1, 1] = p["beside"][2, 3] = np.nan
    found = Rmia(variant, gamma=gamma, slope=0.4).fit(p["shadow"], p["inside"], p["population"])(
        p["target"], p["beside"]
    )

    def usual(values: list[float]) -> float:
        mean = math.fsum(values) / len(values)
        return mean if variant == "online" else ((1 + 0.4) * mean + (1 - 0.4)) / 2

    for j in range(11):
        out = usual(clean(p["shadow"][~p["inside"][:, j], j]))
        own = usual(clean(p["shadow"][p["inside"][:, j], j]))
        middle = (out + own) / 2 if variant == "online" else out
        for i in range(4):
            if not math.isfinite(p["target"][i, j]):
                assert found[i, j] == 0
                continue
            wins = [
                (p["target"][i, j] / middle) / (p["beside"][i, k] / usual(clean(p["population"][:, k]))) >= gamma
                for k in range(17)
                if math.isfinite(p["beside"][i, k])
            ]
            assert math.isclose(found[i, j], sum(wins) / len(wins), abs_tol=1e-12)


@pytest.mark.parametrize("variant", ["online", "offline"])
def test_rmia_finds_members_and_is_at_chance_where_there_is_nothing(variant: str) -> None:
    for pull, low, high in ((2.0, 0.75, 1.0), (0.0, 0.48, 0.52)):
        p = probabilities(64, 100, 300, 200, seed=12, pull=pull)
        found = Rmia(variant, gamma=1.0).fit(p["shadow"], p["inside"], p["population"])(p["target"], p["beside"])
        assert low < np.mean([auc(found[:, j], p["member"][:, j]) for j in range(100)]) < high
        assert found.min() >= 0 and found.max() <= 1


def test_rmia_falls_as_gamma_grows_and_rises_with_the_probability() -> None:
    p = probabilities(40, 20, 50, 10, seed=13)
    by_gamma = [
        Rmia(gamma=g).fit(p["shadow"], p["inside"], p["population"])(p["target"], p["beside"]) for g in (1, 1.5, 3)
    ]
    assert (np.diff(by_gamma, axis=0) <= 0).all()
    higher = Rmia().fit(p["shadow"], p["inside"], p["population"])(p["target"] * 1.5, p["beside"])
    assert (higher >= Rmia().fit(p["shadow"], p["inside"], p["population"])(p["target"], p["beside"])).all()


def test_rmia_says_zero_without_a_usable_population_and_refuses_losses() -> None:
    p = probabilities(20, 5, 6, 3, seed=14)
    nothing = np.full_like(p["beside"], np.nan)
    assert (Rmia().fit(p["shadow"], p["inside"], p["population"])(p["target"], nothing) == 0).all()
    assert (Rmia().fit(0 * p["shadow"], p["inside"], p["population"])(p["target"], p["beside"]) == 0).all()
    with pytest.raises(InputError, match="below 0"):
        Rmia().fit(-p["shadow"], p["inside"], p["population"])
    with pytest.raises(InputError, match="population"):
        Rmia().fit(p["shadow"], p["inside"], p["population"][:-1])
    with pytest.raises(InputError, match="gamma"):
        Rmia(gamma=0.5)


# Scores.


def test_published_scores_are_those_of_the_formulas() -> None:
    rng = np.random.default_rng(15)
    logits, labels = rng.normal(size=(3, 20, 4)) * 3, rng.integers(4, size=20)
    p = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    own = p[:, np.arange(20), labels]
    assert np.allclose(scores.logit_confidence(own), np.log(own / (1 - own)))
    assert np.allclose(scores.logit_of_scores(logits, labels), np.log(own / (1 - own)))
    for i in range(3):
        for j in range(20):
            rest = [logits[i, j, c] for c in range(4) if c != labels[j]]
            assert scores.hinge_margin(logits, labels)[i, j] == logits[i, j, labels[j]] - max(rest)
    assert np.allclose(scores.log_likelihood(own), np.log(own))
    assert np.array_equal(scores.negative_squared_error([[1.0, 2.0], [0.0, 5.0]], [1.0, 4.0]), [[0, -4], [-1, -1]])


def test_scores_of_certain_predictions_are_finite_and_in_order() -> None:
    found = scores.logit_confidence([0.0, 1e-300, 0.5, 1 - 1e-16, 1.0])
    assert np.isfinite(found).all() and (np.diff(found) >= 0).all() and found[0] < found[2] < found[4]
    assert np.isfinite(scores.log_likelihood([0.0, 1.0])).all()
    wide = scores.logit_of_scores([[900.0, -900.0], [-900.0, 900.0]], [0, 0])
    assert np.allclose(wide, [1800, -1800])


def test_the_papers_confidences_are_those_of_appendix_d() -> None:
    rng = np.random.default_rng(16)
    rows, centres = rng.random((13, 4)), rng.random((5, 3, 4))
    slopes, offsets = rng.normal(size=(5, 3, 4)), rng.normal(size=(5, 3))
    near = scores.kmeans_confidence(rows, centres)
    sure, two = scores.svm_confidence(rows, slopes, offsets), scores.svm_confidence(rows, slopes[:, :1], offsets[:, :1])
    for i in range(5):
        for j in range(13):
            assert math.isclose(near[i, j], 1 - min(math.dist(rows[j], c) for c in centres[i]) / 2)
            d = [(w @ rows[j] + b) / math.hypot(*w) for w, b in zip(slopes[i], offsets[i], strict=True)]
            assert math.isclose(sure[i, j], max(1 / (1 + math.exp(-one)) for one in d))
            assert math.isclose(two[i, j], 1 / (1 + math.exp(-abs(d[0]))))
    assert np.isfinite(scores.svm_confidence(rows, 0 * slopes, offsets)).all()


def test_scores_refuse_what_they_cannot_mean() -> None:
    with pytest.raises(InputError, match="between 0 and 1"):
        scores.logit_confidence([1.5])
    with pytest.raises(InputError, match="class"):
        scores.hinge_margin(np.zeros((3, 2)), [0, 1])
    with pytest.raises(InputError, match="classes"):
        scores.logit_of_scores(np.zeros((2, 2)), [0, 2])
    with pytest.raises(InputError, match="features"):
        scores.kmeans_confidence(np.zeros((3, 2)), np.zeros((1, 2, 3)))
    with pytest.raises(InputError, match="lines"):
        scores.svm_confidence(np.zeros((3, 2)), np.zeros((1, 2, 2)), np.zeros((1, 3)))
