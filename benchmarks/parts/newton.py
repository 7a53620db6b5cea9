"""Linear support vector machines and logistic regression."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from benchmarks.parts import Case, beans
from leakcap.kernels.linear import linear_svm, logistic
from leakcap.worlds import draw_worlds

__all__ = ["cases"]

PASSES = 9  # gradients that a logistic regression takes here


def cases() -> list[Case]:
    """Dry Bean, 1,024 worlds; plain fits are scikit-learn's at its own tolerance, the agreement is with tight ones."""
    table, labels = beans()
    worlds = draw_worlds(len(table), 1024, np.random.default_rng(1))
    classes = len(np.unique(labels))
    gradient = 4 * worlds.m / 2 * len(table) * (table.shape[1] + 1)  # of one score, over half of the rows

    def fitted(model: Any, rows: np.ndarray) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the default number of iterations is too few for some
            found = model.fit(table[rows], labels[rows])
        return np.column_stack([found.coef_, found.intercept_])

    def case(work: str, kernel: Any, plain: Any, tight: Any, flops: float) -> Case:
        def agreement(found: np.ndarray, numbers: list[int], _: list[Any]) -> float:
            expected = [fitted(tight(), worlds.mask(w)) for w in numbers[:2]]
            return max(_apart(found[w], one) for w, one in zip(numbers, expected, strict=False))

        return Case(work, *table.shape, worlds.m, lambda rows: fitted(plain(), rows), kernel, agreement, flops)

    def machine(C: float) -> Case:
        return case(
            f"linear SVM, C = {C:g}",
            lambda: linear_svm(table, labels, worlds, C=C),
            lambda: LinearSVC(C=C, dual=False),
            lambda: LinearSVC(C=C, dual=False, tol=1e-12, max_iter=100_000),
            classes * gradient,
        )

    return [
        machine(1.0),
        machine(0.005),
        case(
            "logistic regression",
            lambda: logistic(table, labels, worlds),
            LogisticRegression,
            lambda: LogisticRegression(tol=1e-10, solver="newton-cg", max_iter=1000),  # lbfgs stops 1e-6 short
            PASSES * (classes - 1) * gradient,
        ),
    ]


def _apart(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))
