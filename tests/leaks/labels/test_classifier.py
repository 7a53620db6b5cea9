"""Learning sees observations alone, and labels are privatised once."""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import leakcap as lc
from leakcap.errors import InputError
from leakcap.labels.learning.classifier import Classifier
from tests.unit.labels import learning
from tests.unit.labels.learning import LINEAR

BLOBS, KINDS = learning.BLOBS[::4], learning.KINDS[::4]  # bytes and calls are looked at, however much is learnt


def public_bytes(model: Any) -> bytes:
    held = io.BytesIO()
    pickle.dump(model, held)
    return (
        held.getvalue() + repr(model).encode() + repr(sorted(vars(model))).encode() + str(model.certificate_).encode()
    )


def fixed(monkeypatch: pytest.MonkeyPatch, labels: Any, keep: bool = False) -> bytes:
    """What leaves when the observations are always the same, whatever the labels."""
    krr = lc.labels.KRR(1.0, 3)
    same = lc.labels.KRR(1.0, 3)._classes.of(np.random.default_rng(4).integers(0, 3, len(KINDS)))
    monkeypatch.setattr(lc.labels.KRR, "privatize", lambda self, y: same)
    model = Classifier(LINEAR, krr, rounds=2, random_state=0).fit_private(BLOBS, labels)
    if keep:
        model.labels_ = labels
    return public_bytes(model)


def test_with_the_observations_fixed_every_byte_is_the_same_whatever_the_labels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert fixed(monkeypatch, KINDS) == fixed(monkeypatch, (KINDS + 1) % 3)


def test_the_check_sees_labels_that_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin."""
    assert fixed(monkeypatch, KINDS, keep=True) != fixed(monkeypatch, (KINDS + 1) % 3, keep=True)


def test_fit_private_privatises_once_and_says_so() -> None:
    model = Classifier(clone(LINEAR), lc.labels.auto(1.0, 3), rounds=2, random_state=0).fit_private(BLOBS, KINDS)
    assert model.certificate_.epsilon == 1.0 and model.certificate_.labels == len(KINDS)
    observed, said = model.observed_, model.certificate_
    for penalty in (1.0, 0.1):  # as often as one likes, from the same observations
        model.set_params(base__C=penalty).fit(BLOBS, model.observed_)
        assert model.observed_ is observed and model.certificate_ is said
    with pytest.raises(InputError, match=r"fit\(X, model.observed_\)"):
        model.fit_private(BLOBS, KINDS)
    model.fit(BLOBS, lc.labels.KRR(1.0, 3).privatize(KINDS))
    assert not hasattr(model, "certificate_")  # of whoever privatised: fit saw observations only


def test_observations_are_kept_where_learning_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*given: Any, **more: Any) -> None:
        raise MemoryError

    monkeypatch.setattr("leakcap.labels.learning.classifier.learn", fails)
    model = Classifier(LINEAR, lc.labels.KRR(1.0, 3))
    with pytest.raises(MemoryError):
        model.fit_private(BLOBS, KINDS)
    monkeypatch.undo()
    assert model.certificate_.labels == len(KINDS)
    assert model.fit(BLOBS, model.observed_).score(BLOBS, KINDS) > 0.4


HOLES = BLOBS.copy()
HOLES[-1, 0] = np.nan
MIXED = np.array([0, 1, "missing"], dtype=object)


@pytest.mark.parametrize(
    ("settings", "table", "kinds"),
    [
        ({}, HOLES, KINDS),
        ({"grid": {"c": [1.0]}}, BLOBS, KINDS),
        ({"grid": {"C": []}}, BLOBS, KINDS),
        ({"grid": {"C": [1.0, -1.0]}}, BLOBS, KINDS),
        ({"base": LogisticRegression(C=-1.0)}, BLOBS, KINDS),
        ({"random_state": "a"}, BLOBS, KINDS),
        ({}, BLOBS[1:], KINDS),
        ({}, BLOBS, np.ma.array(KINDS, mask=KINDS == 1)),
        ({}, BLOBS, None),
        ({"mechanism": lc.labels.KRR(1.0, classes=[0, 1, "missing"])}, BLOBS, MIXED[KINDS]),
        ({"mechanism": lc.labels.RRWithPrior(0.1, [0.9, 0.06, 0.04])}, BLOBS, KINDS),
    ],
)
def test_whatever_fails_without_labels_fails_before_they_are_drawn(
    settings: dict[str, Any], table: Any, kinds: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for mechanism in (lc.labels.KRR, lc.labels.RRWithPrior, lc.labels.SubsetSelection):
        monkeypatch.setattr(mechanism, "_observe", lambda *given: pytest.fail("labels were privatised"))
    first = {"mechanism": lc.labels.KRR(1.0, 3), "base": LINEAR, **settings}
    with pytest.raises((InputError, ValueError)):
        Classifier(**first).fit_private(table, kinds)
    mechanism = first.pop("mechanism")
    stages = lc.labels.TwoStage(
        first.pop("base"), 1.0, classes=mechanism.classes if mechanism._classes.named else None, n_classes=3, **first
    )
    if not isinstance(mechanism, lc.labels.RRWithPrior):
        with pytest.raises((InputError, ValueError)):
            stages.fit_private(table, kinds)
