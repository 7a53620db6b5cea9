"""Statistics without rows or settings: the message says what to write, and that then works."""

from __future__ import annotations

import functools
import re
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.errors import UnknownArgument
from tests.refusals import refusal

ROWS = np.random.default_rng(0).integers(0, 100, 300).astype(float)
WORDS = np.array(["A", "B", "C"] * 100)
STATISTICS = [name for name in lc.stats.__all__ if name != "group_by"]  # which makes a function of its settings
PRIVATE = 4700 + 11.5  # what no message may quote
WITHOUT_ROWS: dict[str, dict[str, Any]] = {
    "quantile": {"q": 0.5},
    "median": {"grid": range(0, 101, 5)},
    "histogram": {"edges": [0, 18, 65, 120]},
    "categories": {"levels": ["A", "B"]},
}


def tried(proposal: str, name: str) -> None:
    """What a message proposes, as it stands there."""
    (call,) = re.findall(r"lc\.plan\(.*\)", proposal)
    rows = {"categories": WORDS, "share": (ROWS > 50).astype(float)}.get(name, ROWS)
    plan = eval(call, {"lc": lc, "functools": functools, "rows": rows})
    assert plan.certificate is not None


@pytest.mark.parametrize("name", STATISTICS)
def test_without_rows_the_proposal_works(name: str) -> None:
    statistic = getattr(lc.stats, name)
    for settings in ({}, WITHOUT_ROWS.get(name, {})):
        told = str(refusal(lambda settings=settings: statistic(**settings), "takes the rows first"))
        tried(told, name)
        assert not settings or next(iter(settings)) + "=" in told
    tried(str(refusal(lambda: statistic(PRIVATE), "takes the rows first", private=(str(PRIVATE),))), name)


@pytest.mark.parametrize("name", ["histogram", "categories"])
def test_without_settings_the_proposal_works(name: str) -> None:
    statistic = getattr(lc.stats, name)
    for call in (lambda: statistic([PRIVATE, 0.0]), lambda: lc.plan(statistic, ROWS, cap=0.55)):
        tried(str(refusal(call, f"lc.stats.{name} needs", private=(str(PRIVATE),))), name)


def test_settings_without_a_name_are_told_from_rows() -> None:
    told = refusal(
        lambda: lc.plan(functools.partial(lc.stats.quantile, 0.5), ROWS, cap=0.55), "in the place of the rows"
    )
    tried(str(told), "quantile")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: lc.stats.histogram(ROWS, bins=10), "edges of the bins"),
        (lambda: lc.stats.variance(ROWS, ddof=0), "rows less one"),
        (lambda: lc.stats.mean(ROWS, axis=0), "leave it out"),
        (lambda: lc.stats.mean(ROWS, weight=0), "it takes rows"),
        (lambda: lc.plan(functools.partial(lc.stats.histogram, bins=10), ROWS, cap=0.55), "edges of the bins"),
        (lambda: lc.plan(lc.stats.histogram, ROWS, edges=[0, 50, 100], cap=0.55), r"functools\.partial\(lc\.stats"),
        (lambda: lc.plan(lc.stats.quantile, ROWS, q=0.9, cap=0.55), r"functools\.partial\(lc\.stats"),
    ],
)
def test_settings_that_others_have_are_put_right(call: Any, words: str) -> None:
    refusal(call, words, kind=UnknownArgument)
