"""Which mechanism to take: the one whose observations say most about the labels at the same epsilon."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from leakcap.errors import InputError
from leakcap.labels.mechanisms.base import Mechanism, checked_prior
from leakcap.labels.mechanisms.krr import KRR
from leakcap.labels.mechanisms.subset import SubsetSelection, best_size
from leakcap.labels.mechanisms.unary import UnaryBits
from leakcap.labels.mechanisms.with_prior import RRWithPrior
from leakcap.labels.ways import enough_rows, weighed

__all__ = ["auto", "candidates"]

_SAME = 1 + 1e-9  # ratio of information within which two mechanisms count as equal


def auto(
    epsilon: float,
    n_classes: int | None = None,
    prior: npt.ArrayLike | None = None,
    classes: Sequence[Any] | None = None,
    *,
    rows: int | None = None,
    columns: int | None = None,
) -> Mechanism:
    """The mechanism whose observations carry most nats about labels by this prior; the simplest of equals.

    `str` of it also says which of three ways to learn is advised, and why: observations, noised sums (`Ridge`,
    `Logistic`), or votes of teachers (`PATE`); `advise` says no more than that.

    Args:
        epsilon: differential privacy of each label, at least 1e-6.
        n_classes: number of classes, at least 2; labels are then whole numbers from 0 to `n_classes` - 1.
        prior: what is known without the labels, `(C,)` or rows of it; public. Left out, nothing is known.
        classes: names of the classes instead, in the order of the columns. Public: never taken from the labels.
        rows: number of labels; with `columns`, for its words alone.
        columns: number of features.

    Returns:
        `KRR`, `UnaryBits`, `SubsetSelection` or, with a prior of one row, `RRWithPrior`; `str` of it says why.

    Raises:
        InputError: epsilon is too small, the classes are missing or repeat, the prior does not hold probabilities, or
            one of `rows` and `columns` is missing.

    Examples:
        >>> auto(epsilon=1.0, n_classes=10), auto(epsilon=4.0, n_classes=10)
        (SubsetSelection(epsilon=1, n_classes=10, size=3), KRR(epsilon=4, n_classes=10, kept=0.858486))
        >>> "an observation tells 0.122 nats of a label" in str(auto(epsilon=1.0, n_classes=10))
        True
        >>> "Statistics: lc.labels.Logistic" in str(auto(epsilon=1.0, n_classes=10, rows=50_000, columns=64))
        True
    """
    if (rows is None) != (columns is None):
        raise InputError("give both rows= and columns=, or none of them: advice needs the two")
    offered = candidates(epsilon, n_classes, prior, classes)
    told = [mechanism.mutual_information(prior) for mechanism in offered]
    place = next(place for place, nats in enumerate(told) if nats * _SAME >= max(told))
    chosen = offered[place]
    words = _words(offered, told, place, "by this prior" if prior is not None else "where nothing is known")
    if rows is None or columns is None:
        chosen.reason = f"{words}. {_three_ways(chosen, prior)}"
    else:
        chosen.reason = f"{words}. {weighed(chosen, prior, rows=rows, columns=columns)}"
    return chosen


def _three_ways(chosen: Mechanism, prior: npt.ArrayLike | None) -> str:
    """What can be said where nothing is known of rows and columns."""
    rows = enough_rows(chosen, prior)
    beyond = "responses like these (lc.labels.Classifier), which trust nobody with all labels and teach any model"
    if rows <= 1:
        advised = f"as well as noised sums teach {beyond}: they are advised"
    else:
        advised = (
            f"with fewer than {float(f'{rows:.1e}'):,.0f} rows for each column noised sums are advised, where a "
            "curator may see all labels (Statistics: lc.labels.Logistic), as they teach a linear model better; with "
            f"more {beyond}"
        )
    return f"Of three ways to learn: {advised}; votes (lc.labels.PATE) are for teachers that are not linear"


def _words(offered: Sequence[Mechanism], told: Sequence[float], place: int, known: str) -> str:
    """What was chosen, and how much more its observations tell than those of others."""
    mine, named = type(offered[place]).__name__, dict[str, float]()
    for one, nats in zip(offered, told, strict=True):
        named[type(one).__name__] = max(nats, named.get(type(one).__name__, 0.0))
    others = ", ".join(
        f"{name} {named[name]:.3g}" for name in sorted(named, key=lambda one: -named[one]) if name != mine
    )
    return (
        f"{offered[place]!r}, chosen because an observation tells {told[place]:.3g} nats of a label {known}; beside it "
        f"{others}, at the same epsilon"
    )


def candidates(
    epsilon: float,
    n_classes: int | None = None,
    prior: npt.ArrayLike | None = None,
    classes: Sequence[Any] | None = None,
) -> list[Mechanism]:
    """The mechanisms that `auto` chooses from, the simplest first."""
    if n_classes is None and classes is None and prior is not None:
        n_classes = checked_prior(prior).shape[-1]
    classes = None if classes is None else list(classes)
    krr = KRR(epsilon, n_classes, classes)
    count = krr.n_classes
    # When few classes are likely, larger sets say more than those that are best when nothing is known.
    ideal = best_size(epsilon, count)
    sizes = sorted({k for k in (ideal, ideal + 1, 2 * ideal, count // 3, count // 2) if 1 < k < count})
    offered: list[Mechanism] = [krr, UnaryBits(epsilon, n_classes, classes)]
    offered += [SubsetSelection(epsilon, n_classes, classes, size=k) for k in sizes]
    if prior is not None and checked_prior(prior, count).ndim == 1:
        offered.append(RRWithPrior(epsilon, prior, classes))
    return offered
