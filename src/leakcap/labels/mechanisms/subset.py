"""Subset selection: a random set of classes that holds the label more often than chance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats
from leakcap.ground.proofs import proves
from leakcap.labels.mechanisms import guessing, information
from leakcap.labels.mechanisms.base import Mechanism
from leakcap.labels.mechanisms.integer_law import ONE, Chances, below, count_up

__all__ = ["SubsetSelection", "best_size"]

_ENTRIES = 1 << 24


def best_size(epsilon: float, n_classes: int) -> int:
    """The size that says most about a label of which nothing is known: where the information peaks."""
    x = np.exp(-epsilon)
    ideal = n_classes * (x * (epsilon - 1 + x) / (1 - x) ** 2 if epsilon > 1e-3 else 1 / 2 - epsilon / 6)
    near = {min(max(1, size), n_classes - 1) for size in (int(ideal), int(ideal) + 1)}
    return max(sorted(near), key=lambda size: information.of_even_subsets(epsilon, n_classes, size))


@proves("label-mechanisms")
class SubsetSelection(Mechanism):
    """A uniformly random set of `size` classes, but sets with the label in them are `e^epsilon` times likelier.

    Guarantee: epsilon-DP for the label. With the best size, which is taken if `size` is left out, no epsilon-DP
    mechanism says more about a label of which nothing is known (Wang et al. 2016). Size 1 is `KRR`.

    Args:
        epsilon: differential privacy of each label, at least 1e-6.
        n_classes: number of classes, at least 2; labels are then whole numbers from 0 to `n_classes` - 1.
        classes: names of the classes instead, in the order of the columns. Public: never taken from the labels.
        size: number of classes in the set, at least 1 and below the number of classes; the best one if left out.

    Attributes:
        size: number of classes in the set.

    Raises:
        InputError: the size reaches the number of classes, epsilon is too small, or the classes are missing or repeat.

    Examples:
        >>> SubsetSelection(epsilon=1.0, n_classes=10).size
        3
    """

    name = "subset selection"

    def __init__(
        self,
        epsilon: float,
        n_classes: int | None = None,
        classes: Sequence[Any] | None = None,
        *,
        size: int | None = None,
    ) -> None:
        super().__init__(epsilon, n_classes, classes)
        if size is None:
            size = best_size(self.epsilon, self.n_classes)
        self.size = checks.count(size=size)
        if self.size >= self.n_classes:
            raise InputError("size must be below the number of classes: the set of all classes says nothing")
        outside = (self.n_classes - self.size) / self.size * np.exp(-self._working_epsilon)
        left_out = count_up(float(outside / (1 + outside)))
        self.chances = Chances([ONE - left_out, left_out])  # whether the label is in the set (0) or not (1)

    def _observe(self, codes: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        found = np.empty((len(codes), self.n_classes), dtype=bool)
        rows = max(1, _ENTRIES // self.n_classes)
        for start in range(0, len(codes), rows):
            block = codes[start : start + rows]
            outside = self.chances.draw(len(block)) == 1
            # Every label draws both sets: the time of a call does not reveal which one left.
            found[start : start + rows] = np.where(
                outside[:, None], self._sets(block, self.size, False), self._sets(block, self.size - 1, True)
            )
        return found

    def _sets(self, codes: npt.NDArray[np.int64], others: int, with_label: bool) -> npt.NDArray[np.bool_]:
        """Uniform sets of `others` classes besides the label, by Floyd's rule; the label put in or left out."""
        row = np.arange(len(codes))
        last = self.n_classes - 1  # the others are 0 .. last - 1; the label's place is shifted in below
        chosen = np.zeros((len(codes), self.n_classes), dtype=bool)
        for newest in range(last - others, last):
            drawn = below(newest + 1, len(codes))
            drawn[chosen[row, drawn]] = newest
            chosen[row, drawn] = True
        chosen[row, last] = chosen[row, codes]
        chosen[row, codes] = with_label
        return chosen

    def scores(self, observed: npt.ArrayLike) -> npt.NDArray[np.float32]:
        """`epsilon` inside the set, 0 outside.

        Args:
            observed: what `privatize` gave.

        Returns:
            `(n, n_classes)`, in nats.

        Raises:
            InputError: `observed` is not what this mechanism gives.
        """
        given = np.asarray(observed)
        if given.ndim != 2 or given.shape[1] != self.n_classes or given.dtype.kind not in "biuf":
            raise InputError(f"observed must be a table with {self.n_classes} columns, as privatize() gives")
        if not ((given == 0) | (given == 1)).all() or (given.sum(axis=1) != self.size).any():
            raise InputError(f"observed must mark {self.size} classes in every row, as privatize() gives")
        score = given.astype(np.float32)
        score *= np.float32(self.epsilon)
        return score

    def _information(self, prior: Floats) -> Floats:
        return np.array([information.of_subsets(row, *self._weights) for row in prior])

    def _guesses(self, prior: Floats) -> Floats:
        return np.array([guessing.of_subsets(row, *self._weights) for row in prior])

    @property
    def _weights(self) -> tuple[int, float, float]:
        """Size; how much likelier than even a set is with the label in it, and with the label outside."""
        inside, outside = self.chances.probabilities
        return (
            self.size,
            float(inside * self.n_classes / self.size),
            float(outside * self.n_classes / (self.n_classes - self.size)),
        )

    def _settings(self) -> tuple[tuple[str, float], ...]:
        return (("size", float(self.size)),)
