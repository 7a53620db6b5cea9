"""Two stages see observations alone."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.labels.learning.two_stage import TwoStage
from tests.unit.labels import staged
from tests.unit.labels.staged import LINEAR

BLOBS, KINDS = staged.BLOBS[::4], staged.KINDS[::4]  # bytes are compared, however much is learnt


def public_bytes(monkeypatch: pytest.MonkeyPatch, labels: np.ndarray, split: Any = None) -> bytes:
    """What leaves when both mechanisms observe the same, whatever the labels."""
    monkeypatch.setattr(
        lc.labels.SubsetSelection, "privatize", lambda self, y: np.eye(4, dtype=bool)[np.arange(len(y)) % 4]
    )
    monkeypatch.setattr(lc.labels.KRR, "privatize", lambda self, y: np.arange(len(y)) % 4)
    monkeypatch.setattr(lc.labels.RRWithPrior, "privatize", lambda self, y: self.prior.argmax(axis=1))
    model = TwoStage(LINEAR, 1.0, 4, first=lc.labels.KRR(1.0, 4), rounds=2, random_state=0)
    if split is not None:
        monkeypatch.setattr(TwoStage, "_split", split)
    model.fit_private(BLOBS, labels)
    return pickle.dumps(model) + repr(model).encode() + str(model.certificate_).encode()


def test_with_the_observations_fixed_every_byte_is_the_same_whatever_the_labels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert public_bytes(monkeypatch, KINDS) == public_bytes(monkeypatch, (KINDS + 1) % 4)


def test_the_check_sees_a_split_by_label(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin."""
    found = [
        public_bytes(monkeypatch, labels, lambda self, n, labels=labels: (labels < 2, np.random.RandomState(0)))
        for labels in (KINDS, (KINDS + 1) % 4)
    ]
    assert found[0] != found[1]
