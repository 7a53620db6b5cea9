"""What cannot be encoded is refused in our own words, before anything is drawn, and no value is quoted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import leakcap as lc
from tests.refusals import refusal
from tests.unit.obfuscation.pools import FEW, pool

Encoder = lc.obfuscation.Encoder
X, y = pool()
SECRET = "777.125"


def with_cell(value: Any) -> Any:
    table = X.astype(object)
    table[3, 3] = value
    return table


@pytest.mark.parametrize(
    ("settings", "rows", "labels", "words"),
    [
        ({"mix": 49}, X, y, "mix is 49 and 48 rows of every class"),
        ({}, X, np.full(len(X), "ash"), "same label"),
        ({}, np.where(np.arange(12) == 3, np.nan, X), y, "missing or infinite"),
        ({}, with_cell(np.inf), y, "missing or infinite"),
        ({}, with_cell(SECRET), y, "must be numbers"),
        ({}, with_cell(None), y, "must be numbers"),
        ({}, np.full_like(X, 777.125), y, "all rows are the same"),
        ({}, X[0], y, "a table"),
        ({}, X, y[1:], "an entry for every row"),
        ({}, X, [None, *y[1:]], "some labels are missing"),
        ({}, X, [float("nan"), *np.arange(len(X) - 1) % 2], "some labels are missing"),
        ({}, X, np.array([SECRET, *range(len(X) - 1)], dtype=object), "all text or all numbers"),
        ({}, X, np.random.default_rng(0).normal(size=len(X)), "look like measurements"),
        ({}, X, np.where(np.arange(len(X)) == 0, SECRET, y), "a class has a single row"),
        ({"rows_sampled": 180}, X, y, "from 3 to 177"),
        ({"rows_released": 8}, X, y, "at least 9"),
        ({}, X[:, :11], y, "choose mask_dim=11 or fewer"),
        ({"blocks": 4}, np.concatenate([X, X[:, :1]], axis=1), y, "blocks must divide"),
        ({"public": X}, X, y, r"must be \(X, y\)"),
        ({"public": (X[:, :3], y)}, X, y, "rows have 3 columns"),
    ],
)
def test_a_pool_that_cannot_be_encoded_is_refused(settings: Any, rows: Any, labels: Any, words: str) -> None:
    drawn = Encoder(12, **{**FEW, "noise": 0.1, "draws": 0, **settings})
    refusal(lambda: drawn.encode(rows, labels), words, lc.InputError, (SECRET,))
    drawn_after_all = Encoder(12, **FEW, draws=0, noise=0.1) if settings else drawn
    assert drawn_after_all.encode(X, y)[0].shape == (180, 12), "nothing was spent"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "give cap="),
        ({"noise": 0, "cap": 0.6}, "without noise no cap holds"),
        ({"noise": 0.1, "cap": 0.6}, "not both"),
        ({"noise": -1}, "0 or above"),
        ({"noise": "much"}, "must be a number"),
        ({"cap": 0.5}, "coin flip"),
        ({"cap": lc.mutual_information(0.1)}, "caps on membership"),
        ({"noise": 0.1, "mix": 0}, "at least 1"),
        ({"noise": 0.1, "norm": "longest"}, "one of"),
        ({"noise": 0.1, "scale": 2.0}, "norm='ball'"),
        ({"noise": 0.1, "queries": "sometimes"}, "one of"),
        ({"noise": 0.1, "blocks": 5}, "multiple of blocks"),
        ({"noise": 0.1, "name": "trees"}, "give ledger= too"),
        ({"noise": 0.1, "confidence": 1.0}, "strictly between"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: Any, words: str) -> None:
    refusal(lambda: Encoder(12, **settings), words, lc.InputError)


def test_constant_columns_are_said() -> None:
    encoder = Encoder(12, **FEW, draws=0, noise=0.1)
    encoder.encode(np.where(np.arange(12) == 3, 1.0, X), y)
    assert any("1 of them are the same in every row" in note for note in encoder.notes)


def test_models_that_do_not_fit_are_refused() -> None:
    encoder = Encoder(12, **FEW, draws=0, noise=0.1)
    refusal(lambda: encoder.key, "nothing was encoded yet")
    encoder.encode(X, y)
    for model, words in (
        (object(), "needs predict_proba or predict"),
        (lambda rows: np.zeros((len(rows), 2)), "3 scores for every row"),
        (lambda rows: np.full(len(rows), 3), "from 0 to 2"),
        (lambda rows: np.full((len(rows), 3), np.nan), "no finite scores"),
        (lambda rows: np.full(len(rows), "ash"), "must be numbers"),
    ):
        refusal(lambda model=model: encoder.predict(model, X), words, lc.InputError)
    refusal(lambda: encoder.predict(lambda rows: rows, X[:, :5]), "rows have 5 columns")
    refusal(lambda: encoder.decode(np.zeros((2, 2, 2, 2))), "a row for every query")
