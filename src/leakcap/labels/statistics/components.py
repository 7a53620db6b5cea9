"""Public principal components: rows centred, scaled, and whitened by their own Gram matrix. No label is seen here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError
from leakcap.ground.arrays import Floats

__all__ = ["Components", "features_of", "principal_components", "strength_of"]

_AT_ONCE, _GRAM_ROWS = 4096, 65_536  # rows
_LEAST_VALUE = 1e-5  # of the largest eigenvalue: below, single precision knows nothing of a direction


@dataclass(frozen=True)
class Components:
    """A map from features to whitened components: over the rows it was made of, each has length 1 and sums to 0.

    Args:
        mean: of every column.
        directions: `(columns, components)`, of decreasing `values`.
        values: eigenvalues of the Gram matrix of scaled columns.
    """

    mean: Floats
    directions: npt.NDArray[np.float32]
    values: Floats

    def of(self, features: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """Whitened rows, `(rows, components)`."""
        return np.asarray(_centred(features, self.mean) @ self.directions)

    def first(self, count: int) -> Components:
        """The largest components alone."""
        return Components(self.mean, np.ascontiguousarray(self.directions[:, :count]), self.values[:count])


def features_of(X: Any, least_rows: int = 1) -> npt.NDArray[Any]:
    """A table of finite numbers, in single precision if it came so."""
    found = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
    if found.dtype.kind == "c":
        raise InputError("Complex data not supported: give real and imaginary parts as columns")
    if found.dtype != np.float32:
        found = _numbers(found)
    if found.ndim != 2:
        raise InputError("features must be a table, a row for each label. Reshape your data: X.reshape(-1, 1)")
    if found.shape[1] == 0:
        raise InputError(f"0 feature(s) (shape={found.shape}) while a minimum of 1 is required: give some columns")
    if len(found) < least_rows:
        raise InputError(f"n_samples={len(found)} is not enough: give {least_rows} rows at least, one for each class")
    if not np.isfinite(found).all():
        raise InputError("features must be finite: they hold NaN or infinity; fill them first (SimpleImputer)")
    return found


def _numbers(given: npt.NDArray[Any]) -> Floats:
    try:
        found = given.astype(np.float64)
    except (TypeError, ValueError):
        found = None
    if found is None:  # raised outside of the handler: an error in hand would quote a cell
        raise InputError(
            "features must be numbers: encode text and categories first, by a OneHotEncoder for instance, and fill "
            "missing cells (SimpleImputer)"
        )
    return found


def principal_components(features: npt.NDArray[Any], most: int | None = None) -> Components:
    """The principal components of scaled columns, `most` of them; directions without spread are left out."""
    mean = features.mean(axis=0, dtype=np.float64)
    centred = _centred(features, mean)
    wide = centred.shape[1] > len(centred)
    with np.errstate(over="ignore"):
        spread = np.sqrt(np.einsum("ij,ij->j", centred, centred).astype(np.float64) / len(centred))
    if not np.isfinite(spread).all():
        raise InputError("features are too large for their squares: scale them first (StandardScaler)")
    known = spread > 64 * np.finfo(features.dtype).eps * np.abs(mean)
    if not known.any():
        raise InputError("all columns of the features are constant: nothing can be learnt from them")
    scale = np.where(known, 1 / np.where(known, spread, 1.0), 0.0)
    gram: npt.NDArray[Any] = _rows_gram(centred, scale) if wide else _columns_gram(centred, scale)
    values, vectors = np.linalg.eigh(gram)
    keep = np.nonzero(values > _LEAST_VALUE * values[-1])[0][::-1][:most]
    values, vectors = values[keep], vectors[:, keep]
    if wide:
        vectors = (centred * scale).T @ vectors / np.sqrt(values)
    return Components(mean, (scale[:, None] * vectors / np.sqrt(values)).astype(np.float32), values.astype(np.float64))


def _centred(features: npt.NDArray[Any], mean: Floats) -> npt.NDArray[np.float32]:
    """Rows less the mean, in single precision: these rows are public, and there is noise to come."""
    found = np.empty(features.shape, dtype=np.float32)
    with np.errstate(over="ignore"):  # what is too large for it is infinite, and refused
        for start in range(0, len(features), _AT_ONCE):
            found[start : start + _AT_ONCE] = features[start : start + _AT_ONCE] - mean
    return found


def _columns_gram(centred: npt.NDArray[np.float32], scale: Floats) -> Floats:
    total = np.zeros((centred.shape[1],) * 2)
    for start in range(0, len(centred), _GRAM_ROWS):
        part = centred[start : start + _GRAM_ROWS]
        total += part.T @ part
    return np.asarray(total * np.outer(scale, scale))


def _rows_gram(centred: npt.NDArray[np.float32], scale: Floats) -> Floats:
    scaled = centred * scale
    return np.asarray(scaled @ scaled.T)


def strength_of(values: Floats, freedom: float) -> float:
    """The ridge strength with so many degrees of freedom, `sum values / (values + strength)`; 0 if there are fewer."""
    if freedom >= len(values):
        return 0.0
    low, high = 1e-12 * float(values[-1]), 1e12 * float(values[0])
    for _ in range(100):  # bisection of the exponent
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if (values / (values + middle)).sum() > freedom else (low, middle)
    return high
