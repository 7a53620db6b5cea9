"""What a fit says besides what it leaves: warnings, logs, both streams and errors are the same whatever the labels."""

from __future__ import annotations

import logging
import pickle
import sys
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

import leakcap as lc
from leakcap.labels.learning import teachers
from leakcap.labels.learning.votes import NoisedVotes
from leakcap.labels.statistics.sums import SumsMechanism
from tests.unit.labels import learning

BLOBS, KINDS = learning.BLOBS[::4], learning.KINDS[::4]
OTHERS = [(KINDS + 1) % 3, np.zeros_like(KINDS), np.random.default_rng(1).permutation(KINDS)]


class Talking(LogisticRegression):
    """A teacher that says which labels it has, in all ways there are, and fails where it has many of class 1."""

    def fit(self, X: Any, y: Any) -> Talking:
        told = f"labels {np.bincount(y)}"
        print(told)
        print(told, file=sys.stderr)
        warnings.warn(told, UserWarning, stacklevel=2)
        logging.getLogger("teacher").error(told)
        if (np.asarray(y) == 1).mean() > 0.4:
            raise ValueError(told)
        return super().fit(X, y)


MODELS = {
    "ridge": lc.labels.Ridge(1.0, 3, random_state=0),
    "lda": lc.labels.LDA(1.0, 3, random_state=0, readout="auto"),
    "logistic": lc.labels.Logistic(1.0, 3, random_state=0),
    "bayes": lc.labels.NaiveBayes(1.0, 3),
    "steps": lc.labels.PATE(
        LogisticRegression(max_iter=1), MLPClassifier(max_iter=2, random_state=0), sigma2=4.0, n_teachers=10,
        queries=30, n_classes=3, random_state=0,
    ),
    "talking": lc.labels.PATE(
        Talking(), LogisticRegression(max_iter=2), sigma2=4.0, n_teachers=10, queries=30, n_classes=3, random_state=0,
        prior=lc.labels.Ridge(1.0, random_state=0),
    ),
    "nobody": lc.labels.PATE(
        Talking(), LogisticRegression(), sigma2=4.0, sigma1=4.0, threshold=900, n_teachers=10, queries=30,
        n_classes=3, random_state=0,
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def released_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same noised sums and answers, whatever the labels."""

    def sums(self: Any, rows: Any, codes: Any) -> Any:
        return np.random.default_rng(4).integers(-900, 900, (rows.shape[1], 3))

    def answers(self: Any, votes: Any) -> Any:
        if self.threshold > 0:
            return np.full(30, -1)
        return np.random.default_rng(4).integers(0, 3, 30)

    monkeypatch.setattr(SumsMechanism, "release", sums)
    monkeypatch.setattr(NoisedVotes, "release", answers)


def said(name: str, labels: Any, capfd: Any, caplog: Any) -> list[bytes]:
    """All that a fit says, its error included, and what is left of the model."""
    caplog.clear()
    capfd.readouterr()
    model, error = clone(MODELS[name]), ""
    with warnings.catch_warnings(record=True) as heard, caplog.at_level(logging.DEBUG):
        warnings.simplefilter("always")
        try:
            model.fit(BLOBS, labels)
        except Exception as raised:  # whatever it is, its words are heard
            error = repr((raised, raised.__cause__, raised.__context__))
    warned = [(one.category.__name__, str(one.message)) for one in heard]
    told = [repr(warned), repr([one.getMessage() for one in caplog.records]), repr(capfd.readouterr()), error]
    steps = getattr(getattr(model, "student_", None), "n_iter_", None)
    return [*(one.encode() for one in told), repr(steps).encode(), repr(model).encode(), pickle.dumps(model)]


@pytest.mark.parametrize("name", MODELS)
def test_a_fit_says_the_same_whatever_the_labels(name: str, capfd: Any, caplog: Any) -> None:
    first = said(name, KINDS, capfd, caplog)
    for labels in OTHERS:
        assert said(name, labels, capfd, caplog) == first
    assert bool(first[3]) == (name == "nobody")


@pytest.mark.parametrize("name", ["talking", "nobody"])
def test_teachers_that_are_heard_are_caught(
    name: str, capfd: Any, caplog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin: nothing is silenced while teachers learn."""

    def heard(compute: Any, things: Any) -> None:
        for thing in things:
            compute(thing)

    monkeypatch.setattr(teachers, "each_unheard", heard)
    assert said(name, KINDS, capfd, caplog) != said(name, OTHERS[0], capfd, caplog)
