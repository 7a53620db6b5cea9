"""Private naive Bayes: shares, means and variances of the classes."""

from __future__ import annotations

import functools
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn import naive_bayes

from leakcap import kernels
from leakcap.estimators.class_sums import OfDeclaredClasses, class_weights
from leakcap.estimators.classifiers import LogProbabilities
from leakcap.estimators.computation import Computation
from leakcap.estimators.data import Rows
from leakcap.estimators.sums import ByClass, ClassSums, Moved
from leakcap.ground.arrays import Floats
from leakcap.kernels.moments import sums_of
from leakcap.worlds import Units, Worlds

__all__ = ["GaussianNB"]

MIN_CLASS_VARIANCE_SHARE = 1e-3  # share of the pool's variance of a class that a noised variance keeps at least


@dataclass(eq=False, repr=False)
class GaussianNB(LogProbabilities, OfDeclaredClasses):
    """scikit-learn's `GaussianNB` with private class shares, means and variances.

    Args:
        priors: shares of the classes, where they are public; None releases them too.
        var_smoothing: share of the largest variance of a column that is added to all variances.
        classes: under a pool cap, the classes there may be, known without the data. Rows of others count nowhere.
        cap: what may be learnt about who took part, such as `lc.membership(0.55)`; one cap or a list. `fit` needs it.
        worlds: number of possible worlds in which the fit is simulated; "auto": 1,024, up to 4,096 with a kernel.
        strata: "y" for worlds that hold every class in proportion, or the name of a column; `fit` also takes an array.
        random_state: None for a release. A number makes the fit a simulation, and its certificate says so.
        pool_public: in words, what was done to the data by looking at all of them, such as `("columns scaled",)`.
        options: further arguments of `leakcap.plan`, such as `{"workers": 2, "progress": True}`.

    Attributes:
        theta_: released means, `(classes, columns)`.
        var_: released variances, `(classes, columns)`, with `epsilon_` added.
        class_prior_: released shares of the classes, or `priors`.
        epsilon_: what `var_smoothing` adds to all variances; from the whole pool, under a pool cap from what is
            released.
        classes_: the classes that occur in the pool, or those declared.
        estimator_: the plain scikit-learn estimator that holds the released numbers and nothing else.
        certificate_: what the release guarantees; may be published.
        plan_: the plan of the last fit. Custodian side: it is never saved or copied with the estimator.

    Examples:
        >>> import leakcap as lc
        >>> from sklearn.datasets import make_blobs
        >>> X, y = make_blobs(200, centers=2, random_state=0)
        >>> settings = {"cap": lc.membership(0.9), "worlds": 32, "random_state": 0, "options": {"draws": 512}}
        >>> GaussianNB(**settings).fit(X, y).theta_.shape
        (2, 2)
    """

    _: KW_ONLY
    priors: Any = None
    var_smoothing: float = 1e-9
    classes: Any = None

    def _computation(self, rows: Rows) -> Computation:
        features, codes, classes = rows.features, rows.target, rows.classes
        assert codes is not None and classes is not None
        ones = np.ones(len(features)) if rows.weight is None else rows.weight
        pool = _Classes.of(features, codes, ones, len(classes))
        answer = functools.partial(_classes, pool=pool)
        return Computation(
            answer=answer,
            data=(features, codes, ones),
            build=functools.partial(
                _build, pool=pool, classes=classes, priors=self.priors, smoothing=self.var_smoothing
            ),
            utility=self._accuracy(rows),
            pool_public=(
                "The unit of the noise in each class: means and variances of the whole pool.",
                "The classes that occur.",
            ),
        )

    def _sums_of_half(self, rows: Rows) -> Computation:
        made, codes, classes = self._computation(rows), rows.target, rows.classes
        assert codes is not None and classes is not None
        pool = _Classes.of(rows.features, codes, made.data[2], len(classes))
        known = (
            *made.pool_public,
            "What the coins move: shares, means and variances of the pool's classes.",
        )
        return replace(made, answer=_moved_classes(made.data, pool), pool_public=known)

    def _sums_of_all(self, rows: Rows) -> Computation:
        assert rows.classes is not None
        count = len(rows.classes)
        make = functools.partial(_within, smoothing=self.var_smoothing)
        build = functools.partial(_from_bounds, classes=rows.classes, priors=self.priors, smoothing=self.var_smoothing)
        return Computation(
            ClassSums(make, self._column_names(), count),
            (rows.features, rows.target),
            build,
            utility=self._accuracy(rows),
            weights=None,
        )


@dataclass(frozen=True, eq=False)
class _Classes:
    """What a class is like in the whole pool: the units in which worlds are described."""

    mean: Floats  # (classes, d)
    variance: Floats
    largest: float  # variance of a column, of all classes together

    @staticmethod
    def of(features: Floats, codes: npt.NDArray[np.intp], weight: Floats, count: int) -> _Classes:
        total = np.bincount(codes, weights=weight, minlength=count)[:, None]
        share = np.zeros((count, len(codes)))
        share[codes, np.arange(len(codes))] = weight
        mean = share @ features / np.maximum(total, np.finfo(float).tiny)
        spread = share @ (features - mean[codes]) ** 2 / np.maximum(total, np.finfo(float).tiny)
        least = np.maximum(features.var(axis=0), np.finfo(float).tiny) * 1e-6
        return _Classes(mean, np.maximum(spread, least), float(features.var(axis=0).max()))


def _all_classes(data: tuple[Any, ...], units: Units, worlds: Worlds, pool: _Classes) -> Floats:
    features, codes, weight = data
    count, d = pool.mean.shape

    def parts(some: Any) -> Floats:
        inside = (codes[some, None] == np.arange(count)) * weight[some, None]
        apart = (features[some] - pool.mean[codes[some]]) / np.sqrt(pool.variance[codes[some]])
        made = np.concatenate([np.ones((len(apart), 1)), apart, apart**2], axis=1)
        return np.asarray((inside[:, :, None] * made[:, None]).reshape(len(apart), -1))

    sums = sums_of(parts, count * (1 + 2 * d), worlds, units).reshape(worlds.m, count, -1)
    return _described(sums).reshape(worlds.m, -1)


@kernels.offers(_all_classes)
def _classes(features: Floats, codes: npt.NDArray[np.intp], weight: Floats, *, pool: _Classes) -> dict[str, Floats]:
    n, count = len(features), len(pool.mean)
    found = _all_classes((features, codes, weight), Units.of(n, None), Worlds.everybody(n), pool).reshape(count, -1)
    return {"classes": found}


def _described(sums: Floats) -> Floats:
    """`(m, classes, 1 + 2 d)`: a class's share of the rows, then means, then variances, both in the pool's units.

    A class that a world lacks is described as the pool's.
    """
    d = (sums.shape[2] - 1) // 2
    total = sums[:, :, :1]
    there = total > 0
    rows = np.where(there, total, 1.0)
    mean = sums[:, :, 1 : 1 + d] / rows
    spread = np.where(there, np.maximum(sums[:, :, 1 + d :] / rows - mean**2, 0.0), 1.0)
    return np.concatenate([total / np.maximum(total.sum(axis=1, keepdims=True), 1e-300), mean, spread], axis=2)


def _build(
    value: dict[str, Floats], *, pool: _Classes, classes: npt.NDArray[Any], priors: Any, smoothing: float
) -> Any:
    made = naive_bayes.GaussianNB(priors=priors, var_smoothing=smoothing)
    numbers, d = value["classes"], pool.mean.shape[1]
    made.theta_ = pool.mean + numbers[:, 1 : 1 + d] * np.sqrt(pool.variance)
    made.epsilon_ = smoothing * pool.largest
    made.var_ = np.maximum(numbers[:, 1 + d :], MIN_CLASS_VARIANCE_SHARE) * pool.variance + made.epsilon_
    share = np.maximum(numbers[:, 0], 0.1 / max(len(classes), 10))
    made.class_prior_ = share / share.sum() if priors is None else np.asarray(priors, dtype=np.float64)
    made.classes_ = classes
    return made


@dataclass(frozen=True, eq=False)
class _ClassMoves:
    """By how much a row moves the shares of the classes, and mean and variance of its own."""

    pool: _Classes
    share: Floats  # (classes,)
    weight: Floats  # (classes,): of all rows of each
    spread: Floats  # (classes, d): variances in the pool's units

    def __call__(self, features: Floats, codes: npt.NDArray[np.intp], weight: Floats) -> Floats:
        count, d = self.spread.shape
        own = np.arange(count) == codes[:, None]
        apart = (features - self.pool.mean[codes]) / np.sqrt(self.pool.variance[codes])
        moves = np.zeros((len(features), count, 1 + 2 * d))
        moves[:, :, 0] = (own - self.share) / self.weight.sum()
        moves[np.arange(len(features)), codes, 1:] = (
            np.hstack([apart, apart**2 - self.spread[codes]]) / self.weight[codes, None]
        )
        return np.asarray((moves * weight[:, None, None]).reshape(len(features), -1))


def _moved_classes(data: tuple[Any, ...], pool: _Classes) -> Moved:
    features, codes, weight = data
    answer = _classes(features, codes, weight, pool=pool)["classes"]
    total = class_weights(codes, weight, len(answer))
    d = pool.mean.shape[1]
    return Moved({"classes": answer}, _ClassMoves(pool, answer[:, 0], total, answer[:, 1 + d :]))


def _within(released: ByClass, *, smoothing: float) -> dict[str, Floats]:
    """Shares, means and variances, which are at least what noise hides."""
    count, mean = released.count, released.mean
    share = count / count.sum()
    variance = np.maximum(released.variance, released.noise)
    centre = share @ mean
    together = share @ (variance + (mean - centre) ** 2)
    return {
        "share": share,
        "mean": released.middle + released.half * mean,
        "variance": np.minimum(variance, 1.0) * released.half**2,
        "smoothing": np.array([smoothing * float((together * released.half**2).max())]),
    }


def _from_bounds(value: dict[str, Floats], *, classes: npt.NDArray[Any], priors: Any, smoothing: float) -> Any:
    made = naive_bayes.GaussianNB(priors=priors, var_smoothing=smoothing)
    made.theta_, made.epsilon_ = value["mean"], float(value["smoothing"][0])
    made.var_ = np.maximum(value["variance"], np.finfo(float).tiny) + made.epsilon_
    made.class_prior_ = value["share"] if priors is None else np.asarray(priors, dtype=np.float64)
    made.classes_ = classes
    return made
