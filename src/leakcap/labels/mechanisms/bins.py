"""Numeric labels: randomised response on bins, chosen for the least expected squared error."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.labels.mechanisms.base import checked_prior
from leakcap.labels.mechanisms.classes import Classes, column
from leakcap.labels.mechanisms.krr import KRR

__all__ = ["RROnBins"]

POINTS = 256  # grid of label values that the bins are chosen on
MOST_BINS = 64
MOST_PARTS = 1_000


class RROnBins(KRR):
    """Randomised response on bins, for labels that are numbers.

    Labels from `low` to `high` become one of a few values, each standing for a bin. Bins and their values minimise the
    expected squared error under the prior (Ghazi et al. 2022).

    Guarantee: epsilon-DP for the label; range and prior must not come from the labels.

    Args:
        epsilon: differential privacy of each label, at least 1e-6.
        low: lower end of the range, in the unit of the labels; public. Labels below it count as `low`.
        high: upper end of the range; public. Labels above it count as `high`.
        prior: public probabilities of equal parts of the range (a histogram from another year, say); even if left out.

    Attributes:
        values: the value that stands for each bin.
        edges: ends of the bins, one more than there are bins.
        centres: mean label of each bin under the prior.
        bin_prior: probability of each bin under the prior.

    Raises:
        InputError: the range is empty, or the prior does not hold probabilities.

    Examples:
        >>> mechanism = RROnBins(epsilon=2.0, low=0, high=100)
        >>> len(mechanism.values), mechanism.privatize([3.5, 99.0]).shape
        (2, (2,))
    """

    name = "randomised response on bins"

    def __init__(self, epsilon: float, low: float, high: float, prior: npt.ArrayLike | None = None) -> None:
        start, end = checks.finite(low=low), checks.finite(high=high)
        if not start < end:
            raise InputError("low must lie below high: they are the range of the labels, and public")
        if not (end - start) * (end - start) < np.inf:
            raise InputError("low and high lie too far apart for squared errors: count in a larger unit")
        share = checked_prior(prior, POINTS if prior is None else None)
        if share.ndim != 1 or not 2 <= len(share) <= MOST_PARTS:
            raise InputError(
                f"the prior must be one row of 2 to {MOST_PARTS:,} probabilities, for equal parts of the range"
            )
        edges = np.linspace(start, end, len(share) + 1)
        middle = (edges[1:] + edges[:-1]) / 2
        cuts, values = best_bins(middle, share, checks.positive(epsilon=epsilon))
        if len(np.unique(values)) < len(values):
            raise InputError("prior and range leave labels of one value only: there is nothing to protect, or to learn")
        super().__init__(epsilon, n_classes=len(values))
        self.edges, self.values = edges[cuts], values
        mass = np.add.reduceat(share, cuts[:-1])
        self.bin_prior = np.asarray(mass / mass.sum())
        ends = np.column_stack([self.edges[:-1], self.edges[1:]]).mean(axis=1)
        inside = np.add.reduceat(share * middle, cuts[:-1]) / np.where(mass > 0, mass, 1)
        self.centres = np.where(mass > 0, inside, ends)
        self._classes = _Bins(self.edges, values)

    def expected(
        self, observed: npt.ArrayLike, log_prior: npt.ArrayLike | None = None
    ) -> npt.NDArray[np.floating[Any]]:
        """Mean of every label, given its observation and what is known of the bins.

        Args:
            observed: what `privatize` gave.
            log_prior: logarithms of the bins' probabilities, one row for all or a row each; the mechanism's prior if
                left out.

        Returns:
            A number for each label, in the unit of the labels.

        Examples:
            >>> mechanism = RROnBins(epsilon=2.0, low=0, high=100)
            >>> mechanism.expected(mechanism.values).round(1)
            array([31., 69.])
        """
        with np.errstate(divide="ignore"):
            known = np.log(self.bin_prior) if log_prior is None else log_prior
        return np.asarray(self.posterior(observed, known) @ self.centres)

    def _settings(self) -> tuple[tuple[str, float], ...]:
        return (*super()._settings(), ("low", float(self.edges[0])), ("high", float(self.edges[-1])))


class _Bins(Classes):
    """Numbers as places among bins, and places as the values that stand for them."""

    def __init__(self, edges: npt.NDArray[np.float64], values: npt.NDArray[np.float64]) -> None:
        super().__init__(None, [float(value) for value in values])
        self._edges, self._values = edges, values

    def codes(self, y: npt.ArrayLike) -> npt.NDArray[np.int64]:
        given = column(y)
        if given.dtype.kind not in "biuf":
            raise InputError("labels must be one column of numbers, none of them missing")
        if np.isnan(given).any():
            raise InputError("some labels are missing: drop those rows if it is public which they are")
        return np.searchsorted(self._edges[1:-1], given, side="right")

    def seen(self, observed: npt.ArrayLike) -> npt.NDArray[np.int64]:
        return Classes.codes(self, observed)

    def of(self, codes: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        return self._values[codes]


def best_bins(
    points: npt.NDArray[np.float64], share: npt.NDArray[np.float64], epsilon: float
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Where to cut the points into bins, and the value of each bin, for the least expected squared error.

    With d bins the error is `sum over bins of (A + (e^eps - 1) B) / (e^eps + d - 1)`, where A is the error of the
    bin's value over all labels and B that over the labels of the bin: bins do not interact, so the best cuts follow
    from the best cuts of every shorter range.
    """
    gain = np.expm1(min(epsilon, 40.0))
    n, middle = len(points), points - share @ points  # centred: the squares stay accurate
    weight, first = (np.concatenate([[0.0], np.cumsum(part)]) for part in (share, share * middle))
    second = np.concatenate([[0.0], np.cumsum(share * middle**2)])
    within = [part[None, :] - part[:, None] for part in (weight, first, second)]  # of the range [row, column)
    value = (first[-1] + gain * within[1]) / (1 + gain * within[0])
    cost = second[-1] + gain * within[2] - value**2 * (1 + gain * within[0])
    cost[np.tril_indices(n + 1)] = np.inf  # a bin holds at least one point

    best, came_from, errors = cost[0].copy(), [], []
    for bins in range(2, min(MOST_BINS, n) + 1):
        paths = best[:, None] + cost
        came_from.append(paths.argmin(axis=0))
        best = paths.min(axis=0)
        errors.append(best[n] / (gain + bins))
    cuts = [n]
    for step in range(int(np.argmin(errors)), -1, -1):
        cuts.append(int(came_from[step][cuts[-1]]))
    ends = np.array([*cuts, 0][::-1])
    return ends, value[ends[:-1], ends[1:]] + share @ points
