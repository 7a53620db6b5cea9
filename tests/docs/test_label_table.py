"""What the guide on private labels says of methods is what the records say, and what is advised today."""

from __future__ import annotations

import re

import pytest
from benchmarks.label_methods import TAKEN, measured
from benchmarks.label_table import PAGE, SETS, advice, ahead, filled
from benchmarks.records import stored

TEXT = PAGE.read_text(encoding="utf-8")
WORDS = " ".join(TEXT.split())


def test_tables_of_the_page_are_made_from_the_records() -> None:
    assert filled(TEXT) == TEXT, "run `python -m benchmarks.label_table`"
    planted = TEXT.replace("91.0 (Logistic)", "89.4 (Logistic)")
    assert planted != TEXT and filled(planted) == TEXT  # the twin: a figure of another day is seen


@pytest.mark.parametrize("name", SETS)
def test_advice_in_the_table_is_that_of_the_record(name: str) -> None:
    (kept,) = [one for one in stored() if one.name == f"labels-methods-{name}"]
    assert f", {SETS[name][1]:,} rows to learn from" in kept.claim
    said = re.findall(r"epsilon ([\d.]+): .*?; advised: (\w+), ([\d.]+) short", kept.seen)
    assert len(said) >= 4
    for epsilon, advised, short in said:
        assert TAKEN[advice(SETS[name], float(epsilon)).model] == advised
        assert ahead(name, "best", float(epsilon))[0] == pytest.approx(float(short), abs=0.11)  # of rounded means


def test_figures_between_the_tables_are_those_of_the_records() -> None:
    places = [ahead(name, "best", epsilon) for name in SETS for epsilon in measured(name)]
    far = sum(short > 1 + error for short, error in places)
    assert f"In {far} of {len(places)} places" in WORDS
    short, error = ahead("beans", "responses", 2.0)
    assert f"ahead, by {short:.1f} ± {error:.1f} points" in WORDS
    short, error = ahead("fresh-later-few", "logistic", 4.0)
    assert f"behind them by {-short:.1f} ± {error:.1f}:" in WORDS
