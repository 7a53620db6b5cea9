"""Logistic regression on weights of classes, without a copy of a row for each class that weighs something in it.

The loss of all copies of a row is `total * log sum exp(scores) - weights @ scores`, which needs the row once. With ten
classes in question that is a tenth of the work and of the memory, and the same best fit.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from leakcap.ground.arrays import Floats

__all__ = ["fits_rows_once", "fitted_rows_once"]

_PLAIN = {"dual": False, "class_weight": None, "solver": "lbfgs", "l1_ratio": (None, 0, 0.0)}
_PENALTIES = ("l2", "deprecated", None)
_AT_LEAST = 3  # classes; of two, the base has one row of coefficients and another penalty


def fits_rows_once(base: Any, X: Any, classes: int) -> bool:
    """Whether this base and these rows are of the kind that `fitted_rows_once` fits as scikit-learn would."""
    if type(base) is not LogisticRegression or not isinstance(X, np.ndarray) or classes < _AT_LEAST:
        return False
    held = base.get_params(deep=False)
    plain = all(held[name] in (wanted if isinstance(wanted, tuple) else (wanted,)) for name, wanted in _PLAIN.items())
    usable = X.ndim == 2 and X.dtype == np.float64 and bool(np.isfinite(X).all())
    return plain and usable and held["penalty"] in _PENALTIES and held.get("multi_class", "auto") != "ovr"


def fitted_rows_once(base: LogisticRegression, X: Floats, weights: Floats, near: Any = None) -> LogisticRegression:
    """A copy of the base, fitted to all rows, each class of a row weighted.

    Args:
        base: one that `fits_rows_once` accepts.
        X: rows.
        weights: of every class in every row; a class without weight anywhere is not learnt.
        near: a model of the same classes to start from.

    Returns:
        A fitted model, as `base.fit` on copies of the rows would give.
    """
    model, classes = clone(base), np.flatnonzero(weights.any(axis=0))
    targets = weights[:, classes]
    totals, whole = targets.sum(axis=1), float(targets.sum())
    penalty = 0.0 if model.penalty is None else 1 / (model.C * whole)
    shape = (len(classes), X.shape[1] + model.fit_intercept)

    def value(flat: Floats) -> tuple[float, Floats]:
        table = flat.reshape(shape)
        slopes = table[:, : X.shape[1]]
        scores = X @ slopes.T
        if model.fit_intercept:
            scores += table[:, -1]
        scores -= scores.max(axis=1, keepdims=True)
        own = float(np.vdot(targets, scores))
        np.exp(scores, out=scores)
        sums = scores.sum(axis=1)
        loss = (float(totals @ np.log(sums)) - own) / whole + penalty / 2 * float(np.vdot(slopes, slopes))
        scores *= (totals / sums)[:, None]
        scores -= targets
        slope = np.empty(shape)
        slope[:, : X.shape[1]] = scores.T @ X / whole + penalty * slopes
        if model.fit_intercept:
            slope[:, -1] = scores.sum(axis=0) / whole
        return loss, slope.ravel()

    start = np.zeros(shape)
    if near is not None and np.array_equal(near.classes_, classes):
        start[:, : X.shape[1]] = near.coef_
        if model.fit_intercept:
            start[:, -1] = near.intercept_
    ends = {"maxiter": model.max_iter, "maxls": 50, "gtol": model.tol, "ftol": 64 * np.finfo(float).eps}
    found = minimize(value, start.ravel(), method="L-BFGS-B", jac=True, options=ends)
    if found.status == 1:
        warnings.warn(
            f"logistic regression did not converge in {model.max_iter} steps: scale the columns, or raise max_iter",
            ConvergenceWarning,
            stacklevel=2,
        )
    table = found.x.reshape(shape)
    model.coef_ = table[:, : X.shape[1]].copy()
    model.intercept_ = table[:, -1].copy() if model.fit_intercept else np.zeros(len(classes))
    model.classes_, model.n_features_in_ = classes, X.shape[1]
    model.n_iter_ = np.array([found.nit], dtype=np.int32)
    return model
