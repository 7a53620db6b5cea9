"""Mechanisms keep nothing, and draw alike whatever the labels are."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from leakcap import labels as mechanisms
from leakcap.labels.mechanisms import integer_law as chances
from leakcap.labels.mechanisms.base import Mechanism
from leakcap.labels.mechanisms.krr import KRR
from tests.leaks.labels.kinds import Labels, Words

MADE: dict[str, Callable[[], Mechanism]] = {
    "KRR": lambda: mechanisms.KRR(1.0, 5),
    "KRR of names": lambda: mechanisms.KRR(1.0, classes=[0, 1, 2, 3, 4]),
    "UnaryBits": lambda: mechanisms.UnaryBits(1.0, 5),
    "UnaryBits, optimised": lambda: mechanisms.UnaryBits(1.0, 5, optimised=True),
    "Laplace": lambda: mechanisms.Laplace(1.0, 5),
    "Gaussian": lambda: mechanisms.Gaussian(1.0, 5),
    "SubsetSelection": lambda: mechanisms.SubsetSelection(1.0, 5),
    "SubsetSelection of 3": lambda: mechanisms.SubsetSelection(1.0, 5, size=3),
    "RRWithPrior": lambda: mechanisms.RRWithPrior(1.0, [0.4, 0.3, 0.28, 0.01, 0.01]),
    "RRWithPrior by rows": lambda: mechanisms.RRWithPrior(1.0, np.random.default_rng(1).dirichlet(np.ones(5), 2000)),
    "RROnBins": lambda: mechanisms.RROnBins(3.0, 0, 4),
}
LABELS = [np.zeros(2000, dtype=int), np.full(2000, 4), np.random.default_rng(2).integers(0, 5, 2000)]


def remembered(made: Mechanism, y: Labels) -> bytes:
    made.privatize(y)
    return pickle.dumps((made, vars(made)))


@pytest.mark.parametrize("name", MADE)
def test_a_mechanism_remembers_nothing_of_the_labels(name: str) -> None:
    assert len({remembered(MADE[name](), y) for y in LABELS}) == 1


class Remembering(KRR):
    """The planted twin: it keeps a figure of the labels it saw last."""

    def _observe(self, codes: Labels) -> npt.NDArray[Any]:
        self.last_ = int(codes.sum())
        return super()._observe(codes)


def test_a_mechanism_that_remembers_would_be_caught() -> None:
    assert len({remembered(Remembering(1.0, 5), y) for y in LABELS}) == 3


def asked_for(made: Mechanism, y: Labels, monkeypatch: Any) -> list[tuple[str, int]]:
    """Which words a mechanism asks the operating system for, where that gives the same words every time."""
    calls: list[tuple[str, int]] = []
    rng = np.random.default_rng(7)

    def recording(dtype: Any, size: int) -> Words:
        calls.append((np.dtype(dtype).name, size))
        return np.frombuffer(rng.bytes(size * np.dtype(dtype).itemsize), dtype=dtype)

    monkeypatch.setattr(chances, "system_words", recording)
    made.privatize(y)
    return calls


@pytest.mark.parametrize("name", MADE)
def test_the_words_drawn_do_not_depend_on_the_labels(name: str, monkeypatch: Any) -> None:
    made = MADE[name]()
    calls = [asked_for(made, y, monkeypatch) for y in LABELS]
    assert calls[0] == calls[1] == calls[2]
    assert sum(size for _, size in calls[0]) >= 2000


def patterns(made: Mechanism, monkeypatch: Any) -> set[tuple[tuple[str, int], ...]]:
    """The requests of 300 calls for one label, each with other words; those that settle rare draws left out."""
    rng, calls = np.random.default_rng(11), list[tuple[str, int]]()

    def recording(dtype: Any, size: int) -> Words:
        if np.dtype(dtype) != np.uint64:
            calls.append((np.dtype(dtype).name, size))
        return np.frombuffer(rng.bytes(size * np.dtype(dtype).itemsize), dtype=dtype)

    monkeypatch.setattr(chances, "system_words", recording)
    found = set()
    for _ in range(300):
        calls.clear()
        made.privatize([1])
        found.add(tuple(calls))
    return found


@pytest.mark.parametrize("name", MADE)
def test_the_words_drawn_do_not_depend_on_what_leaves(name: str, monkeypatch: Any) -> None:
    """Whoever times a call must not learn whether the label was kept."""
    made = MADE[name]()
    if "rows" not in name:  # that one has a prior for many labels
        assert len(patterns(made, monkeypatch)) == 1


def test_a_mechanism_that_spares_kept_labels_would_be_caught(monkeypatch: Any) -> None:
    class Sparing(KRR):
        def _observe(self, codes: Labels) -> npt.NDArray[Any]:
            moved = np.flatnonzero(self.chances.draw(len(codes)))
            found = codes.copy()
            found[moved] = (codes[moved] + 1 + chances.below(self.n_classes - 1, len(moved))) % self.n_classes
            return found

    assert len(patterns(Sparing(1.0, 5), monkeypatch)) == 2


def test_a_mechanism_that_draws_by_label_would_be_caught(monkeypatch: Any) -> None:
    """The planted twin: a label of the first class is left alone, so nothing is drawn for it."""

    class Sparing(KRR):
        def _observe(self, codes: Labels) -> npt.NDArray[Any]:
            found = codes.copy()
            found[codes > 0] = super()._observe(codes[codes > 0]) if (codes > 0).any() else 0
            return found

    calls = [asked_for(Sparing(1.0, 5), y, monkeypatch) for y in LABELS]
    assert len({str(one) for one in calls}) == 3
