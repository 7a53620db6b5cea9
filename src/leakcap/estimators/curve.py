"""The whole trade-off between privacy and use, from one simulation and before anything is released."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.metrics import check_scoring

from leakcap import checks
from leakcap.caps import Cap, CapLike, as_caps, membership
from leakcap.errors import CapError, InputError, LeakcapError
from leakcap.estimators.base import Mechanism, PrivateEstimator
from leakcap.releases import Plan
from leakcap.report.tradeoff import Tradeoff, tradeoff_axes, tradeoff_fragment, tradeoff_svg
from leakcap.simulate import rebuild

__all__ = ["Curve", "CurvePoint", "privacy_utility_curve"]

CAPS = (0.51, 0.52, 0.55, 0.6, 0.7, 0.8)


@dataclass(frozen=True)
class CurvePoint:
    """What is to be expected at one cap."""

    caps: tuple[Cap, ...]
    success: float  # certified: of the best guess whether a given person took part
    score: float  # mean over simulated releases
    spread: float  # standard deviation between them
    noise: float  # total standard deviation of the noise, over all outputs

    @property
    def name(self) -> str:
        return " and ".join(_in_short(cap) for cap in self.caps)


@dataclass(frozen=True, repr=False)
class Curve:
    """Expected scores over caps; custodian side: scores may tell about the data, and none of them is noised.

    `unprotected` is the score of the fit on the whole pool (None where it has none), `without_noise` that of the
    fit in a world, which is a part of the pool.
    """

    points: tuple[CurvePoint, ...]
    unprotected: float | None
    without_noise: float
    nothing: float | None  # the score of an estimator that knows nothing, where it is known
    scoring: str
    estimator: str
    worlds: int
    units: int
    releases: int

    def table(self) -> str:
        """All figures as text."""
        width = max(18, *(len(point.name) + 2 for point in self.points))
        lines = [
            f"CUSTODIAN ONLY: {self.scoring} of {self.estimator}, {self.units:,} units, {self.worlds:,} worlds, "
            f"{self.releases} simulated releases",
            f"{'cap':<{width}}{'certified':>11}{'expected':>11}{'+-':>9}{'noise std':>12}",
        ]
        for point in self.points:
            lines.append(
                f"{point.name:<{width}}{100 * point.success:>9.2f} %{point.score:>11.4f}{point.spread:>9.2g}"
                f"{point.noise:>12.4g}"
            )
        lines.append(f"{'without noise':<{width}}{'':>11}{self.without_noise:>11.4f}   fitted to a part of the pool")
        if self.unprotected is not None:
            lines.append(f"{'unprotected':<{width}}{'':>11}{self.unprotected:>11.4f}   fitted to the whole pool")
        if self.nothing is not None:
            lines.append(f"{'knowing nothing':<{width}}{'':>11}{self.nothing:>11.4f}")
        return "\n".join(lines)

    def plot(self, ax: Any = None) -> Any:
        """Draw the curve on matplotlib axes, new ones where none are given; returns the axes."""
        return tradeoff_axes(self._drawn(), ax)

    def to_svg(self) -> str:
        """The picture as a file of its own; it follows the reader's choice of light or dark."""
        return tradeoff_svg(self._drawn())

    def _repr_html_(self) -> str:
        return tradeoff_fragment(self._drawn())

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return f"Curve(CUSTODIAN ONLY, {self.scoring} of {self.estimator} at {len(self.points)} caps)"

    def __reduce__(self) -> Any:
        raise LeakcapError("a curve is custodian-side and is not pickled; keep curve.table() or curve.to_svg() instead")

    def _drawn(self) -> Tradeoff:
        points = sorted(self.points, key=lambda point: point.success)
        return Tradeoff(
            f"{self.scoring} of {self.estimator}",
            tuple(point.name for point in points),
            np.array([point.success for point in points]),
            np.array([point.score for point in points]),
            np.array([point.spread for point in points]),
            self.without_noise,
            self.unprotected,
            self.nothing,
            f"{self.units:,} units, {self.worlds:,} worlds, {self.releases} simulated releases",
        )


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
    """What a private estimator would be worth at each of several caps. Nothing is released and no right to it is spent.

    The fit is simulated once; each cap then gets its own noise and certificate. The estimator is left as it is, and
    its own `cap` plays no part. The result is the custodian's.

    Args:
        caps: numbers (success at guessing whether a given person took part), caps, or lists of caps that must hold
            together.
        test: `(X_test, y_test)` or `(X_test,)` that scores are measured on. None: the pool itself.
        scoring: as in scikit-learn: a name such as "accuracy", or a function of a fitted estimator, `X` and `y`. None:
            the estimator's own `score` where there are test data, otherwise its own measure of utility.
        releases: to simulate at each cap.

    Examples:
        >>> import numpy as np
        >>> from leakcap.estimators import Mean
        >>> rows = np.random.default_rng(0).normal(size=(60, 2))
        >>> curve = privacy_utility_curve(Mean(worlds=32, random_state=0), rows, caps=[0.55, 0.8], releases=20)
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
    made, mechanism = shell._planned(X, y, unit, sample_weight, wanted[0])
    name, score = _score(shell, mechanism, X, y, test, scoring)
    points, plain = [], 0.0
    for place, capped in enumerate(wanted):
        at = made if place == 0 else made.recap(capped)
        found = at.expected(score, releases)
        plain = found.without_noise  # the same worlds every time
        points.append(CurvePoint(capped, at.certificate.membership_success, found.mean, found.spread, at.noise.std))
    worth = mechanism.utility
    return Curve(
        points=tuple(points),
        unprotected=_unprotected(made, score),
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
    shell: PrivateEstimator, mechanism: Mechanism, X: Any, y: Any, test: Sequence[Any] | None, scoring: Any
) -> tuple[str, Callable[[Any], float]]:
    """What is measured, and how it is measured on a released value."""
    build, worth = mechanism.build, mechanism.utility
    if test is None and scoring is None and worth is not None:
        own = worth.score
        return worth.name, lambda value: own(build(value))
    if test is not None and (not isinstance(test, (tuple, list)) or len(test) not in (1, 2)):
        raise InputError("test must be (X_test, y_test), or (X_test,)")
    rows = (X, y) if test is None else tuple(test)
    features, target = rows[0], rows[1] if len(rows) == 2 else None
    fitted = copy.copy(shell)  # a released value is put into it, as into an estimator that was fitted
    try:
        scorer = check_scoring(fitted, scoring=scoring)
    except TypeError:
        raise InputError("this estimator has no score of its own: give scoring=, as in scikit-learn") from None

    def score(value: Any) -> float:
        fitted._publish(build(value))
        return float(scorer(fitted, features) if target is None else scorer(fitted, features, target))

    if scoring is None:
        return "accuracy" if is_classifier(shell) else "R2" if is_regressor(shell) else "score", score
    return scoring if isinstance(scoring, str) else getattr(scoring, "__name__", "score"), score


def _unprotected(made: Plan, score: Callable[[Any], float]) -> float | None:
    whole = made._simulation.whole_pool
    return None if whole is None else float(score(rebuild(made._simulation.node, whole)))


def _in_short(cap: Cap) -> str:
    """A cap in a few words, for a table."""
    kind = type(cap).__name__
    words = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in kind).strip()
    if kind == "MutualInformation":
        return f"{words} {cap.limit:.4g} nats"
    return f"{words} {100 * cap.limit:.4g} %"
