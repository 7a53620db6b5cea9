"""Which mechanism to take: the one whose observations tell most about the labels at the same epsilon."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from leakcap.labels.krr import KRR
from leakcap.labels.mechanism import Mechanism, checked_prior
from leakcap.labels.subset import SubsetSelection, best_size
from leakcap.labels.unary import UnaryBits
from leakcap.labels.with_prior import RRWithPrior

__all__ = ["auto", "candidates"]

_SAME = 1 + 1e-9  # the simpler of two mechanisms that tell the same


def auto(
    epsilon: float,
    n_classes: int | None = None,
    prior: npt.ArrayLike | None = None,
    classes: Sequence[Any] | None = None,
) -> Mechanism:
    """The mechanism that tells most about labels by this prior, in nats; the simplest of equals.

    `prior` must be public: what is known without the labels, `(C,)`, or rows of it. Left out, nothing is known.

    >>> auto(epsilon=1.0, n_classes=10), auto(epsilon=4.0, n_classes=10)
    (SubsetSelection(epsilon=1, n_classes=10, size=3), KRR(epsilon=4, n_classes=10, kept=0.858486))
    """
    offered = candidates(epsilon, n_classes, prior, classes)
    told = [mechanism.mutual_information(prior) for mechanism in offered]
    return next(mechanism for mechanism, nats in zip(offered, told, strict=True) if nats * _SAME >= max(told))


def candidates(
    epsilon: float,
    n_classes: int | None = None,
    prior: npt.ArrayLike | None = None,
    classes: Sequence[Any] | None = None,
) -> list[Mechanism]:
    """What `auto` chooses from, the simplest first."""
    if n_classes is None and classes is None and prior is not None:
        n_classes = checked_prior(prior).shape[-1]
    classes = None if classes is None else list(classes)
    krr = KRR(epsilon, n_classes, classes)
    count = krr.n_classes
    # When few classes are likely, larger sets tell more than those that are best when nothing is known.
    ideal = best_size(epsilon, count)
    sizes = sorted({k for k in (ideal, ideal + 1, 2 * ideal, count // 3, count // 2) if 1 < k < count})
    offered: list[Mechanism] = [krr, UnaryBits(epsilon, n_classes, classes)]
    offered += [SubsetSelection(epsilon, n_classes, classes, size=k) for k in sizes]
    if prior is not None and checked_prior(prior, count).ndim == 1:
        offered.append(RRWithPrior(epsilon, prior, classes))
    return offered
