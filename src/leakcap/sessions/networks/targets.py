"""What a network is to predict: codes of classes, or numbers from -1 to 1. Nothing here can fail for one row's sake."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError
from leakcap.ground.arrays import Floats
from leakcap.sessions.fitting import Fitting
from leakcap.sessions.where import numbers_among
from leakcap.stats.cells import own_places
from leakcap.worlds import Units

__all__ = ["TargetRows", "codes_of", "different_classes", "middle_and_half", "numbers_of_cells"]


@dataclass(frozen=True, eq=False)
class TargetRows:
    """Rows of features that have a target, what it is, and whose they are; custodian side."""

    features: Floats
    targets: Floats
    units: Units
    public: bool  # whether targets are made of each row's own and of declarations alone

    @classmethod
    def of(cls, fitting: Fitting, targets: Floats, *, public: bool) -> TargetRows:
        """Those whose target is a number."""
        places = np.flatnonzero(np.isfinite(targets))
        units = fitting.units
        owner = places if units.of_row is None else units.of_row[places]
        features = np.asarray(fitting.features, dtype=np.float64)[places]
        return cls(features, targets[places], Units(len(places), units.count, owner), public)


def different_classes(given: Any) -> npt.NDArray[Any]:
    """Classes in their order."""
    found = np.array([]) if isinstance(given, (str, bytes)) else np.asarray(list(given))
    if found.ndim != 1 or found.dtype.kind not in "biufU" or len(np.unique(found)) < max(2, len(found)):
        raise InputError("classes must be a list of at least two different names or numbers, such as ['no', 'yes']")
    return np.unique(found)


def codes_of(cells: npt.NDArray[Any], classes: npt.NDArray[Any]) -> Floats:
    """The place of each cell among the classes; NaN for what is none of them."""
    place = own_places(cells, classes.tolist())
    return np.where(place < len(classes), place, np.nan)


def numbers_of_cells(cells: npt.NDArray[Any], bounds: Any) -> Floats:
    """Cells as numbers from -1 to 1 within their bounds; NaN for what is no number."""
    found = numbers_among(cells)
    middle, half = middle_and_half(bounds)
    scaled = (found - middle) / half
    return scaled if bounds is None else np.clip(scaled, -1.0, 1.0)


def middle_and_half(bounds: Any) -> tuple[float, float]:
    """Middle and half the width of bounds; without bounds numbers stay as they are."""
    if bounds is None:
        return 0.0, 1.0
    try:
        low, high = map(float, bounds)
    except (TypeError, ValueError):
        low = high = 0.0
    if not (np.isfinite([low, high]).all() and low < high):
        raise InputError("target_bounds must be (low, high), finite and with low below high")
    return (low + high) / 2, (high - low) / 2
