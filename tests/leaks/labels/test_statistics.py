"""Statistics of secret labels: noised sums are all that leaves, labels are summed once, and errors quote none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import leakcap as lc
from leakcap.errors import InputError
from leakcap.labels.statistics.sums import SumsMechanism
from tests.leaks.labels.test_classifier import public_bytes
from tests.unit.labels import learning

BLOBS, KINDS = learning.BLOBS[::4], learning.KINDS[::4]
MODELS = [
    lc.labels.Ridge(1.0, 3, random_state=0),
    lc.labels.Ridge(1.0, 3, refine=2),
    lc.labels.LDA(1.0, 3, random_state=0),
    lc.labels.Logistic(1.0, 3, random_state=0),
    lc.labels.NaiveBayes(1.0, 3),
]


def fixed(monkeypatch: pytest.MonkeyPatch, model: Any, labels: Any, keep: bool = False) -> bytes:
    """What leaves when the noised sums are always the same, whatever the labels."""

    def release(self: Any, rows: Any, codes: Any) -> Any:
        return np.random.default_rng(4).integers(-900, 900, (rows.shape[1], 3))

    monkeypatch.setattr(SumsMechanism, "release", release)
    found = clone(model).fit(BLOBS, labels)
    if keep:
        found.labels_ = labels
    return public_bytes(found)


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_with_the_noised_sums_fixed_every_byte_is_the_same_whatever_the_labels(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fixed(monkeypatch, model, KINDS) == fixed(monkeypatch, model, (KINDS + 1) % 3)


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_the_check_sees_labels_that_are_kept(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin."""
    assert fixed(monkeypatch, model, KINDS, keep=True) != fixed(monkeypatch, model, (KINDS + 1) % 3, keep=True)


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_rows_are_the_same_whatever_the_labels(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is summed, how long its rows may be and how much noise comes to it: of features and settings alone."""
    given = []

    def release(self: Any, rows: Any, codes: Any) -> Any:
        given.append((rows.tobytes(), self.sigma, self.length))
        return np.zeros((rows.shape[1], 3), dtype=np.int64)

    monkeypatch.setattr(SumsMechanism, "release", release)
    for labels in (KINDS, np.where(KINDS == 0, 1, KINDS)):
        clone(model).fit(BLOBS, labels)
    assert given[0] == given[1]


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_labels_are_summed_once(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    real = SumsMechanism.release
    monkeypatch.setattr(SumsMechanism, "release", lambda *given: calls.append(1) or real(*given))
    found = clone(model).fit(BLOBS, KINDS)
    assert calls == [1] and found.certificate_.labels == len(KINDS)
    with pytest.raises(InputError, match="has privatised labels before"):
        found.fit(BLOBS, KINDS)
    assert calls == [1]
    clone(found).fit(BLOBS, KINDS)


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_what_fails_after_the_draw_still_counts_as_spent(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found = clone(model)
    monkeypatch.setattr(type(found), "_learn", lambda *given: (_ for _ in ()).throw(MemoryError))
    with pytest.raises(MemoryError):
        found.fit(BLOBS, KINDS)
    with pytest.raises(InputError, match="has privatised labels before"):
        found.fit(BLOBS, KINDS)


HOLES = BLOBS.copy()
HOLES[-1, 0] = np.nan
SECRET = "a-secret-label"


@pytest.mark.parametrize(
    ("settings", "table", "labels"),
    [
        ({}, HOLES, KINDS),
        ({}, BLOBS[1:], KINDS),
        ({}, BLOBS[:2], KINDS[:2]),
        ({}, BLOBS.astype(str).astype(object) + "x", KINDS),
        ({}, BLOBS[:, 0], KINDS),
        ({}, BLOBS, None),
        ({}, BLOBS, KINDS.astype(float) + np.nan),
        ({}, BLOBS, np.full(len(KINDS), SECRET)),
        ({}, BLOBS, KINDS + 4_217),
        ({"n_classes": None, "classes": ["a", "b", "c"]}, BLOBS, np.full(len(KINDS), SECRET)),
        ({"n_classes": 1}, BLOBS, KINDS * 0),
        ({"n_classes": None}, BLOBS, KINDS),
        ({"n_classes": None, "classes": [0, 1, "missing"]}, BLOBS, KINDS),
        ({"epsilon": 0}, BLOBS, KINDS),
        ({"epsilon": 1e-6}, BLOBS, KINDS),
        ({"epsilon": 90.0}, BLOBS, KINDS),
        ({"delta": 0}, BLOBS, KINDS),
        ({"delta": 1e-15}, BLOBS, KINDS),
    ],
)
@pytest.mark.parametrize("model", MODELS[1:], ids=repr)
def test_whatever_cannot_be_used_is_refused_before_labels_are_summed(
    model: Any, settings: dict[str, Any], table: Any, labels: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SumsMechanism, "release", lambda *given: pytest.fail("labels were summed"))
    with pytest.raises(InputError) as refused:
        clone(model).set_params(**settings).fit(table, labels)
    assert SECRET not in str(refused.value) and "421" not in str(refused.value)


def test_constant_features_are_refused_where_nothing_can_be_learnt() -> None:
    with pytest.raises(InputError, match="constant"):
        clone(MODELS[0]).fit(np.ones_like(BLOBS), KINDS)
