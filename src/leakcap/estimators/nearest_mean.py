"""Private nearest class means: the mean of every class, and nothing else."""

from __future__ import annotations

import functools
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn import neighbors

from leakcap import kernels
from leakcap.estimators.class_sums import OfDeclaredClasses, class_weights
from leakcap.estimators.computation import Computation
from leakcap.estimators.data import Rows
from leakcap.estimators.sums import ByClass, ClassSums, Moved
from leakcap.ground.arrays import Floats
from leakcap.kernels.moments import sums_of
from leakcap.worlds import Units, Worlds

__all__ = ["NearestClassMean"]


@dataclass(eq=False, repr=False)
class NearestClassMean(OfDeclaredClasses):
    """scikit-learn's `NearestCentroid` with private class means: a row is of the class whose mean is nearest.

    The means are all that leaves, so that it needs little noise. Distances are those of the columns as they are: bring
    columns to like scales beforehand.

    Args:
        classes: under a pool cap, the classes there may be, known without the data. Rows of others count nowhere.
        cap: what may be learnt about who took part, such as `lc.membership(0.55)`; one cap or a list. `fit` needs it.
        worlds: number of possible worlds in which the fit is simulated; "auto": 1,024, up to 4,096 with a kernel.
        strata: "y" for worlds that hold every class in proportion, or the name of a column; `fit` also takes an array.
        random_state: None for a release. A number makes the fit a simulation, and its certificate says so.
        pool_public: in words, what was done to the data by looking at all of them, such as `("columns scaled",)`.
        options: further arguments of `leakcap.plan`, such as `{"workers": 2, "progress": True}`.

    Attributes:
        centroids_: released means, `(classes, columns)`.
        class_prior_: equal for all classes.
        classes_: the classes that occur in the pool, or those declared.
        estimator_: the plain scikit-learn estimator that holds the released numbers and nothing else.
        certificate_: what the release guarantees; may be published.
        plan_: the plan of the last fit. Custodian side: it is never saved or copied with the estimator.

    Examples:
        >>> import leakcap as lc
        >>> from sklearn.datasets import make_blobs
        >>> X, y = make_blobs(200, centers=2, random_state=0)
        >>> settings = {"cap": lc.membership(0.9), "worlds": 32, "random_state": 0, "options": {"draws": 512}}
        >>> NearestClassMean(**settings).fit(X, y).centroids_.shape
        (2, 2)
    """

    _: KW_ONLY
    classes: Any = None

    def _computation(self, rows: Rows) -> Computation:
        features, codes, classes = rows.features, rows.target, rows.classes
        assert codes is not None and classes is not None
        ones = np.ones(len(features)) if rows.weight is None else rows.weight
        pool = _Means.of(features, codes, ones, len(classes))
        return Computation(
            answer=functools.partial(_means, pool=pool),
            data=(features, codes, ones),
            build=functools.partial(_build, pool=pool, classes=classes),
            utility=self._accuracy(rows),
            pool_public=(
                "The unit of the noise: means of the classes, and the mean variance of the columns, in the whole pool.",
                "The classes that occur.",
            ),
        )

    def _sums_of_half(self, rows: Rows) -> Computation:
        made, codes, classes = self._computation(rows), rows.target, rows.classes
        assert codes is not None and classes is not None
        pool = _Means.of(rows.features, codes, made.data[2], len(classes))
        moves = _MeanOfClassMoves(pool, class_weights(codes, made.data[2], len(classes)))
        known = (*made.pool_public, "What the coins move: means of the classes in the whole pool.")
        return replace(made, answer=Moved({"means": np.zeros_like(pool.mean)}, moves), pool_public=known)

    def _sums_of_all(self, rows: Rows) -> Computation:
        assert rows.classes is not None
        return Computation(
            ClassSums(_within, self._column_names(), len(rows.classes), squares=False, raw=True),
            (rows.features, rows.target),
            functools.partial(_made, classes=rows.classes),
            utility=self._accuracy(rows),
            weights=None,
        )


@dataclass(frozen=True, eq=False)
class _Means:
    """The means of the classes in the whole pool, and a unit of length that all columns share."""

    mean: Floats  # (classes, d)
    unit: float

    @staticmethod
    def of(features: Floats, codes: npt.NDArray[np.intp], weight: Floats, count: int) -> _Means:
        total = class_weights(codes, weight, count)[:, None]
        share = np.zeros((count, len(codes)))
        share[codes, np.arange(len(codes))] = weight
        unit = float(np.sqrt(features.var(axis=0).mean()))
        return _Means(share @ features / total, unit if unit > 0 else 1.0)


@dataclass(frozen=True, eq=False)
class _MeanOfClassMoves:
    """By how much a row moves the mean of its class."""

    pool: _Means
    weight: Floats  # (classes,): of all rows of each

    def __call__(self, features: Floats, codes: npt.NDArray[np.intp], weight: Floats) -> Floats:
        moves = np.zeros((len(features), *self.pool.mean.shape))
        apart = (features - self.pool.mean[codes]) / self.pool.unit
        moves[np.arange(len(features)), codes] = apart * (weight / self.weight[codes])[:, None]
        return moves.reshape(len(features), -1)


def _all_means(data: tuple[Any, ...], units: Units, worlds: Worlds, pool: _Means) -> Floats:
    features, codes, weight = data
    count, d = pool.mean.shape

    def parts(some: Any) -> Floats:
        inside = (codes[some, None] == np.arange(count)) * weight[some, None]
        apart = (features[some] - pool.mean[codes[some]]) / pool.unit
        made = np.concatenate([np.ones((len(apart), 1)), apart], axis=1)
        return np.asarray((inside[:, :, None] * made[:, None]).reshape(len(apart), -1))

    sums = sums_of(parts, count * (1 + d), worlds, units).reshape(worlds.m, count, -1)
    total = sums[:, :, :1]
    # A class that a world lacks is described as the pool's.
    return np.where(total > 0, sums[:, :, 1:] / np.where(total > 0, total, 1.0), 0.0).reshape(worlds.m, -1)


@kernels.offers(_all_means)
def _means(features: Floats, codes: npt.NDArray[np.intp], weight: Floats, *, pool: _Means) -> dict[str, Floats]:
    n = len(features)
    found = _all_means((features, codes, weight), Units.of(n, None), Worlds.everybody(n), pool)
    return {"means": found.reshape(pool.mean.shape)}


def _within(released: ByClass) -> dict[str, Floats]:
    return {"means": released.middle + released.half * released.mean}


def _build(value: dict[str, Floats], *, pool: _Means, classes: npt.NDArray[Any]) -> Any:
    return _made({"means": pool.mean + value["means"] * pool.unit}, classes=classes)


def _made(value: dict[str, Floats], *, classes: npt.NDArray[Any]) -> Any:
    made = neighbors.NearestCentroid()
    made.centroids_, made.classes_ = value["means"], classes
    made.class_prior_ = np.full(len(classes), 1 / len(classes))
    return made
