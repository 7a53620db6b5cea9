"""Private K-Means: centres in the order of a pool-public reference."""

from __future__ import annotations

import functools
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn import cluster
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin

from leakcap import kernels
from leakcap.errors import InputError
from leakcap.estimators.base import PrivateEstimator, publish
from leakcap.estimators.computation import Computation, Utility
from leakcap.estimators.data import Rows, checked_weight, validated
from leakcap.estimators.kmeans_session import STEPS, centres_in_session
from leakcap.estimators.settings import seed_of
from leakcap.ground import checks
from leakcap.ground.arrays import Floats, Ints
from leakcap.ground.cores import threads
from leakcap.kernels.kmeans import Weights, kmeans
from leakcap.kernels.moments import masked_sums
from leakcap.sessions.fitting import Fitting
from leakcap.worlds import Units, Worlds

__all__ = ["KMeans"]

STEP_COLUMNS, FIT = 8, 2e6  # for the forecast: what comparing costs beside distances; nanoseconds of a fit's own
LINES = 512  # largest number of different weights times clusters for which all worlds are fitted at once


@dataclass(eq=False, repr=False)
class KMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, PrivateEstimator):
    """scikit-learn's `KMeans` with private centres.

    The pool's own centres are the start and the reference in every world: a world's centres leave in the order of the
    reference that they fit best. `labels_`, `inertia_` and `n_iter_` do not leave; `predict` gives the labels.

    Args:
        n_clusters: number of centres.
        init: as in scikit-learn, for the fit to the whole pool. An array is saved with the estimator: give no rows.
        n_init: number of starts of the fit to the whole pool, or "auto", as in scikit-learn.
        max_iter: most iterations of a fit.
        tol: relative move of the centres at which a fit stops, as in scikit-learn.
        class_weight: None, or "balanced": `fit(X, y)` then weighs rows so that every class of `y` counts alike, in
            each world by the world's own counts. It takes the place of oversampling.
        cap: what may be learnt about who took part, such as `lc.membership(0.55)`; one cap or a list. `fit` needs it.
        worlds: number of possible worlds in which the fit is simulated; "auto": 1,024, up to 4,096 with a kernel.
        strata: "y" for worlds that hold every class in proportion, or the name of a column; `fit` also takes an array.
        random_state: None for a release. A number makes the fit a simulation, and its certificate says so.
        pool_public: in words, what was done to the data by looking at all of them, such as `("columns scaled",)`.
        options: further arguments of `leakcap.plan`, such as `{"workers": 2, "progress": True}`.

    Attributes:
        cluster_centers_: released centres, `(n_clusters, columns)`, in the order of the pool's own.
        estimator_: the plain scikit-learn estimator that holds the released numbers and nothing else.
        certificate_: what the release guarantees; may be published.
        plan_: the plan of the last fit. Custodian side: it is never saved or copied with the estimator.

    Examples:
        >>> import leakcap as lc
        >>> from sklearn.datasets import make_blobs
        >>> X, _ = make_blobs(200, centers=3, random_state=0)
        >>> settings = {"cap": lc.membership(0.9), "worlds": 32, "random_state": 0, "options": {"draws": 512}}
        >>> KMeans(3, **settings).fit(X).cluster_centers_.shape
        (3, 2)
    """

    n_clusters: int = 8
    _: KW_ONLY
    init: Any = "k-means++"
    n_init: Any = "auto"
    max_iter: int = 300
    tol: float = 1e-4
    class_weight: str | None = None

    def predict(self, X: Any) -> Any:
        """The number of the nearest released centre, for each row.

        Args:
            X: rows and columns, as given to `fit`.

        Returns:
            Whole numbers, `(rows,)`.
        """
        return self._asked("predict", X)

    def transform(self, X: Any) -> Any:
        """Distances of the rows to all released centres.

        Args:
            X: rows and columns, as given to `fit`.

        Returns:
            `(rows, n_clusters)`, in the unit of the columns.
        """
        return self._asked("transform", X)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the sum of squared distances to the nearest released centres.

        Args:
            X: rows and columns, as given to `fit`.
            y: ignored.
            sample_weight: a weight for each row.

        Returns:
            The score; higher is better.
        """
        return float(self._asked("score", X, sample_weight=sample_weight))

    def fit_predict(self, X: Any, y: Any = None, **options: Any) -> Any:
        """Fit, and label the same rows by the released centres.

        Args:
            X: rows and columns, an array or a DataFrame.
            y: classes, for `class_weight="balanced"`.
            **options: further arguments of `fit`.

        Returns:
            The number of the nearest centre, for each row.
        """
        return self.fit(X, y, **options).predict(X)  # type: ignore[attr-defined]

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def _rows(self, X: Any, y: Any, weight: Any) -> Rows:
        if self.class_weight is not None:
            checks.choice(("balanced",), class_weight=self.class_weight)
        features = validated(self, X, dtype=np.float64, order="C", ensure_min_samples=2)
        target = None
        if self.class_weight is not None:
            if y is None or len(y) != len(features):
                raise InputError("class_weight='balanced' needs a class for each row: fit(X, y)")
            target = np.unique(np.asarray(y), return_inverse=True)[1]
        return Rows(features, target, weight=checked_weight(weight, features))

    def fit_in_session(self, fitting: Fitting) -> Any:
        """A copy that is fitted in a session, by noised sums of the rows nearest to each centre.

        Args:
            fitting: the rows, and a way to ask for sums over people.

        Returns:
            The fitted copy.

        Raises:
            InputError: settings were given that such steps do not take.
        """
        made = self._copy_for_session()
        if not isinstance(self.init, str) or self.class_weight is not None:
            raise InputError("in a session centres start by a rule of its own: leave out init and class_weight")
        made._rows(fitting.features, None, None)  # names and number of the columns
        steps = min(self.max_iter, STEPS)
        centres = centres_in_session(fitting, self.n_clusters, steps, seed=0)
        publish(made, _build({"centres": centres}, plain=self._plain(), scale=np.ones((1, 1))))
        return made

    def _plain(self) -> cluster.KMeans:
        return cluster.KMeans(self.n_clusters, init=self.init, n_init=self.n_init, max_iter=self.max_iter, tol=self.tol)

    def _computation(self, rows: Rows) -> Computation:
        features, plain = rows.features, self._plain()
        if len(features) < 2 * self.n_clusters:
            raise InputError(
                f"n_samples={len(features)} should be >= 2 * n_clusters={2 * self.n_clusters}: a world has half of them"
            )
        weight = rows.weight if rows.target is None else balanced(rows.target, rows.weight)
        plain.set_params(random_state=seed_of(self.random_state)).fit(features, sample_weight=weight)
        reference = plain.cluster_centers_
        shares = np.bincount(plain.labels_, weights=weight, minlength=self.n_clusters)
        scale = np.sqrt(np.maximum(shares, 1.0) / shares.sum())
        settings: dict[str, Any] = {
            "reference": reference,
            "scale": scale[:, None],
            "iterations": self.max_iter,
            "tolerance": self.tol,
        }
        if weight is None:
            answer = functools.partial(_centres, **settings)
            data: tuple[Any, ...] = (features,)
        else:
            groups = np.zeros(len(features), dtype=int) if rows.target is None else rows.target
            ones = np.ones(len(features)) if rows.weight is None else rows.weight
            answer = functools.partial(_weighted_centres, **settings, balance=rows.target is not None)
            data = (features, groups, ones)
        spread = float(((features - features.mean(axis=0)) ** 2).sum(axis=1)[rows.some].sum())
        return Computation(
            answer=answer,
            data=data,
            build=functools.partial(_build, plain=self._plain(), scale=scale[:, None]),
            utility=Utility("share of the spread explained", lambda made: 1 + made.score(features[rows.some]) / spread),
            pool_public=(
                "Start and reference of the centres: K-Means on the whole pool, and how large its clusters are.",
            ),
        )


def balanced(groups: Ints, weight: Floats | None = None) -> Floats:
    """Weights that let every group count alike."""
    ones = np.ones(len(groups)) if weight is None else weight
    total = np.bincount(groups, weights=ones)
    return ones / np.maximum(total, np.finfo(float).tiny)[groups] * (ones.sum() / np.count_nonzero(total))


def in_order(centres: Floats, reference: Floats) -> Floats:
    """Every world's centres in the order of the reference: the assignment with the least sum of squared distances."""
    apart = ((centres[:, :, None] - reference) ** 2).sum(axis=3)
    # Where every centre is nearest to its own place, no other order is better.
    settled = (apart.argmin(axis=2) == np.arange(len(reference))).all(axis=1)
    ordered = centres.copy()
    for world in np.flatnonzero(~settled):
        came_from, place = linear_sum_assignment(apart[world])
        ordered[world, place] = centres[world, came_from]
    return ordered


def _all_centres(data: tuple[Any, ...], units: Units, worlds: Worlds, **settings: Any) -> Floats | None:
    reference, scale = settings["reference"], settings["scale"]
    tuning = {"iterations": settings["iterations"], "tolerance": settings["tolerance"]}
    rows = worlds.over_rows(units)
    weights = _weights(data[1], data[2], rows, settings["balance"]) if len(data) > 1 else None
    if weights is not None and weights.factors.shape[1] * len(reference) > LINES:
        return None
    found = kmeans(data[0], rows, reference, weights=weights, **tuning)
    return (in_order(found, reference) * scale).reshape(worlds.m, -1)


def _forecast(data: tuple[Any, ...], units: Units, worlds: Worlds, memory: int, **settings: Any) -> kernels.Costs:
    """Both ways take the same steps in every world; the kernel looks at fewer rows, at a like price for each.

    The rows lie there in three layouts; and on every core a world's own, and half of them as rivals.
    """
    n, d = data[0].shape
    k = len(settings["reference"])
    one = worlds.m * n * worlds.rate * k * (d + STEP_COLUMNS)
    numbers = n * (3 * d + 16) + threads() * (worlds.rate * n * (d + 8) + max(n * d // 2, 2**23))
    return kernels.Costs(kernel=one, loop=one + worlds.m * FIT, bytes=8 * int(numbers) + worlds.m * n // 8)


def _weights(groups: Ints, weight: Floats, worlds: Worlds, balance: bool) -> Weights:
    """Rows of equal weight and class go together: what they count in a world is one number."""
    kinds, of_row = np.unique(np.column_stack([groups, weight]), axis=0, return_inverse=True)
    classes, own = kinds[:, 0].astype(int), kinds[:, 1]
    factors = np.broadcast_to(own, (worlds.m, len(own)))
    if balance:
        total = masked_sums(weight[:, None] * (groups[:, None] == np.arange(classes.max() + 1)), worlds)
        factors = own / np.maximum(total, np.finfo(float).tiny)[:, classes]
    return Weights(of_row.ravel(), np.ascontiguousarray(factors))


@kernels.offers(_all_centres, forecast=_forecast)
def _centres(features: Floats, **settings: Any) -> dict[str, Floats]:
    return _weighted_centres(features, None, None, balance=False, **settings)


@kernels.offers(_all_centres, forecast=_forecast)
def _weighted_centres(
    features: Floats, groups: Any, weight: Any, *, balance: bool, reference: Floats, scale: Floats, **tuning: Any
) -> dict[str, Floats]:
    plain = cluster.KMeans(
        len(reference), init=reference, n_init=1, max_iter=tuning["iterations"], tol=tuning["tolerance"]
    )
    plain.fit(features, sample_weight=balanced(groups, weight) if balance else weight)
    return {"centres": in_order(plain.cluster_centers_[None], reference)[0] * scale}


def _build(value: dict[str, Floats], *, plain: cluster.KMeans, scale: Floats) -> cluster.KMeans:
    made = cluster.KMeans(plain.n_clusters, max_iter=plain.max_iter, tol=plain.tol)
    made.cluster_centers_ = np.ascontiguousarray(value["centres"] / scale)
    made.n_features_in_ = made.cluster_centers_.shape[1]
    made._n_threads = 1
    return made
