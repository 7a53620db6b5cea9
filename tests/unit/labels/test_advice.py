"""Advice follows from public facts, turns once as epsilon grows, and says why."""

from __future__ import annotations

import pytest

import leakcap as lc
from leakcap.errors import InputError


@pytest.mark.parametrize(("classes", "rows", "columns"), [(7, 9000, 16), (2, 32_000, 100), (10, 50_000, 1280)])
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
    assert "Ridge(epsilon=0.1" in str(lc.labels.advise(0.1, 7, **facts))


@pytest.mark.parametrize("wrong", [{"rows": 0}, {"columns": 0}, {"delta": 1.0}])
def test_facts_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError):
        lc.labels.advise(1.0, 3, **({"rows": 10, "columns": 2} | wrong))
