"""What teachers and student learn from besides features: the scores of a model of noised sums, spent on beforehand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats
from leakcap.labels.given import table_of
from leakcap.labels.learning.vote_costs import apart_for
from leakcap.labels.statistics.base import SumsClassifier
from leakcap.labels.statistics.naive_bayes import NaiveBayes

__all__ = ["PriorScores", "checked_prior", "fitted_prior", "most_sums", "spent_by", "with_scores"]


@dataclass(frozen=True, eq=False)
class PriorScores:
    """Scores of a label-private model as columns: instead of features, or behind them. Public.

    Args:
        model: the model, fitted.
        scale: what scores are divided by, so that they have a deviation of 1 over the rows of the fit.
        passthrough: whether features come first.
    """

    model: SumsClassifier
    scale: float
    passthrough: bool

    def of(self, table: Any) -> Any:
        """Columns for these rows."""
        scores = _scores(self.model, table) / self.scale
        return with_scores(table, scores) if self.passthrough else scores


def with_scores(table: Any, scores: Floats) -> Any:
    """Features, and scores behind them."""
    if sparse.issparse(table):
        return sparse.hstack([table, sparse.csr_array(scores)]).tocsr()
    if hasattr(table, "assign"):
        return table.assign(**{f"prior score {place}": column for place, column in enumerate(scores.T)})
    return np.hstack([np.asarray(table), scores])


def checked_prior(prior: Any) -> SumsClassifier:
    """The prior, if it is one whose cost adds up with that of votes."""
    if not isinstance(prior, SumsClassifier):
        raise InputError("prior= must be lc.labels.Ridge, Logistic, LDA or NaiveBayes, with an epsilon of its own")
    if hasattr(prior, "certificate_"):
        raise InputError("prior= was fitted before, and its labels are spent: give a new one")
    if prior.n_classes is not None or prior.classes is not None:
        raise InputError("prior= takes its classes from the model it is for: leave n_classes= and classes= out of it")
    checks.positive(epsilon=prior.epsilon)
    checks.fraction(delta=prior.delta)
    return prior


def spent_by(prior: SumsClassifier) -> float:
    """How many deviations apart a label moves a normal law that tells as much as the prior's noised sums, at most."""
    return apart_for(prior.epsilon, prior.delta)


def most_sums(prior: SumsClassifier, columns: int, classes: int) -> int:
    """How many sums the prior takes at most, of so many columns."""
    each = checks.count(at_least=2, bins=prior.bins) if isinstance(prior, NaiveBayes) else 1
    return (columns * each + 1) * classes


def fitted_prior(
    model: SumsClassifier, table: Any, labels: npt.NDArray[Any], *, passthrough: bool, most_arithmetic: float
) -> PriorScores:
    """The prior's scores, once it is fitted; it spends its epsilon here.

    Args:
        model: a copy of the prior, with the classes.
        table: all features.
        labels: all labels.
        passthrough: whether features are handed on as well.
        most_arithmetic: total variation of its noise to the ideal law that was counted on.
    """
    model._most_arithmetic = most_arithmetic
    model.fit(table, labels)
    scores = _scores(model, table_of(table))
    return PriorScores(model, float(scores.std()) or 1.0, passthrough)


def _scores(model: SumsClassifier, table: Any) -> Floats:
    scores = np.asarray(model.decision_function(table), dtype=np.float64)
    return scores if scores.ndim == 2 else scores[:, None]
