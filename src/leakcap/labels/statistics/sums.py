"""The one mechanism of label-private statistics: rows of a public table, summed by class, with Gaussian noise.

Rows are shortened to a public length and brought to whole numbers, sums are exact, and the noise is drawn in whole
numbers too: what leaves is a sum of integers, whose law is known to the last digit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.certificates.labels import SUMS, SUMS_ASSUMPTIONS, LabelCertificate
from leakcap.errors import InputError
from leakcap.ground.proofs import proves
from leakcap.labels.mechanisms.classes import Classes
from leakcap.labels.mechanisms.gaussian import least_sigma
from leakcap.labels.statistics.grid_noise import LEAST_DEVIATION, GridNoise, grid_points
from leakcap.labels.statistics.guesses import nats_of_sums, success_of_sums
from leakcap.version import __version__

__all__ = ["SumsMechanism", "calibrated", "class_sums", "whole_rows"]

_MAX_POINTS = 2**23  # of the table of chances
_MAX_LENGTH = 2**20  # of a row, in steps of the grid
_FINER = 20  # rounding of rows is to be so much smaller than the noise
_AT_ONCE = 4096  # rows


@dataclass(frozen=True)
class SumsMechanism:
    """How sums by class are noised: all of it is public.

    Args:
        epsilon: differential privacy of each label.
        delta: probability with which epsilon may fail.
        sigma: deviation of the noise on every entry, in lengths of the longest row.
        length: length of the longest row, in steps of the grid.
        columns: columns of the table.
        classes: the classes.
    """

    epsilon: float
    delta: float
    sigma: float
    length: int
    columns: int
    classes: Classes

    @cached_property
    def noise(self) -> GridNoise:
        """The noise on one entry, in steps of the grid."""
        return GridNoise(self.sigma * self.length)

    @property
    def distance(self) -> float:
        """Total variation, at most, between what leaves and its ideal law."""
        return self.noise.distance(self.columns * self.classes.count)

    @proves("label-statistics")
    def release(self, rows: npt.NDArray[Any], codes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Sums of rows by class, with fresh noise. Every call spends epsilon.

        Guarantee: (epsilon, delta)-DP in each label, whatever else is known, if rows were made by `whole_rows` without
        looking at labels.

        Args:
            rows: what `whole_rows` gave, `(n, columns)`.
            codes: labels as places among the classes, `(n,)`.

        Returns:
            `(columns, classes)` whole numbers, in steps of the grid.
        """
        count = self.classes.count
        return class_sums(rows, codes, count) + self.noise.draw(self.columns * count).reshape(self.columns, count)

    def certificate(self, labels: int, settings: tuple[tuple[str, float], ...] = ()) -> LabelCertificate:
        """What the best attacker can learn of one label from the noised sums of so many."""
        count = self.classes.count
        return LabelCertificate(
            kind="label_dp",
            mechanism=SUMS,
            settings=(("sigma", self.sigma), *settings),
            epsilon=self.epsilon,
            delta=self.delta,
            labels=labels,
            classes=tuple(str(name) for name in self.classes.names),
            prior=(1 / count,) * count,
            prior_is_even=True,
            prior_success=1 / count,
            guess_success=max(1 / count, min(1.0, success_of_sums(self.sigma, count) + self.distance)),
            mutual_information=nats_of_sums(self.sigma, count, self.distance),
            theorems=("label-statistics", "label-guessing"),
            leakcap_version=__version__,
            assumptions=SUMS_ASSUMPTIONS,
        )


@proves("label-statistics")
def calibrated(epsilon: float, delta: float, classes: Classes, *, rows: int, columns: int) -> SumsMechanism:
    """The mechanism with the least noise for this epsilon and delta; arithmetic is paid from delta.

    Guarantee: the delta of the ideal noise and what arithmetic adds, `(1 + e^epsilon)` times its total variation, are
    at most `delta` together.

    Raises:
        InputError: the noise has no grid, or arithmetic would cost more than half of delta.
    """
    sigma = least_sigma(epsilon, delta)
    length = _length(sigma, rows, columns)
    if grid_points(2 * sigma * length) > _MAX_POINTS or length > _MAX_LENGTH:
        raise InputError(
            f"epsilon and delta ask for noise of {sigma:.2g} row lengths, which has no grid here: raise epsilon or "
            "delta, or give fewer components"
        )
    paid = (1 + math.exp(min(epsilon, 700.0))) * GridNoise(2 * sigma * length).distance(columns * classes.count)
    if not paid < delta / 2:
        raise InputError(
            "arithmetic would cost more than half of delta: lower epsilon, raise delta, or give fewer components"
        )
    sigma = least_sigma(epsilon, delta - paid)
    return SumsMechanism(epsilon, delta, sigma, length=length, columns=columns, classes=classes)


def _length(sigma: float, rows: int, columns: int) -> int:
    """Steps of the grid in a row's length: fine enough for its entries, and for their sum beside the noise."""
    entries = 16 * math.sqrt(columns)
    together = _FINER * math.sqrt(rows / 12) / sigma
    return int(2 ** math.ceil(math.log2(max(entries, together, LEAST_DEVIATION / sigma))))


@proves("label-statistics")
def whole_rows(table: npt.NDArray[Any], clip: float, length: int) -> npt.NDArray[np.signedinteger[Any]]:
    """Rows in whole numbers, `length` steps for a length of `clip`; longer rows are shortened.

    Guarantee: no row is longer than `length`, counted in whole numbers.
    """
    found = np.empty(table.shape, dtype=np.int16 if length < 2**15 else np.int32)
    for start in range(0, len(table), _AT_ONCE):
        found[start : start + _AT_ONCE] = _shortened(table[start : start + _AT_ONCE], length / clip, length)
    return found


def _shortened(rows: npt.NDArray[Any], steps: float, length: int) -> npt.NDArray[np.int64]:
    """Rows times `steps`, in whole numbers: the nearest, or where they are too long a shorter row, towards 0."""
    near = np.rint(np.clip(rows * rows.dtype.type(steps), -2.0 * length, 2.0 * length)).astype(np.int64)
    over = np.einsum("ij,ij->i", near, near) > length**2
    long = rows[over].astype(np.float64)
    long *= (length * (1 - 2.0**-32) / np.linalg.norm(long, axis=1))[:, None]
    near[over] = np.trunc(long)
    if (np.square(near[over]).sum(axis=1) > length**2).any():
        raise AssertionError("a row is longer than it may be")
    return near


@proves("label-statistics")
def class_sums(rows: npt.NDArray[Any], codes: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int64]:
    """Sums of rows by class, `(columns, count)`: exact, whatever the order of rows."""
    total = np.zeros((rows.shape[1], count), dtype=np.int64)
    exact: Any = np.float32 if rows.dtype == np.int16 else np.float64
    several = 2**24 // 2**15 if exact is np.float32 else _AT_ONCE
    for start in range(0, len(rows), several):
        part: npt.NDArray[Any] = rows[start : start + several].astype(exact)
        members: npt.NDArray[Any] = np.eye(count, dtype=exact)[codes[start : start + several]]
        total += (part.T @ members).astype(np.int64)  # every partial sum is a whole number that the type holds
    return total
