"""Public rows as ridge regression sums them: whitened, weighted by the ridge, and shortened."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.ground.arrays import Floats
from leakcap.labels.statistics.components import Components

__all__ = ["WhiteRows", "white_rows"]

_LEAST_GAIN = 1e-3  # beside 1, what a component keeps where no row is shortened


@dataclass(frozen=True)
class WhiteRows:
    """Whitened rows, the weight of every component, and what shortening leaves of every row.

    Args:
        white: `(n, components)`.
        weights: of components, at most 1.
        kept: of rows, at most 1.
        longest: length to which weighted rows are shortened.
    """

    white: npt.NDArray[np.float32]
    weights: npt.NDArray[np.float32]
    kept: npt.NDArray[np.float32]
    longest: float

    @cached_property
    def rows(self) -> npt.NDArray[np.float32]:
        """The rows that are summed: a constant, which counts labels, and the shortened components."""
        n, components = self.white.shape
        found = np.empty((n, components + 1), dtype=np.float32)
        found[:, 0] = n**-0.5  # as long as any component's entries
        np.multiply(self.white, self.weights, out=found[:, 1:])
        found[:, 1:] *= self.kept[:, None]
        return found

    @property
    def clip(self) -> float:
        return float(np.hypot(self.longest, len(self.white) ** -0.5))

    @cached_property
    def solve(self) -> Floats:
        """From sums of components to coefficients: regression in which a row counts as far as it was kept."""
        half = self.white * np.sqrt(self.kept)[:, None]
        gram = (half.T @ half).astype(np.float64) + _LEAST_GAIN * np.eye(len(self.weights))
        return np.asarray(np.linalg.inv(gram) / self.weights)

    def guess(self, sums: Floats, intercept: Floats) -> Floats:
        """What the sums would be if the model made of these were right about every row."""
        return self.sums_of(self.solve @ sums, intercept, intercept)

    def sums_of(self, weights: Floats, offsets: Floats, shares: Floats) -> Floats:
        """What the sums, less those of even rows by the classes' shares, would be if this model were right."""
        named = (self.white @ weights.astype(np.float32) + offsets.astype(np.float32)).argmax(axis=1)
        one_hot = (np.eye(len(shares)) - shares).astype(np.float32)[named]
        return np.asarray(self.rows[:, 1:].T @ one_hot, dtype=np.float64)


def white_rows(components: Components, features: npt.NDArray[Any], strength: float, quantile: float) -> WhiteRows:
    """Rows weighted by a ridge of this strength, and shortened at this quantile of their lengths."""
    weights = np.sqrt(components.values / (components.values + strength)).astype(np.float32)
    white = components.of(features)
    lengths = np.sqrt(np.square(white) @ np.square(weights))
    longest = max(float(np.quantile(lengths, quantile)), 1e-12)
    kept = np.minimum(1.0, longest / np.maximum(lengths, 1e-30)).astype(np.float32)
    return WhiteRows(white, weights, kept, longest)
