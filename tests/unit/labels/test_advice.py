"""Advice follows from public facts, turns once as epsilon grows, and says why."""

from __future__ import annotations

import pytest

import leakcap as lc
from leakcap.errors import InputError


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


def test_observations_that_tell_nearly_all_are_as_good_as_labels() -> None:
    """Rows too few for a hundred nats a coefficient whatever epsilon is."""
    facts = {"rows": 5000, "columns": 200}
    assert lc.labels.advise(8.0, 10, **facts).method == "responses" and lc.labels.advise(8.0, 10, **facts).nats < 10
    assert lc.labels.advise(4.0, 10, **facts).method == "statistics"
    assert lc.labels.advise(8.0, 2, **facts, prior=[0.9, 0.1]).method == "responses"


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


@pytest.mark.parametrize("wrong", [{"rows": 0}, {"columns": 0}, {"delta": 1.0}])
def test_facts_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError):
        lc.labels.advise(1.0, 3, **({"rows": 10, "columns": 2} | wrong))
