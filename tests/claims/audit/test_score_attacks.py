"""Scores: what must not matter to the attacks on them, and what they cannot say."""

from __future__ import annotations

import math

import numpy as np
import pytest

from leakcap.audit.shadow import scores
from leakcap.audit.shadow.lira import EmpiricalLira, Lira
from leakcap.audit.shadow.threshold import Threshold
from leakcap.errors import InputError
from tests.claims.audit.scored import ATTACKS, ONLINE, tables

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
