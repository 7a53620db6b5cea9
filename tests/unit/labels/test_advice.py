"""Advice follows from public facts, turns once as epsilon grows, and says why."""

from __future__ import annotations

import math

import numpy as np
import pytest

import leakcap as lc
from leakcap.errors import InputError
from leakcap.labels import ways


@pytest.mark.parametrize(("classes", "rows", "columns"), [(7, 9000, 16), (2, 32_000, 100), (10, 50_000, 256)])
def test_it_turns_once_from_sums_to_responses(classes: int, rows: int, columns: int) -> None:
    levels = (0.05, 0.1, 0.29, 0.5, 1.0, 2.0, 4.0, 8.0)
    said = [lc.labels.advise(one, classes, rows=rows, columns=columns) for one in levels]
    methods = [one.method for one in said]
    assert methods == sorted(methods, reverse=True) and len(set(methods)) == 2
    assert [one.nats for one in said] == sorted(one.nats for one in said)


def test_without_curator_or_delta_there_are_no_sums() -> None:
    facts = {"rows": 9000, "columns": 16}
    assert lc.labels.advise(0.1, 7, **facts).method == "statistics"
    assert "nobody sees" in str(lc.labels.advise(0.1, 7, **facts, curator=False))
    assert "delta is 0" in str(lc.labels.advise(0.1, 7, **facts, delta=0.0))
    assert "LDA(epsilon=0.1, n_classes=7, readout='auto')" in str(lc.labels.advise(0.1, 7, **facts))
    assert "Logistic(epsilon=0.5, n_classes=7)" in str(lc.labels.advise(0.5, 7, **facts))
    assert [lc.labels.advise(one, 7, **facts).model for one in (0.1, 0.5, 4)] == ["LDA", "Logistic", "Classifier"]


def test_observations_that_tell_half_of_labels_are_advised_however_few_where_sums_are_noisier() -> None:
    facts = {"rows": 1000, "columns": 200}
    said = lc.labels.advise(4.0, 10, **facts)
    assert said.method == "responses" and said.nats < 1 and said.cost == 0
    assert lc.labels.advise(2.0, 10, **facts).method == "statistics"  # they tell a fifth, and follow chance
    assert lc.labels.advise(2.0, 2, rows=400, columns=30).method == "responses"  # four nats for each coefficient
    assert lc.labels.advise(4.0, 10, rows=1000, columns=2000).nats == pytest.approx(said.nats / 5)  # as many as rows


@pytest.mark.parametrize(("classes", "seen"), [(2, 1 / math.sqrt(math.pi)), (3, 1.5 / math.sqrt(math.pi))])
def test_the_mean_of_the_largest_normal_has_a_closed_form_for_few(classes: int, seen: float) -> None:
    assert ways._largest_normal(classes) == pytest.approx(seen, rel=1e-9)


@pytest.mark.parametrize("classes", [2, 5, 30])
def test_no_spread_of_true_scores_loses_more_by_errors_than_the_figure_says_and_one_loses_as_much(classes: int) -> None:
    """Drawn: what choosing by scores with errors loses, beside the largest chance. Four deviations of the mean."""
    rng, nats = np.random.default_rng(0), 50.0
    error = math.sqrt(classes / (2 * nats))
    most = ways._WaysCompared(classes, nats, doubt=math.inf, noise=0.0).cost
    lost, doubt = [], []
    for spread in (0.2, 0.5, 0.79, 1.2, 3.0):
        true = spread * error * rng.standard_normal((100_000, classes))
        chosen = (true + error * rng.standard_normal(true.shape)).argmax(axis=1)
        loss = (true.max(axis=1) - true[np.arange(len(true)), chosen]) / classes
        lost.append(loss.mean())
        doubt.append(4 * loss.std() / math.sqrt(len(loss)))
        assert lost[-1] <= most + doubt[-1]
    assert max(lost) >= most - doubt[2] and max(lost) == lost[2]
    assert max(lost) > 0.9 * most > 0.5 * most > lost[0] - doubt[0] - 0.4 * most  # the twin: other spreads lose less


def test_as_noise_in_sums_grows_observations_cost_less_beside_them() -> None:
    costs = [ways._WaysCompared(4, 50.0, doubt=3.0, noise=noise).cost for noise in (0.0, 1.0, 2.9, 3.0, 9.0)]
    assert costs == sorted(costs, reverse=True) and costs[0] > costs[2] > costs[3] == costs[4] == 0


def test_where_one_class_is_frequent_observations_tell_less() -> None:
    facts = {"rows": 71_000, "columns": 160}
    even, known = (lc.labels.advise(0.5, 2, **facts, prior=prior) for prior in (None, [0.89, 0.11]))
    assert known.nats < even.nats and known.method == "statistics"
    assert "auto(4, 2, prior)" in str(lc.labels.advise(4.0, 2, **facts, prior=[0.89, 0.11]))


def test_the_choice_of_a_mechanism_says_what_and_why() -> None:
    said = str(lc.labels.auto(4.0, 10))
    assert said.startswith(repr(lc.labels.auto(4.0, 10))) and "tells 1.58 nats" in said
    assert said.index("SubsetSelection 1.27") < said.index("UnaryBits 1.23")
    assert "by this prior" in str(lc.labels.auto(1.0, prior=[0.5, 0.3, 0.2]))
    assert str(lc.labels.KRR(4.0, 10)) == repr(lc.labels.KRR(4.0, 10))


def test_the_choice_of_a_mechanism_says_which_of_three_ways_is_advised_and_why() -> None:
    facts = {"rows": 50_000, "columns": 64}
    for epsilon in (0.1, 1.0, 4.0, 8.0):
        said = str(lc.labels.auto(epsilon, 10, **facts))
        assert said.endswith(str(lc.labels.advise(epsilon, 10, **facts)))
        assert "lc.labels.PATE" in said or "Responses" in said
    open_words = str(lc.labels.auto(1.0, 10))
    rows = ways.enough_rows(lc.labels.auto(1.0, 10), None)
    assert f"with fewer than {round(rows, -3):,.0f} rows for each column noised sums are advised" in open_words
    assert all(f"lc.labels.{one})" in open_words for one in ("Logistic", "Classifier", "PATE"))
    assert "as well as noised sums teach responses" in str(lc.labels.auto(9.0, 10))


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_enough_rows_are_where_advice_turns(epsilon: float) -> None:
    rows = ways.enough_rows(lc.labels.auto(epsilon, 5), None)
    methods = [lc.labels.advise(epsilon, 5, rows=int(30 * rows * share), columns=30).method for share in (0.99, 1.01)]
    assert methods == ["statistics", "responses"]


def test_a_prior_that_leaves_one_class_gives_observations_nothing_to_tell() -> None:
    assert lc.labels.advise(1.0, 2, rows=100, columns=3, prior=[1.0, 0.0]).nats == 0


@pytest.mark.parametrize("wrong", [{"rows": 10}, {"columns": 10}, {"rows": 0, "columns": 3}])
def test_words_need_rows_and_columns(wrong: dict[str, int]) -> None:
    with pytest.raises(InputError):
        lc.labels.auto(1.0, 3, **wrong)


@pytest.mark.parametrize("wrong", [{"rows": 0}, {"columns": 0}, {"delta": 1.0}])
def test_facts_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError):
        lc.labels.advise(1.0, 3, **({"rows": 10, "columns": 2} | wrong))
