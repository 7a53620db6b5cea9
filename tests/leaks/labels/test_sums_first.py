"""With sums and responses fixed, everything about a model that had sums for a prior is the same whatever the labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.labels.learning.classifier import Classifier
from leakcap.labels.learning.two_stage import TwoStage
from leakcap.labels.mechanisms import integer_law, krr, with_prior
from leakcap.labels.statistics.sums import SumsMechanism, class_sums
from tests.leaks.labels.test_classifier import public_bytes
from tests.unit.labels import learning
from tests.unit.labels.learning import LINEAR

BLOBS, KINDS = learning.BLOBS[::4], learning.KINDS[::4]
MODELS = [
    TwoStage(LINEAR, 2.0, 3, rounds=2, random_state=0, prior=lc.labels.Ridge(1.0, random_state=0)),
    Classifier(LINEAR, lc.labels.KRR(1.0, 3), rounds=2, random_state=0, prior=lc.labels.NaiveBayes(1.0)),
]


def fixed(model: Any, labels: Any, monkeypatch: pytest.MonkeyPatch, of: Any = None, keep: bool = False) -> bytes:
    """What leaves when sums (of the labels `of`, without noise) and responses are the same whatever the labels."""
    summed = KINDS if of is None else of
    monkeypatch.setattr(SumsMechanism, "release", lambda self, rows, codes: class_sums(rows, summed, 3))
    monkeypatch.setattr(lc.labels.KRR, "_observe", lambda self, codes: np.arange(len(codes)) % 3)
    monkeypatch.setattr(lc.labels.RRWithPrior, "_observe", lambda self, codes: self.prior.argmax(axis=1))
    found = type(model)(**model.get_params(deep=False)).fit_private(BLOBS, labels)
    if keep:
        found.labels_ = labels
    return public_bytes(found)


@pytest.mark.parametrize("model", MODELS, ids=lambda one: type(one).__name__)
def test_with_sums_and_responses_fixed_every_byte_is_the_same_whatever_the_labels(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fixed(model, KINDS, monkeypatch) == fixed(model, (KINDS + 1) % 3, monkeypatch)


@pytest.mark.parametrize("model", MODELS, ids=lambda one: type(one).__name__)
def test_the_check_sees_other_sums_and_labels_that_are_kept(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twins."""
    other = (KINDS + 1) % 3
    assert fixed(model, KINDS, monkeypatch) != fixed(model, KINDS, monkeypatch, of=other)
    assert fixed(model, KINDS, monkeypatch, keep=True) != fixed(model, other, monkeypatch, keep=True)


@pytest.mark.parametrize("model", MODELS, ids=lambda one: type(one).__name__)
def test_as_much_randomness_is_drawn_for_responses_whatever_the_labels(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How many numbers are asked for, draw by draw."""
    monkeypatch.setattr(SumsMechanism, "release", lambda self, rows, codes: class_sums(rows, KINDS, 3))
    drawn: list[list[tuple[str, int]]] = []

    def below(n: int, size: int) -> Any:
        drawn[-1].append(("below", size))
        return integer_law.below(n, size)

    draw = integer_law.Chances.draw

    def chances(self: Any, size: int) -> Any:
        drawn[-1].append(("chances", size))
        return draw(self, size)

    for home in (krr, with_prior):
        monkeypatch.setattr(home, "below", below)
    monkeypatch.setattr(integer_law.Chances, "draw", chances)
    for labels in (KINDS, (KINDS + 1) % 3):
        drawn.append([])
        type(model)(**model.get_params(deep=False)).fit_private(BLOBS, labels)
    assert drawn[0] == drawn[1] and len(drawn[0]) > 1
