"""The nearest probabilities to a noised one-hot vector: what can be done without any prior."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError

__all__ = ["project"]


def project(observed: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Every row moved to the nearest point of the probability simplex (the paper's Algorithm 4).

    Post-processing: it costs no epsilon. `posterior` with a prior is better wherever there is one.

    Args:
        observed: `(n, n_classes)` table of noised one-hot vectors.

    Returns:
        `(n, n_classes)` probabilities; every row adds to 1.

    Raises:
        InputError: `observed` is not a table of finite numbers.

    Examples:
        >>> project([[1.2, 0.4, -0.3]]).round(2)
        array([[0.9, 0.1, 0. ]])
    """
    rows = np.asarray(observed, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] == 0 or not np.isfinite(rows).all():
        raise InputError("observed must be a table of finite numbers, a row per label and a column per class")
    sorted_rows = -np.sort(-rows, axis=1)
    over = (np.cumsum(sorted_rows, axis=1) - 1) / np.arange(1, rows.shape[1] + 1)
    support = np.count_nonzero(sorted_rows > over, axis=1)  # the condition holds for a first part of the row
    return np.maximum(rows - np.take_along_axis(over, support[:, None] - 1, axis=1), 0)
