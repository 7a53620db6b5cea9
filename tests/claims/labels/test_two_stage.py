"""Two stages keep more labels than one, and learn from them."""

from __future__ import annotations

import numpy as np
import pytest

from leakcap.labels.learning.classifier import Classifier
from leakcap.labels.learning.two_stage import TwoStage
from tests.unit.labels.staged import LINEAR, X, y


def kept(model: TwoStage, labels: np.ndarray) -> float:
    """Share of the second part's labels that came through."""
    return float((model.observed_[1] == labels[~model.part_]).mean())


def test_the_second_stage_keeps_more_labels_than_randomised_response_would() -> None:
    model = TwoStage(LINEAR, 2.0, 10, random_state=0).fit_private(X, y)
    alone = np.exp(2) / (np.exp(2) + 9)
    assert kept(model, y) > alone + 0.1  # its standard error is 0.017


def test_the_check_sees_a_first_stage_that_taught_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: predictions of other rows are no prior."""
    true = Classifier.fit
    shuffled = np.random.default_rng(0).permutation
    monkeypatch.setattr(Classifier, "fit", lambda self, table, seen: true(self, shuffled(table), seen))
    model = TwoStage(LINEAR, 2.0, 10, random_state=0).fit_private(X, y)
    assert not kept(model, y) > np.exp(2) / (np.exp(2) + 9) + 0.1
