"""Private linear classifiers: logistic regression and support vector machines."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn import linear_model, svm
from sklearn.exceptions import ConvergenceWarning

from leakcap import kernels
from leakcap.errors import InputError
from leakcap.estimators.base import publish
from leakcap.estimators.classifiers import LogProbabilities, PrivateClassifier, Scores
from leakcap.estimators.computation import Computation
from leakcap.estimators.coordinates import Coordinates
from leakcap.estimators.data import Rows
from leakcap.estimators.declared_classes import declared_rows
from leakcap.estimators.logistic_session import trained
from leakcap.estimators.logistic_sums import moved_scores
from leakcap.ground import checks
from leakcap.ground.arrays import Floats, Ints
from leakcap.ground.cores import Machine
from leakcap.kernels.linear import ABSENT, linear_svm, logistic
from leakcap.sessions.fitting import Fitting
from leakcap.sessions.scaling import Scale
from leakcap.worlds import Units, Worlds

__all__ = ["LinearSVC", "LogisticRegression"]


@dataclass(eq=False, repr=False)
class _Linear(Scores, PrivateClassifier):
    C: float = 1.0
    _: KW_ONLY
    class_weight: Any = None
    fit_intercept: bool = True
    max_iter: int = 1000
    tol: float = 1e-4

    def _plain(self) -> Any:
        raise NotImplementedError

    def _kernel(self) -> Callable[..., Any] | None:
        """The fit in all worlds at once, where it serves these parameters."""
        raise NotImplementedError

    def _computation(self, rows: Rows) -> Computation:
        features, codes, classes = rows.features, rows.target, rows.classes
        assert classes is not None
        checks.positive(C=self.C)
        coordinates, served = Coordinates.of(features), self._kernel()
        answer: Callable[..., Any]
        data: tuple[Any, ...] = (features, codes)
        if served is not None and rows.weight is None and self.class_weight is None and self.fit_intercept:
            answer = functools.partial(served, classes=len(classes), coordinates=coordinates)
        else:
            settings = {"plain": self._coded_plain(), "classes": len(classes), "coordinates": coordinates}
            answer, data = functools.partial(_plain_fit, **settings), (*data, self._weight(rows))
        return Computation(
            answer=answer,
            data=data,
            build=functools.partial(_build, plain=self._plain(), classes=classes, coordinates=coordinates),
            utility=self._accuracy(rows),
            pool_public=(
                "The coordinates of the noise: means and covariances of the columns.",
                "The classes that occur.",
            ),
        )

    def _coded_plain(self) -> Any:
        """The plain estimator for classes as numbers. A dict of class weights is already in the weights of the rows."""
        return self._plain().set_params(class_weight="balanced" if self.class_weight == "balanced" else None)

    def _weight(self, rows: Rows) -> Floats:
        assert rows.target is not None and rows.classes is not None
        ones = np.ones(len(rows.features)) if rows.weight is None else rows.weight
        if not isinstance(self.class_weight, dict):
            return ones
        return ones * np.array([self.class_weight.get(one, 1.0) for one in rows.classes.tolist()])[rows.target]


@dataclass(eq=False, repr=False)
class LinearSVC(_Linear):
    """scikit-learn's `LinearSVC` (squared hinge loss) with private weights.

    Args:
        C: inverse strength of the penalty. A smaller one needs less noise.
        class_weight: None, a dict of a weight for each class, or "balanced": in each world by the world's own counts.
        fit_intercept: whether the model has an intercept.
        max_iter: most iterations of a fit.
        tol: accuracy at which a fit stops, as in scikit-learn.
        intercept_scaling: size of the column whose weight is the intercept.
        cap: what may be learnt about who took part, such as `lc.membership(0.55)`; one cap or a list. `fit` needs it.
        worlds: number of possible worlds in which the fit is simulated; "auto": 1,024, up to 4,096 with a kernel.
        strata: "y" for worlds that hold every class in proportion, or the name of a column; `fit` also takes an array.
        random_state: None for a release. A number makes the fit a simulation, and its certificate says so.
        pool_public: in words, what was done to the data by looking at all of them, such as `("columns scaled",)`.
        options: further arguments of `leakcap.plan`, such as `{"workers": 2, "progress": True}`.

    Attributes:
        coef_: released weights, `(1, columns)` for two classes, otherwise `(classes, columns)`.
        intercept_: released intercepts, one for each row of `coef_`.
        classes_: the classes that occur in the pool.
        estimator_: the plain scikit-learn estimator that holds the released numbers and nothing else.
        certificate_: what the release guarantees; may be published.
        plan_: the plan of the last fit. Custodian side: it is never saved or copied with the estimator.

    Examples:
        >>> import leakcap as lc
        >>> from sklearn.datasets import make_blobs
        >>> X, y = make_blobs(200, centers=2, random_state=0)
        >>> settings = {"cap": lc.membership(0.9), "worlds": 32, "random_state": 0, "options": {"draws": 512}}
        >>> LinearSVC(C=0.01, **settings).fit(X, y).coef_.shape
        (1, 2)
    """

    _: KW_ONLY
    intercept_scaling: float = 1.0

    def _plain(self) -> Any:
        return svm.LinearSVC(
            C=self.C,
            class_weight=self.class_weight,
            fit_intercept=self.fit_intercept,
            intercept_scaling=self.intercept_scaling,
            max_iter=self.max_iter,
            tol=self.tol,
            dual=False,
        )

    def _kernel(self) -> Callable[..., Any]:
        return functools.partial(_svm, C=self.C, intercept_scaling=self.intercept_scaling)


@dataclass(eq=False, repr=False)
class LogisticRegression(LogProbabilities, _Linear):
    """scikit-learn's `LogisticRegression` (L2 penalty) with private coefficients.

    Args:
        C: inverse strength of the penalty. A smaller one needs less noise.
        class_weight: None, a dict of a weight for each class, or "balanced": in each world by the world's own counts.
        fit_intercept: whether the model has an intercept.
        max_iter: most iterations of a fit.
        tol: accuracy at which a fit stops, as in scikit-learn.
        classes: for `leakcap.Session.fit`, the classes there may be, known without the data; a pool cap needs them.
        cap: what may be learnt about who took part, such as `lc.membership(0.55)`; one cap or a list. `fit` needs it.
        worlds: number of possible worlds in which the fit is simulated; "auto": 1,024, up to 4,096 with a kernel.
        strata: "y" for worlds that hold every class in proportion, or the name of a column; `fit` also takes an array.
        random_state: None for a release. A number makes the fit a simulation, and its certificate says so.
        pool_public: in words, what was done to the data by looking at all of them, such as `("columns scaled",)`.
        options: further arguments of `leakcap.plan`, such as `{"workers": 2, "progress": True}`.

    Attributes:
        coef_: released coefficients, `(1, columns)` for two classes, otherwise `(classes, columns)`.
        intercept_: released intercepts, one for each row of `coef_`.
        classes_: the classes that occur in the pool.
        estimator_: the plain scikit-learn estimator that holds the released numbers and nothing else.
        certificate_: what the release guarantees; may be published.
        plan_: the plan of the last fit. Custodian side: it is never saved or copied with the estimator.

    Examples:
        >>> import leakcap as lc
        >>> from sklearn.datasets import make_blobs
        >>> X, y = make_blobs(200, centers=2, random_state=0)
        >>> settings = {"cap": lc.membership(0.9), "worlds": 32, "random_state": 0, "options": {"draws": 512}}
        >>> LogisticRegression(C=0.01, **settings).fit(X, y).predict_proba(X).shape
        (200, 2)
    """

    _: KW_ONLY
    classes: Any = None

    def _plain(self) -> Any:
        return linear_model.LogisticRegression(
            C=self.C,
            class_weight=self.class_weight,
            fit_intercept=self.fit_intercept,
            max_iter=self.max_iter,
            tol=self.tol,
        )

    def _kernel(self) -> Callable[..., Any]:
        return functools.partial(_logistic, C=self.C)

    def _rows(self, X: Any, y: Any, weight: Any) -> Rows:
        if self.classes is not None:
            raise InputError("classes are for sessions, leakcap.Session(...).fit(...): otherwise y has them")
        return super()._rows(X, y, weight)

    def _sums_of_half(self, rows: Rows) -> Computation:
        made, plain, weight = self._computation(rows), self._coded_plain(), self._weight(rows)
        assert rows.target is not None and rows.classes is not None
        if self.class_weight == "balanced":
            raise InputError("class_weight='balanced' changes with every coin: give a dict of weights instead")
        if len(rows.classes) == 1:
            raise InputError("design='bits' needs two classes or more in y")
        plain.set_params(max_iter=10 * self.max_iter, tol=self.tol / 1000)  # one fit alone: near its end
        plain.fit(rows.features, rows.target, sample_weight=weight)
        coordinates = Coordinates.of(rows.features)
        return replace(
            made,
            answer=moved_scores(plain, (rows.features, rows.target, weight), coordinates=coordinates),
            data=(rows.features, rows.target, weight),
            pool_public=(
                *made.pool_public,
                "What the coins move: the fit to the whole pool, by first order effects.",
            ),
        )

    def fit_in_session(self, fitting: Fitting) -> Any:
        """A copy that is fitted in a session, by noised sums of clipped gradients.

        Args:
            fitting: the rows, and a way to ask for sums over people.

        Returns:
            The fitted copy.

        Raises:
            InputError: settings were given that gradient steps do not take, or classes are missing.
        """
        made = self._copy_for_session()
        if (self.C, self.class_weight, self.fit_intercept) != (1.0, None, True):
            raise InputError(
                "in a session noise takes the place of the penalty: leave out C, class_weight and fit_intercept"
            )
        if fitting.target is None:
            raise InputError("say what is to be predicted: session.fit(LogisticRegression(), target='income')")
        rows = self._session_rows(made, fitting)
        scale = Scale.of(fitting)
        assert rows.classes is not None and rows.target is not None
        scores = trained(fitting, scale, rows.target, classes=len(rows.classes), public=self.classes is not None)
        two = len(rows.classes) == 2
        plain = made._plain()
        plain.coef_ = (scores.weights[:, 1:] - scores.weights[:, :1]).T if two else scores.weights.T
        plain.intercept_ = scores.level[1:] - scores.level[:1] if two else scores.level
        plain.classes_, plain.n_iter_ = rows.classes, np.array([self.max_iter])
        publish(made, plain)
        return made

    def _session_rows(self, made: Any, fitting: Fitting) -> Rows:
        """The classes as numbers; -1 where a row is of none of those declared."""
        if self.classes is not None:
            return declared_rows(made, fitting.features, fitting.target, self.classes)
        if fitting.declared_only:
            raise InputError(
                "for analysts, under a pool cap and over partitions say which classes there may be: "
                "LogisticRegression(classes=['no', 'yes']), for example. They must not come from the data: a class "
                "that shows tells of somebody in it"
            )
        return super(LogisticRegression, made)._rows(fitting.features, fitting.target, None)


def _all_lines(
    fit: Callable[..., Floats],
    data: tuple[Any, ...],
    units: Units,
    worlds: Worlds,
    *,
    classes: int,
    coordinates: Coordinates,
    memory: int = Machine().memory,
    **settings: Any,
) -> Floats:
    features, codes = data
    found = fit(features, codes, worlds.over_rows(units), classes=np.arange(classes), memory=memory, **settings)
    return coordinates.encode(found[:, :, :-1], found[:, :, -1]).reshape(worlds.m, -1)


_all_svm = functools.partial(_all_lines, linear_svm)
_all_logistic = functools.partial(_all_lines, logistic)


@kernels.offers(_all_svm, tolerance=1e-4)
def _svm(features: Floats, codes: Ints, *, classes: int, **settings: Any) -> dict[str, Floats]:
    n = len(features)
    found = _all_svm((features, codes), Units.of(n, None), Worlds.everybody(n), classes=classes, **settings)
    return {"scores": found.reshape(_lines(classes), -1)}


@kernels.offers(_all_logistic, tolerance=1e-4)
def _logistic(features: Floats, codes: Ints, *, classes: int, **settings: Any) -> dict[str, Floats]:
    n = len(features)
    found = _all_logistic((features, codes), Units.of(n, None), Worlds.everybody(n), classes=classes, **settings)
    return {"scores": found.reshape(_lines(classes), -1)}


def _lines(classes: int) -> int:
    """Number of rows of coefficients: two classes share one."""
    return 1 if classes == 2 else classes


def _plain_fit(
    features: Floats, codes: Ints, weight: Floats, *, plain: Any, classes: int, coordinates: Coordinates
) -> dict[str, Floats]:
    """scikit-learn's fit. A class that the world lacks gets an intercept that rules it out, as in the kernels."""
    counted = weight > 0
    features, codes, weight = features[counted], codes[counted], weight[counted]
    there = np.unique(codes)
    coefficients, intercept = np.zeros((classes, features.shape[1])), np.full(classes, ABSENT)
    if len(there) == 1:
        intercept[there] = 0.0
    elif len(there) > 1:
        made = type(plain)(**plain.get_params())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            made.fit(features, codes, sample_weight=weight)
        if len(there) == 2:
            half = 1 if classes == 2 else 2
            lines, base = np.concatenate([-made.coef_, made.coef_]) / half, np.ravel(made.intercept_) / half
            coefficients[there], intercept[there] = lines, np.concatenate([-base, base])
        else:
            coefficients[there], intercept[there] = made.coef_, made.intercept_
    if classes == 2:
        single = len(there) == 1
        coefficients = coefficients[1:]
        intercept = np.array([-ABSENT if there[0] == 1 else ABSENT]) if single else intercept[1:]
    return {"scores": coordinates.encode(coefficients, intercept)}


def _build(value: dict[str, Floats], *, plain: Any, classes: npt.NDArray[Any], coordinates: Coordinates) -> Any:
    made = type(plain)(**plain.get_params())
    made.coef_, made.intercept_ = coordinates.decode(value["scores"])
    if not plain.fit_intercept:
        made.intercept_ = np.zeros(len(made.intercept_))
    made.classes_ = classes
    return made
