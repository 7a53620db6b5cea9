"""Gaussian noise on the one-hot vector, on a grid: the mechanism of AGIBI, calibrated for what it really costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr

from leakcap.errors import InputError, NumericalError
from leakcap.ground import checks
from leakcap.ground.proofs import proves
from leakcap.labels.mechanisms.coordinates import CoordinateMechanism
from leakcap.labels.mechanisms.integer_law import Chances

__all__ = ["Gaussian", "least_sigma"]

_CELLS = 64  # grid cells in a standard deviation
_SIGMAS = 0.02, 3_000.0  # noise that has a grid of fewer than 2^16 points
_REACH = 9.0  # standard deviations beyond which values fall on the last grid point


@proves("label-mechanisms")
class Gaussian(CoordinateMechanism):
    """Gaussian noise on every entry of the one-hot vector, rounded to a grid: (epsilon, delta)-DP for the label.

    Differs from the paper: a label moves the one-hot vector by sqrt 2, not 1, and the noise is calibrated by the
    exact trade-off of two Gaussians, for every epsilon (the paper's rule holds below 1 only).

    Guarantee: `delta` bounds the hockey-stick divergence of the whole-number weights that are drawn from, summed
    over the grid.

    Args:
        epsilon: differential privacy of each label, at least 1e-6.
        n_classes: number of classes, at least 2; labels are then whole numbers from 0 to `n_classes` - 1.
        classes: names of the classes instead, in the order of the columns. Public: never taken from the labels.
        delta: probability with which epsilon may fail, above 0 and below 1.

    Attributes:
        sigma: standard deviation of the noise on each entry.

    Raises:
        InputError: epsilon and delta ask for noise that has no grid, or the classes are missing or repeat.
        NumericalError: no noise was found for so small a delta.

    Examples:
        >>> round(Gaussian(epsilon=1.0, n_classes=3, delta=1e-5).sigma, 3)
        5.276
    """

    name = "gaussian"

    def __init__(
        self,
        epsilon: float,
        n_classes: int | None = None,
        classes: Sequence[Any] | None = None,
        *,
        delta: float = 1e-5,
    ) -> None:
        super().__init__(epsilon, n_classes, classes)
        self._delta = checks.fraction(delta=delta)
        self.sigma = least_sigma(self.epsilon, self._delta)
        if not _SIGMAS[0] <= self.sigma <= _SIGMAS[1]:
            raise InputError(
                f"epsilon and delta ask for a standard deviation of {self.sigma:.2g}, which has no grid: choose an "
                "epsilon from 0.001 to 1,000, a larger delta, or UnaryBits, which needs none"
            )
        for doubling in range(16):
            self._lay_grid()
            if hockey_stick(self.zero.probabilities, self.one.probabilities, self.epsilon) <= self._delta:
                return
            self.sigma *= 1 + 1e-6 * 2**doubling
        raise NumericalError(
            "no noise found for so small a delta: ask for a larger one, or use UnaryBits, which needs none"
        )

    def _lay_grid(self) -> None:
        shift = math.ceil(_CELLS / self.sigma)  # cells from 0 to 1
        reach = math.ceil(_REACH * self.sigma * shift)
        ends = (np.arange(-reach, reach + shift) + 0.5) / shift
        self.values = (np.arange(-reach, reach + shift + 1) / shift).astype(np.float32)
        self.zero = Chances.rounded(_cells(ends / self.sigma).tolist())
        self.one = self.zero.mirrored()

    @property
    def delta(self) -> float:
        """Probability with which epsilon may fail."""
        return self._delta

    def scores(self, observed: npt.ArrayLike) -> npt.NDArray[np.float32]:
        """`o / sigma^2`, for an entry `o` of the observation.

        Args:
            observed: what `privatize` gave.

        Returns:
            `(n, n_classes)`, in nats.

        Raises:
            InputError: `observed` is not what this mechanism gives.
        """
        score = self._table(observed).astype(np.float32)
        score /= np.float32(self.sigma**2)
        return score

    def _settings(self) -> tuple[tuple[str, float], ...]:
        return (("sigma", self.sigma), ("delta", self.delta))


def least_sigma(epsilon: float, delta: float) -> float:
    """The least standard deviation that makes one label (epsilon, delta)-DP, its one-hot vector moving by sqrt 2."""

    def excess(log_sigma: float) -> float:
        half = math.sqrt(2) / (2 * math.exp(log_sigma))  # half the distance, in standard deviations
        lost = epsilon / (2 * half)
        return float(ndtr(half - lost) - np.exp(epsilon + log_ndtr(-half - lost))) - delta

    return math.exp(brentq(excess, -20.0, 30.0, xtol=1e-13)) * (1 + 1e-9)


def hockey_stick(zero: npt.NDArray[np.float64], one: npt.NDArray[np.float64], epsilon: float) -> float:
    """Largest delta at this epsilon between two labels: they differ in two entries, each (zero, one) or (one, zero).

    The sum over pairs (j, k) of `one_j zero_k - e^eps zero_j one_k` where that is positive: where the likelihood
    ratio at j exceeds that at k by more than epsilon. With outcomes in the order of their ratio, those k come first.
    """
    order = np.argsort(one / zero, kind="stable")
    zero, one = zero[order], one[order]
    ratio = np.log(one) - np.log(zero)
    first = np.searchsorted(ratio, ratio - epsilon, side="left")
    zero_sums, one_sums = (np.concatenate([[0.0], np.cumsum(law)])[first] for law in (zero, one))
    with np.errstate(divide="ignore"):
        lost = np.exp(np.minimum(epsilon + np.log(zero) + np.log(one_sums), 0.0))
    return float(np.maximum(one * zero_sums - lost, 0).sum()) * (1 + 1e-12) + 1e-14


def _cells(ends: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Normal probabilities of the cells between these ends; each from the nearer tail, so small ones are accurate."""
    inner = np.where(ends[1:] <= 0, ndtr(ends[1:]) - ndtr(ends[:-1]), ndtr(-ends[:-1]) - ndtr(-ends[1:]))
    return np.concatenate([[ndtr(ends[0])], inner, [ndtr(-ends[-1])]])
