"""Noised sums by class: what one changed label can do to them, and what the best guesser makes of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr

from leakcap.errors import InputError
from leakcap.labels.mechanisms.classes import Classes
from leakcap.labels.mechanisms.gaussian import hockey_stick
from leakcap.labels.statistics.guesses import nats_of_sums, success_of_sums
from leakcap.labels.statistics.sums import SumsMechanism, calibrated, class_sums, whole_rows

TWO, THREE = Classes(2, None), Classes(3, None)


def exact_delta(mechanism: SumsMechanism, shift: int) -> float:
    """Delta between two labels of a row with one entry, `shift`: the whole law, outcome by outcome."""
    weights = mechanism.noise.weights / 2.0**64
    tiny = np.full(shift, 1e-300)  # outcomes that only one of the two can have
    zero, one = np.concatenate([weights, tiny]), np.concatenate([tiny, weights])
    return hockey_stick(zero, one, mechanism.epsilon)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
@pytest.mark.parametrize("delta", [1e-5, 1e-2])
def test_one_label_changes_the_law_of_the_sums_by_epsilon_and_delta_at_most(epsilon: float, delta: float) -> None:
    mechanism = calibrated(epsilon, delta, TWO, rows=6, columns=1)
    rows = whole_rows(np.array([[3.0], [-5.0], [0.1], [1.0], [0.0], [-0.9]]), 1.0, mechanism.length)
    codes = np.array([0, 1, 1, 0, 1, 0])
    deltas = []
    for place in range(6):
        other = codes.copy()
        other[place] = 1 - other[place]
        moved = class_sums(rows, other, 2) - class_sums(rows, codes, 2)
        assert abs(int(moved[0, 0])) == abs(int(moved[0, 1])) == abs(int(rows[place, 0])) <= mechanism.length
        deltas.append(exact_delta(mechanism, abs(int(moved[0, 0]))))
    assert max(deltas) <= delta
    assert max(deltas) >= 0.97 * delta  # and no noise is wasted


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
def test_noise_for_a_sensitivity_of_one_exceeds_delta(epsilon: float) -> None:
    """The twin: as if a label moved the sums by the length of one row, and not by sqrt 2 of it."""
    mechanism = calibrated(epsilon, 1e-5, TWO, rows=6, columns=1)
    planted = replace(mechanism, sigma=mechanism.sigma / np.sqrt(2), length=2 * mechanism.length)
    assert exact_delta(planted, planted.length) > 2e-5


def seen_delta(mechanism: SumsMechanism, draws: int) -> tuple[float, float]:
    """Delta of the best test between two labels, through `release`; and its error of measurement."""
    rows = whole_rows(np.array([[0.6, 0.8], [2.0, -1.0], [0.3, 0.1]]), 1.0, mechanism.length)
    before, after = np.array([0, 1, 2]), np.array([0, 2, 2])
    moved = class_sums(rows, after, 3) - class_sums(rows, before, 3)
    middle = (class_sums(rows, after, 3) + class_sums(rows, before, 3)) / 2
    scale = (mechanism.sigma * mechanism.length) ** 2

    def claims(codes: np.ndarray) -> np.ndarray:
        ratios = [((mechanism.release(rows, codes) - middle) * moved).sum() / scale for _ in range(draws)]
        return np.array(ratios) > mechanism.epsilon

    right, wrong = claims(after).mean(), claims(before).mean()
    grown = np.exp(mechanism.epsilon)
    error = np.sqrt((right * (1 - right) + grown**2 * wrong * (1 - wrong)) / draws)
    return float(right - grown * wrong), float(error)


def test_released_sums_of_several_columns_keep_delta_and_waste_none() -> None:
    """False alarms: four deviations, one in 15,000. The twin has noise for a sensitivity of one: delta is doubled, by
    eight deviations, so that it is missed as seldom."""
    mechanism = calibrated(0.5, 0.1, THREE, rows=3, columns=2)
    found, error = seen_delta(mechanism, 5_000)
    assert 8 * error <= 0.11
    assert 0.1 - 4 * error - 0.01 <= found <= 0.1 + 4 * error
    planted = replace(mechanism, sigma=mechanism.sigma / np.sqrt(2), length=2 * mechanism.length)
    found, error = seen_delta(planted, 5_000)
    assert found > 0.1 + 4 * error


@pytest.mark.parametrize("kind", [np.int16, np.int32])
def test_sums_are_exact_whatever_the_order_of_rows(kind: type) -> None:
    rng = np.random.default_rng(0)
    most = 2**15 - 1 if kind is np.int16 else 2**20
    rows, codes = (most - 2 * rng.integers(0, 3, (5000, 2))).astype(kind), np.minimum(rng.integers(0, 30, 5000), 2)
    truth = [[sum(int(a) for a in rows[codes == c, j]) for c in range(3)] for j in range(2)]
    order = rng.permutation(5000)
    assert class_sums(rows, codes, 3).tolist() == truth == class_sums(rows[order], codes[order], 3).tolist()
    at_once = rows.astype(np.float32).T @ np.eye(3, dtype=np.float32)[codes]  # the twin: all rows in single precision
    assert at_once.astype(np.int64).tolist() != truth


@pytest.mark.parametrize("length", [16, 512, 2**17])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_no_row_is_longer_than_it_may_be(length: int, kind: type) -> None:
    rng = np.random.default_rng(1)
    table = (rng.standard_normal((400, 7)) * 10.0 ** rng.uniform(-3, 12, (400, 1))).astype(kind)
    table[0] = 0
    rows = whole_rows(table, 2.0, length).astype(object)
    assert ((rows**2).sum(axis=1) <= length**2).all()
    whole = table.astype(float) * (length / 2.0)
    short = np.linalg.norm(whole, axis=1) < length - 3
    assert short.sum() > 50 and np.abs(rows[short].astype(float) - whole[short]).max() <= 0.51
    long = np.linalg.norm(whole, axis=1) > length
    assert np.linalg.norm(rows[long].astype(float), axis=1).min() >= length - 3
    shortened = whole[long] * (length / np.linalg.norm(whole[long], axis=1))[:, None]
    assert (np.square(np.rint(shortened)).sum(axis=1) > length**2).any()  # the twin: rounding alone makes some longer


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_the_best_guesser_reaches_the_certified_success_and_no_more(classes: int) -> None:
    """False alarms: four deviations, one in 15,000. Half of the noise, planted, is seen."""
    draws, rng = 5_000, np.random.default_rng(2)
    mechanism = calibrated(4.0, 1e-2, Classes(classes, None), rows=1, columns=2)
    rows = whole_rows(np.array([[0.6, 0.8]]), 1.0, mechanism.length)
    codes = rng.integers(0, classes, draws)

    def right(one: SumsMechanism, row: np.ndarray) -> float:
        return float(
            np.mean([(row[0] @ one.release(row, codes[k : k + 1])).argmax() == codes[k] for k in range(draws)])
        )

    stated = mechanism.certificate(1).guess_success
    error = np.sqrt(stated * (1 - stated) / draws)
    assert stated - 4 * error - 0.01 <= right(mechanism, rows) <= stated + 4 * error
    planted = replace(mechanism, sigma=mechanism.sigma / 2, length=2 * mechanism.length)
    assert right(planted, 2 * rows) > stated + 4 * error


def test_two_classes_have_a_closed_form_and_the_figure_is_never_below() -> None:
    for sigma in (0.3, 1.0, 5.0, 80.0):
        exact = float(ndtr(1 / (np.sqrt(2) * sigma)))
        assert exact <= success_of_sums(sigma, 2) <= exact + 1e-4


@pytest.mark.parametrize(("sigma", "classes"), [(0.5, 2), (1.0, 4), (3.0, 10), (20.0, 10)])
def test_nats_are_never_above_the_bound(sigma: float, classes: int) -> None:
    """The information itself, by a million normals; the twin, a variance twice as large, lies below it."""
    rng = np.random.default_rng(3)
    seen = rng.standard_normal((1_000_000 // classes, classes))
    seen[:, 0] += 1 / sigma
    ratios = (seen - seen[:, :1]) / sigma
    lost = np.log(np.exp(ratios).mean(axis=1))
    truth, error = -lost.mean(), lost.std() / np.sqrt(len(lost))
    assert truth <= nats_of_sums(sigma, classes) + 4 * error
    if sigma >= 3:
        assert truth >= nats_of_sums(np.sqrt(2) * sigma, classes) + 4 * error
    assert nats_of_sums(sigma, classes, 1e-9) > nats_of_sums(sigma, classes)
    assert nats_of_sums(1e-3, classes, 1e-9) == np.log(classes)


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-6, 1e-5), (60.0, 1e-5), (1.0, 1e-14), (800.0, 1e-5)])
def test_noise_that_arithmetic_cannot_keep_is_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(InputError, match="delta"):
        calibrated(epsilon, delta, THREE, rows=1000, columns=20)


def test_arithmetic_is_paid_from_delta() -> None:
    mechanism = calibrated(8.0, 1e-5, Classes(10, None), rows=50_000, columns=1281)
    paid = (1 + np.exp(8.0)) * mechanism.distance
    assert 0 < paid < 5e-6
    half = np.sqrt(2) / (2 * mechanism.sigma)
    ideal = ndtr(half - 4.0 / half) - np.exp(8.0) * ndtr(-half - 4.0 / half)
    assert ideal + paid <= 1e-5


def test_the_certified_success_counts_arithmetic() -> None:
    """A guesser may gain as much by the law of what is drawn, which is a little off the ideal one."""
    mechanism = calibrated(8.0, 1e-5, Classes(10, None), rows=50_000, columns=1281)
    stated = mechanism.certificate(50_000).guess_success
    assert stated - success_of_sums(mechanism.sigma, 10) >= 0.99 * mechanism.distance > 1e-11
