"""Label-private models of a table: public columns and secret labels in, files that hold no label out."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from leakcap.certificates.labels import LabelCertificate
from leakcap.ground import checks
from leakcap.ground.arrays import Floats
from leakcap.labels.learning.pate import PATE
from leakcap.labels.mechanisms.recipe import DEFAULT_DELTA
from leakcap.labels.statistics.base import SumsClassifier
from leakcap.labels.statistics.lda import LDA
from leakcap.labels.statistics.logistic import Logistic
from leakcap.labels.statistics.naive_bayes import NaiveBayes
from leakcap.labels.statistics.ridge import Ridge
from leakcap.tables.label_column import LabelColumn
from leakcap.tables.public_features import PublicFeatures

__all__ = ["MODELS", "LabelModel", "ModelRequest"]

MODELS: dict[str, type[SumsClassifier]] = {
    "ridge": Ridge,
    "logistic": Logistic,
    "lda": LDA,
    "bayes": NaiveBayes,
}
SUMS_SHARE = 0.7  # of epsilon, for the sums that teachers learn from
SEED = 0  # of parts, questions and made-up noise: they look at no label


@dataclass(frozen=True, kw_only=True)
class ModelRequest:
    """What is asked of a label-private model. All of it is public.

    Args:
        method: "statistics" or "pate".
        epsilon: differential privacy of each label.
        names: of the classes, that of missing labels among them.
        missing_as: which of them missing labels belong to, if any.
        delta: how often epsilon may fail.
        model: "ridge", "logistic", "lda" or "bayes", for statistics.
        teachers: how many, for pate; by rows and classes if left out.
    """

    method: str
    epsilon: float
    names: tuple[str, ...]
    missing_as: str | None = None
    delta: float = DEFAULT_DELTA
    model: str = "ridge"
    teachers: int | None = None

    def estimator(self) -> Any:
        """The model, not fitted yet."""
        epsilon, delta = checks.positive(epsilon=self.epsilon), checks.fraction(delta=self.delta)
        checks.choice(tuple(MODELS), model=self.model)
        count = len(self.names)
        if self.method == "statistics":
            made = MODELS[self.model](epsilon, count, delta=delta)
            return made.set_params(random_state=SEED) if isinstance(made, Ridge) else made
        from sklearn.linear_model import LogisticRegression, RidgeClassifier

        return PATE(
            RidgeClassifier(),
            LogisticRegression(max_iter=300),
            epsilon=epsilon,
            delta=delta,
            n_classes=count,
            n_teachers=self.teachers,
            prior=Ridge(SUMS_SHARE * epsilon, delta=delta, random_state=SEED),
            random_state=SEED,
        )

    @property
    def in_places(self) -> bool:
        """Whether text columns are handed on by the places of their values; otherwise as a mark for every value."""
        return self.method == "statistics" and self.model == "bayes"


@dataclass(eq=False)
class LabelModel:
    """A label-private model of one table. Public side once it is fitted: it keeps no label."""

    request: ModelRequest
    features: PublicFeatures
    estimator: Any

    @classmethod
    def of(cls, request: ModelRequest, features: PublicFeatures) -> LabelModel:
        return cls(request, features, request.estimator())

    @property
    def spent(self) -> bool:
        """Whether something was drawn from labels, also where the fit failed afterwards."""
        return hasattr(self.estimator, "certificate_")

    def fit(self, column: LabelColumn) -> None:
        """Learn from the labels, once."""
        codes = column.codes(self.request.names, self.request.missing_as)
        self.estimator.fit(self._table[0], codes)

    def certificate(self) -> LabelCertificate:
        """What was promised about each label, the classes by their names."""
        return replace(self.estimator.certificate_, classes=self.request.names)

    def files(self) -> dict[str, str]:
        """What may be published of the model: it in plain numbers, its answers and its predictions."""
        predicted = self._named(self.estimator.predict(self._table[0]))
        files = {"predictions.csv": _as_csv(("row", "predicted"), enumerate(predicted))}
        if self.request.method == "statistics":
            return {"model.json": self._in_numbers(self.estimator), **files}
        asked = zip(self.estimator.queries_.tolist(), self._named(self.estimator.answers_), strict=True)
        answers = _as_csv(("row", "answer"), sorted(asked))
        return {"sums.json": self._in_numbers(self.estimator.prior_), "answers.csv": answers, **files}

    @cached_property
    def _table(self) -> tuple[Floats, list[dict[str, Any]]]:
        return self.features.placed() if self.request.in_places else self.features.marked()

    def _named(self, codes: Any) -> list[str]:
        return [self.request.names[code] for code in np.asarray(codes).tolist()]

    def _in_numbers(self, sums: SumsClassifier) -> str:
        """The model of sums as JSON: every number to its last digit."""
        plain = {**sums.portable(), "classes": list(self.request.names)}
        return json.dumps({"features": self._table[1], **plain}, indent=1) + "\n"


def _as_csv(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows(rows)
    return text.getvalue()
