"""Mechanisms that noise each entry of the one-hot vector alone: one law for a 0, another for the 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError
from leakcap.ground.arrays import Floats
from leakcap.labels.mechanisms import guessing, information
from leakcap.labels.mechanisms.base import Mechanism
from leakcap.labels.mechanisms.integer_law import Chances

__all__ = ["CoordinateMechanism"]

_ENTRIES = 1 << 24  # noised at once: bounds the memory beside the result


class CoordinateMechanism(Mechanism):
    """Mechanisms on entries: a label changes two of them, so epsilon is twice what one entry may give away."""

    zero: Chances  # of an entry that is 0, over the outcomes of `values`
    one: Chances  # of the entry that is 1
    values: npt.NDArray[Any]  # what is written for each outcome

    def _observe(self, codes: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        found = np.empty((len(codes), self.n_classes), dtype=self.values.dtype)
        rows = max(1, _ENTRIES // self.n_classes)
        for start in range(0, len(codes), rows):
            block = codes[start : start + rows]
            outcome = self.zero.draw(len(block) * self.n_classes).reshape(len(block), self.n_classes)
            outcome[np.arange(len(block)), block] = self.one.draw(len(block))
            found[start : start + rows] = self.values[outcome]
        return found

    def _table(self, observed: npt.ArrayLike) -> npt.NDArray[Any]:
        """The observations, checked."""
        given = np.asarray(observed)
        if given.ndim != 2 or given.shape[1] != self.n_classes or given.dtype.kind not in "biuf":
            raise InputError(f"observed must be a table of numbers with {self.n_classes} columns, as privatize() gives")
        if not np.isfinite(given).all():
            raise InputError("observed must hold finite numbers only, as privatize() gives")
        return given

    def _information(self, prior: Floats) -> Floats:
        zero, one = self.zero.probabilities, self.one.probabilities
        return np.array([information.of_coordinates(row, zero, one) for row in prior])

    def _guesses(self, prior: Floats) -> Floats:
        zero, one = self.zero.probabilities, self.one.probabilities
        return np.array([guessing.of_coordinates(row, zero, one) for row in prior])
