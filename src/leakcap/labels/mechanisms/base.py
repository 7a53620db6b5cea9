"""What every label mechanism is: labels in once, observations out, and Bayes' rule for whoever reads them.

A mechanism sees each label alone and draws its randomness from the operating system. All that happens afterwards,
learning included, is post-processing of what it drew and costs no further epsilon.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.certificates.labels import ASSUMPTIONS, BY_ROWS, LabelCertificate
from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats
from leakcap.labels.mechanisms.classes import Classes
from leakcap.version import __version__

__all__ = ["SMALLEST_EPSILON", "Mechanism", "checked_prior"]

SMALLEST_EPSILON = 1e-6
# Chances are built for slightly less than the epsilon that is claimed; their rounding is smaller than the rest.
_MARGIN = 1 - 1e-9
_ROUNDING = 1e-13  # nats by which sums of chances may be too small


class Mechanism(ABC):
    """A label-private mechanism for `n_classes` classes, or for the names in `classes`.

    Labels are whole numbers from 0 to `n_classes` - 1 unless `classes` names them. Classes are public: never take
    them from the labels themselves, or a class that occurs once gives its owner away.

    Args:
        epsilon: differential privacy of each label, at least 1e-6.
        n_classes: number of classes, at least 2; labels are then whole numbers from 0 to `n_classes` - 1.
        classes: names of the classes instead, in the order of the columns. Public: never taken from the labels.

    Attributes:
        name: the mechanism's name in certificates and on the command line.
        reason: what `auto` chose and why, in words; None where it was chosen by hand.

    Raises:
        InputError: epsilon is too small, or the classes are missing or repeat.
    """

    name: str  # in certificates and on the command line
    reason: str | None = None  # why `auto` chose it, in words
    theorem = "label-mechanisms"

    def __init__(self, epsilon: float, n_classes: int | None = None, classes: Sequence[Any] | None = None) -> None:
        self._epsilon = checks.positive(epsilon=epsilon)
        if self._epsilon < SMALLEST_EPSILON:
            raise InputError(
                f"epsilon must be at least {SMALLEST_EPSILON:g}: below that the labels say nothing; train without them"
            )
        self._classes = Classes(n_classes, classes)

    @property
    def epsilon(self) -> float:
        """Differential privacy of each label."""
        return self._epsilon

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self._classes.count

    @property
    def classes(self) -> tuple[Any, ...]:
        """Names of the classes, in the order of the columns of `scores` and `posterior`."""
        return self._classes.names

    @property
    def delta(self) -> float:
        """Probability with which epsilon may fail: 0 for all mechanisms but Gaussian noise."""
        return 0.0

    @property
    def _working_epsilon(self) -> float:
        return self.epsilon * _MARGIN

    def privatize(self, y: npt.ArrayLike) -> npt.NDArray[Any]:
        """What may be known of the labels: one observation per label, drawn afresh at every call.

        Guarantee: each observation is (epsilon, delta)-DP in its own label, whatever else is known. Calling it
        twice on the same labels spends epsilon twice: privatise once, keep the result, and learn from that.

        Args:
            y: the labels, one column.

        Returns:
            The observations, a row for each label: labels, or a table with a column for each class.

        Raises:
            InputError: labels are missing, or not among the classes. The message never quotes a label.
        """
        return self._observe(self.places(y))

    def places(self, y: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Labels as places among the classes, refused where `privatize` would refuse them. As secret as the labels.

        Args:
            y: the labels, one column.

        Returns:
            A whole number from 0 for each label.

        Raises:
            InputError: labels are missing, or not among the classes. The message never quotes a label.
        """
        return self._classes.codes(y)

    @abstractmethod
    def _observe(self, codes: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """Observations of labels that have been checked."""

    @abstractmethod
    def scores(self, observed: npt.ArrayLike) -> npt.NDArray[np.float32]:
        """Log-likelihood of each observation under every class, up to a constant per row.

        Args:
            observed: what `privatize` gave.

        Returns:
            `(n, n_classes)`, in nats.

        Raises:
            InputError: `observed` is not what this mechanism gives.
        """

    def mutual_information(self, prior: npt.ArrayLike | None = None) -> float:
        """Nats that one observation carries about its label, for labels by this prior.

        Args:
            prior: probabilities of the classes, `(n_classes,)`, or a row for every label; even if left out.

        Returns:
            The information, in nats; the mean over rows, where the prior has a row for every label.

        Raises:
            InputError: the prior does not hold probabilities of the classes.
        """
        return float(self._information(np.atleast_2d(self._prior(prior))).mean())

    def guess_success(self, prior: npt.ArrayLike | None = None) -> float:
        """How often the best attacker, who knows prior, mechanism and observation, names the label.

        Args:
            prior: probabilities of the classes, `(n_classes,)`, or a row for every label; even if left out.

        Returns:
            The probability of a right guess; the mean over rows, where the prior has a row for every label. A
            certificate states that of the worst row.

        Raises:
            InputError: the prior does not hold probabilities of the classes.
        """
        return min(1.0, float(self._guesses(np.atleast_2d(self._prior(prior))).mean()))

    @abstractmethod
    def _information(self, prior: Floats) -> Floats:
        """Nats about a label, for every row of a prior."""

    @abstractmethod
    def _guesses(self, prior: Floats) -> Floats:
        """The best attacker's success, for every row of a prior."""

    def posterior(self, observed: npt.ArrayLike, log_prior: npt.ArrayLike) -> npt.NDArray[np.floating[Any]]:
        """Probability of every class given what was observed, by Bayes' rule.

        Args:
            observed: what `privatize` gave.
            log_prior: logarithms of the classes' probabilities, one row for all or a row each; they need not be
                normalised. For instance what a model predicts.

        Returns:
            `(n, n_classes)`, in the precision of `log_prior` (float32 or float64). The scores are one more table of
            that size, in float32.

        Raises:
            InputError: `log_prior` has another shape, or leaves a row without a possible class.

        Examples:
            >>> import leakcap as lc
            >>> krr = lc.labels.KRR(epsilon=1.0, n_classes=3)
            >>> krr.posterior([2], [0.0, 0.0, 0.0]).round(3)
            array([[0.212, 0.212, 0.576]])
        """
        prior = np.asarray(log_prior)
        if prior.dtype.kind not in "biuf":
            raise InputError("log_prior must hold numbers: logarithms of probabilities")
        prior = prior if prior.dtype in (np.float32, np.float64) else prior.astype(np.float64)
        if prior.ndim not in (1, 2) or prior.shape[-1] != self.n_classes:
            raise InputError(f"log_prior needs {self.n_classes} columns, one for each class")
        score = self.scores(observed)
        if prior.ndim == 2 and len(prior) not in (1, len(score)):
            raise InputError("log_prior needs one row, or as many rows as there are observations")
        joint: npt.NDArray[np.floating[Any]] = score if prior.dtype == np.float32 else score.astype(np.float64)
        joint += prior
        top = joint.max(axis=1, keepdims=True)
        if not np.isfinite(top).all():
            raise InputError("log_prior must leave every row a possible class, and hold no NaN or +infinity")
        joint -= top
        np.exp(joint, out=joint)
        joint /= joint.sum(axis=1, keepdims=True)
        return joint

    def certificate(self, labels: int, prior: npt.ArrayLike | None = None) -> LabelCertificate:
        """What the best attacker can learn of one label when this many were privatised.

        Args:
            labels: number of labels that were privatised.
            prior: probabilities of the classes, `(n_classes,)`, or a row for every label; even if left out.

        Returns:
            The certificate. Where the prior has a row for every label, it states the label whose guessing gains most,
            with that label's row.

        Raises:
            InputError: the prior has neither one row nor as many as there are labels.
        """
        rows, count = np.atleast_2d(self._prior(prior)), checks.count(labels=labels)
        if len(rows) not in (1, count):
            raise InputError(f"the prior has {len(rows)} rows, and there are {count} labels: give one row, or one each")
        guesses, before = self._guesses(rows), rows.max(axis=1)
        place = int(np.argmax(guesses - before))
        row = rows[place % len(rows)]
        return LabelCertificate(
            kind="label_dp",
            mechanism=self.name,
            settings=self._settings(),
            epsilon=self.epsilon,
            delta=self.delta,
            labels=count,
            classes=tuple(str(name) for name in self.classes),
            prior=tuple(float(p) for p in row),
            prior_is_even=bool((row == row[0]).all()),
            prior_success=float(row.max()),
            guess_success=max(float(row.max()), min(1.0, float(guesses[place]) * (1 + 1e-9))),
            mutual_information=float(self._information(rows).max()) * (1 + 1e-9) + _ROUNDING,
            theorems=(self.theorem, "label-guessing"),
            leakcap_version=__version__,
            assumptions=(*ASSUMPTIONS, BY_ROWS) if (rows != rows[0]).any() else ASSUMPTIONS,
        )

    def _settings(self) -> tuple[tuple[str, float], ...]:
        """Public figures of the mechanism beyond epsilon, for the certificate."""
        return ()

    def _prior(self, prior: npt.ArrayLike | None) -> Floats:
        return checked_prior(prior, self.n_classes)

    def __str__(self) -> str:
        return self.reason or repr(self)

    def __repr__(self) -> str:
        more = "".join(f", {name}={value:.6g}" for name, value in self._settings())
        return f"{type(self).__name__}(epsilon={self.epsilon:g}, n_classes={self.n_classes}{more})"


def checked_prior(prior: npt.ArrayLike | None, n_classes: int | None = None) -> Floats:
    """Probabilities of the classes, `(C,)` or `(n, C)`; even if left out. Without `n_classes`, as many as it has."""
    if prior is None and n_classes is not None:
        return np.full(n_classes, 1 / n_classes)
    try:
        found = np.asarray(prior, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.empty(0)
    if found.ndim not in (1, 2) or found.shape[-1] != (n_classes or found.shape[-1]) or found.size == 0:
        raise InputError(f"the prior needs {n_classes or 'its'} probabilities (or rows of them), one for each class")
    if not (found >= 0).all() or not (np.abs(found.sum(axis=-1) - 1) <= 1e-6).all():
        raise InputError("the prior must hold probabilities that sum to 1")
    return np.asarray(found / found.sum(axis=-1, keepdims=True))
