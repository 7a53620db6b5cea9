"""Randomised response among the likeliest classes, by a public prior: the mechanism of LP-2ST."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import xlogy

from leakcap.certificates.labels import LabelCertificate
from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats
from leakcap.ground.proofs import proves
from leakcap.labels.mechanisms.base import Mechanism, checked_prior
from leakcap.labels.mechanisms.integer_law import below
from leakcap.labels.mechanisms.krr import response

__all__ = ["RRWithPrior"]


@proves("label-mechanisms")
class RRWithPrior(Mechanism):
    """Randomised response among the k likeliest classes; a label outside them becomes any of the k.

    For every row the mechanism takes the k that keeps the label most often (Ghazi et al. 2021, Algorithm 2).

    Guarantee: epsilon-DP for the label, for any prior that does not depend on it.

    Args:
        epsilon: differential privacy of each label, at least 1e-6.
        prior: what is known without the labels, `(C,)` for all or `(n, C)` with a row for each label: for instance the
            predictions of a model that never saw these labels.
        classes: names of the classes, in the order of the prior's columns. Public: never taken from the labels.

    Attributes:
        prior: the prior, normalised.
        sizes: k for each row of the prior.

    Raises:
        InputError: the prior does not hold probabilities, or the classes differ from it in number.

    Examples:
        >>> mechanism = RRWithPrior(epsilon=1.0, prior=[0.48, 0.48, 0.02, 0.02])
        >>> mechanism.sizes.tolist()
        [2]
    """

    name = "randomised response with a prior"

    def __init__(self, epsilon: float, prior: npt.ArrayLike, classes: Sequence[Any] | None = None) -> None:
        given = checked_prior(prior)
        super().__init__(epsilon, given.shape[-1] if given.ndim else None, classes)
        self.prior = checked_prior(prior, self.n_classes)
        rows = np.atleast_2d(self.prior)
        order = np.argsort(-rows, axis=1, kind="stable")
        gathered = np.cumsum(np.take_along_axis(rows, order, axis=1), axis=1)
        k = np.arange(1, self.n_classes + 1)
        kept = 1 / (1 + (k - 1) * np.exp(-self.epsilon))
        self.sizes = np.argmax(gathered * kept, axis=1) + 1
        self._order = order.astype(np.int64)
        self._rank = np.argsort(order, axis=1)

    def _observe(self, codes: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        rows = self._rows(len(codes))
        sizes, rank = self.sizes[rows], self._rank[rows, codes]
        found = np.empty(len(codes), dtype=np.int64)
        for k in np.unique(sizes):
            (here,) = np.nonzero(sizes == k)
            # Every row draws for both cases, so that no stream of random numbers reveals which case it was.
            replaced = response(self._working_epsilon, int(k)).draw(len(here)) == 1
            other = below(int(k) - 1, len(here)) + 1 if k > 1 else np.zeros(len(here), dtype=np.int64)
            any_one = below(int(k), len(here))
            place = np.where(replaced, (rank[here] + other) % k, rank[here])
            found[here] = np.where(rank[here] < k, place, any_one)
        return self._classes.of(self._order[rows, found])

    def scores(self, observed: npt.ArrayLike) -> npt.NDArray[np.float32]:
        """`epsilon` at the class observed, 0 at the other likely ones, `log((e^epsilon + k - 1)/k)` at the rest.

        Args:
            observed: what `privatize` gave.

        Returns:
            `(n, n_classes)`, in nats.

        Raises:
            InputError: `observed` is not what this mechanism gives.
        """
        codes = self._classes.seen(observed)
        rows = self._rows(len(codes))
        sizes = self.sizes[rows]
        if (self._rank[rows, codes] >= sizes).any():
            raise InputError(
                "some observations lie outside the likely classes of their prior: they belong to another prior"
            )
        outside = self.epsilon + np.log1p((sizes - 1) * np.exp(-self.epsilon)) - np.log(sizes)
        score = np.where(self._rank[rows] < sizes[:, None], 0.0, outside[:, None]).astype(np.float32)
        score[np.arange(len(codes)), codes] = self.epsilon
        return score

    def _information(self, prior: Floats) -> Floats:
        prior, likely, k, kept, other = self._by_rows(prior)
        mass = np.where(likely, prior, 0).sum(axis=1, keepdims=True)
        seen = np.where(likely, other * mass + (kept - other) * prior + (1 - mass) / k, 0)
        told = mass[:, 0] * (xlogy(kept, kept) + xlogy((k - 1) * other, other))[:, 0]  # minus entropies given the label
        told -= (1 - mass[:, 0]) * np.log(k[:, 0])
        return np.asarray(np.maximum(told - xlogy(seen, seen).sum(axis=1), 0))

    def _guesses(self, prior: Floats) -> Floats:
        prior, likely, k, kept, other = self._by_rows(prior)
        inside = np.where(likely, prior, 0).max(axis=1, keepdims=True) * other
        outside = np.where(likely, 0, prior).max(axis=1, keepdims=True) / k
        best = np.maximum(prior * kept, np.maximum(inside, outside))
        return np.asarray(np.where(likely, best, 0).sum(axis=1))

    def _by_rows(self, prior: Floats) -> tuple[Floats, npt.NDArray[np.bool_], Floats, Floats, Floats]:
        """Prior, which classes are likely, their number, and probabilities of the label and of another likely one."""
        known = np.broadcast_to(prior, np.broadcast_shapes(prior.shape, self._rank.shape))
        sizes, place = np.unique(self.sizes, return_inverse=True)
        laws = np.array([response(self._working_epsilon, int(k)).probabilities for k in sizes])[place]
        k = self.sizes[:, None].astype(np.float64)
        return known, self._rank < self.sizes[:, None], k, laws[:, :1], laws[:, 1:] / np.maximum(k - 1, 1)

    def _prior(self, prior: npt.ArrayLike | None) -> Floats:
        if prior is None:
            return self.prior
        known, rows = checked_prior(prior, self.n_classes), len(self._rank)
        if known.ndim == 2 and rows not in (1, len(known)):
            raise InputError(f"the mechanism has a prior of {rows} rows: give one row, or as many")
        return known

    def certificate(self, labels: int, prior: npt.ArrayLike | None = None) -> LabelCertificate:
        """What the best attacker can learn of one label when this many were privatised.

        Args:
            labels: number of labels that were privatised.
            prior: probabilities of the classes, `(n_classes,)`, or a row for every label; the mechanism's own if left
                out.

        Returns:
            The certificate. Where the prior has a row for every label, it states the label whose guessing gains most,
            with that label's row.

        Raises:
            InputError: the prior has neither one row nor as many as there are labels.
        """
        self._rows(checks.count(labels=labels))
        return super().certificate(labels, prior)

    def _settings(self) -> tuple[tuple[str, float], ...]:
        return (("likely_classes_on_average", float(self.sizes.mean())),)

    def _rows(self, labels: int) -> npt.NDArray[np.int64]:
        rows = np.atleast_2d(self.prior).shape[0]
        if rows not in (1, labels):
            raise InputError(f"the prior has {rows} rows: give as many labels, in the same order")
        return np.zeros(labels, dtype=np.int64) if rows == 1 else np.arange(labels)
