"""The whole trade-off between privacy and utility, from one simulation and before anything is released."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn import config_context
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.metrics import check_scoring

from leakcap.caps import Cap, CapLike, MutualInformation, as_caps, membership
from leakcap.certificates.display import Drawn
from leakcap.certificates.text import percent
from leakcap.errors import CapError, InputError, LeakcapError
from leakcap.estimators.base import PrivateEstimator, planned, publish
from leakcap.estimators.computation import Computation
from leakcap.ground import checks
from leakcap.planning.plans import Plan
from leakcap.simulate import rebuild

__all__ = ["Curve", "CurvePoint", "privacy_utility_curve"]

CAPS = (0.51, 0.52, 0.55, 0.6, 0.7, 0.8)


@dataclass(frozen=True)
class CurvePoint:
    """What is to be expected at one cap.

    Attributes:
        caps: the caps that hold together at this point.
        success: certified success of the best guess whether a given person took part.
        score: mean score over simulated releases.
        spread: standard deviation of the score between simulated releases.
        noise: total standard deviation of the noise, over all outputs.
    """

    caps: tuple[Cap, ...]
    success: float
    score: float
    spread: float
    noise: float

    @property
    def name(self) -> str:
        """The caps in a few words."""
        return " and ".join(_in_short(cap) for cap in self.caps)


@dataclass(frozen=True, repr=False)
class Curve(Drawn):
    """Expected scores over caps. Custodian side: scores may reveal something about the data, and none is noised.

    Attributes:
        points: what is to be expected at each cap.
        unprotected: score of the fit on the whole pool; None where that fit has none.
        without_noise: score of the fit in a world, which is a part of the pool.
        nothing: score of an estimator that knows nothing; None where it is not known.
        scoring: name of the score.
        estimator: name of the estimator.
        worlds: number of worlds in the simulation.
        units: number of units in the pool.
        releases: number of simulated releases at each cap.
    """

    points: tuple[CurvePoint, ...]
    unprotected: float | None
    without_noise: float
    nothing: float | None
    scoring: str
    estimator: str
    worlds: int
    units: int
    releases: int
    _custodian_only: ClassVar[bool] = True

    def table(self) -> str:
        """All figures as text.

        Returns:
            A table with a line for each cap.
        """
        width = max(18, *(len(point.name) + 2 for point in self.points))
        lines = [
            f"CUSTODIAN ONLY: {self.scoring} of {self.estimator}, {self.units:,} units, {self.worlds:,} worlds, "
            f"{self.releases} simulated releases",
            f"{'cap':<{width}}{'certified':>11}{'expected':>11}{'+-':>9}{'noise std':>12}",
        ]
        for point in self.points:
            lines.append(
                f"{point.name:<{width}}{percent(point.success):>11}{point.score:>11.4f}{point.spread:>9.2g}"
                f"{point.noise:>12.4g}"
            )
        lines.append(f"{'without noise':<{width}}{'':>11}{self.without_noise:>11.4f}   fitted to a part of the pool")
        if self.unprotected is not None:
            lines.append(f"{'unprotected':<{width}}{'':>11}{self.unprotected:>11.4f}   fitted to the whole pool")
        if self.nothing is not None:
            lines.append(f"{'knowing nothing':<{width}}{'':>11}{self.nothing:>11.4f}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return f"Curve(CUSTODIAN ONLY, {self.scoring} of {self.estimator} at {len(self.points)} caps)"

    def __reduce__(self) -> Any:
        raise LeakcapError("a curve is custodian-side and is not pickled; keep curve.table() or curve.to_svg() instead")


def privacy_utility_curve(
    estimator: PrivateEstimator,
    X: Any,
    y: Any = None,
    caps: Iterable[float | CapLike] = CAPS,
    *,
    test: tuple[Any, ...] | None = None,
    scoring: str | Callable[..., float] | None = None,
    releases: int = 100,
    unit: Any = None,
    sample_weight: Any = None,
) -> Curve:
    """What a private estimator would be worth at each of several caps, before any release.

    Nothing is released, and the right to release is not spent.
    The fit is simulated once; each cap then gets its own noise and certificate. The estimator is left as it is, and
    its own `cap` plays no part. The result is custodian side.

    Args:
        estimator: a private estimator, such as `leakcap.estimators.KMeans(7)`.
        X: rows and columns, an array or a DataFrame.
        y: the target, where the estimator needs one.
        caps: numbers (success at guessing whether a given person took part), caps, or lists of caps that must hold
            together.
        test: `(X_test, y_test)` or `(X_test,)` on which scores are measured. None: the pool itself.
        scoring: as in scikit-learn: a name such as "accuracy", or a function of a fitted estimator, `X` and `y`. None:
            the estimator's own `score` where there are test data, otherwise its own measure of utility.
        releases: number of releases to simulate at each cap, at least 2.
        unit: whose row it is, an array or the name of a column; that column is then not a feature.
        sample_weight: a weight for each row, at least 0.

    Returns:
        The curve: a table as text, a picture in a notebook.

    Raises:
        InputError: the estimator is not a private one, or an argument cannot be used.
        CapError: a cap is neither a number above 0.5 nor a cap.

    Examples:
        >>> import numpy as np
        >>> from leakcap.estimators import Mean
        >>> rows = np.random.default_rng(0).normal(size=(60, 2))
        >>> mean = Mean(worlds=32, random_state=0, options={"draws": 512})
        >>> curve = privacy_utility_curve(mean, rows, caps=[0.6, 0.8], releases=20)
        >>> curve.points[0].score < curve.points[1].score
        True
    """
    if not isinstance(estimator, PrivateEstimator):
        raise InputError("give a private estimator, such as leakcap.estimators.KMeans(7); Private(...) wraps any other")
    wanted = [_as_caps(one) for one in ([caps] if isinstance(caps, (Cap, int, float)) else caps)]
    if not wanted:
        raise InputError("give at least one cap, such as caps=[0.51, 0.55, 0.6]")
    checks.count(at_least=2, releases=releases)
    shell: PrivateEstimator = clone(estimator)
    made, computation = planned(shell, X, y, unit=unit, sample_weight=sample_weight, cap=wanted[0])
    name, score = _score(shell, made, computation, X=X, y=y, test=test, scoring=scoring)
    points, plain = [], 0.0
    for place, capped in enumerate(wanted):
        at = made if place == 0 else made.recap(capped)
        found = at.expected(score, releases)
        plain = found.without_noise  # the same worlds every time
        points.append(
            CurvePoint(
                caps=capped,
                success=at.certificate.membership_success,
                score=found.mean,
                spread=found.spread,
                noise=at.noise.std,
            )
        )
    worth = computation.utility
    return Curve(
        points=tuple(points),
        unprotected=_unprotected(made, computation, score),
        without_noise=plain,
        nothing=worth.nothing if worth is not None and test is None and scoring is None else None,
        scoring=name,
        estimator=type(estimator).__name__,
        worlds=made.worlds.m,
        units=made.worlds.n,
        releases=releases,
    )


def _as_caps(cap: Any) -> tuple[Cap, ...]:
    if isinstance(cap, (int, float, np.integer, np.floating)) and not isinstance(cap, bool):
        return (membership(float(cap)),)
    try:
        return as_caps(cap)
    except CapError:
        raise CapError(
            "caps must be numbers above 0.5, caps such as leakcap.membership(0.55), or lists of them"
        ) from None


def _score(
    shell: PrivateEstimator,
    made: Plan,
    computation: Computation,
    X: Any,
    y: Any,
    test: Sequence[Any] | None,
    scoring: Any,
) -> tuple[str, Callable[[Any], float]]:
    """The name of the score, and a function that gives it for what is made of a released value."""
    build, worth = computation.build, computation.utility
    if test is None and scoring is None and worth is not None:
        return worth.name, worth.score
    if test is not None and (not isinstance(test, (tuple, list)) or len(test) not in (1, 2)):
        raise InputError("test must be (X_test, y_test), or (X_test,)")
    rows = (X, y) if test is None else tuple(test)
    features, target = rows[0], rows[1] if len(rows) == 2 else None
    fitted = copy.copy(shell)  # a released value is put into it, as into an estimator that was fitted
    try:
        scorer = check_scoring(fitted, scoring=scoring)
    except TypeError:
        raise InputError("this estimator has no score method: give scoring=, as in scikit-learn") from None

    def scored() -> float:
        return float(scorer(fitted, features) if target is None else scorer(fitted, features, target))

    publish(fitted, build(rebuild(made.run.simulation.node, made.run.simulation.table[0])))
    scored()  # the rows are checked this once: checks take most of the time of a score

    def score(value: Any) -> float:
        publish(fitted, value)
        with config_context(assume_finite=True, skip_parameter_validation=True):
            return scored()

    if scoring is None:
        return "accuracy" if is_classifier(shell) else "R2" if is_regressor(shell) else "score", score
    return scoring if isinstance(scoring, str) else getattr(scoring, "__name__", "score"), score


def _unprotected(made: Plan, computation: Computation, score: Callable[[Any], float]) -> float | None:
    whole = made.run.simulation.whole_pool
    return None if whole is None else float(score(computation.build(rebuild(made.run.simulation.node, whole))))


def _in_short(cap: Cap) -> str:
    """A cap in a few words, for a table."""
    kind = type(cap).__name__
    words = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in kind).strip()
    if isinstance(cap, MutualInformation):
        return f"{words} {cap.limit:.4g} nats"
    # A kind of somebody's own says its limit in its own words.
    return f"{words} {100 * cap.limit:.4g} %" if type(cap).__module__ == Cap.__module__ else cap.describe()
