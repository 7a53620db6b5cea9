"""Which way to learn from secret labels: by noised sums, by votes, or from labels privatised one by one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import entropy

from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.labels.mechanisms.auto import auto

__all__ = ["Advice", "advise"]

# Nats of observations for each coefficient of a linear model. A model of N nats for each of them is log(C)/2N nats from
# the best one, about: from ENOUGH on that is less than .01 for ten classes, a point of accuracy or less; sums cost
# nothing that counts long before. Where observations tell NEARLY_ALL of their labels, no way to learn loses more than
# rows are too few anyhow. Below FEW nats sums are little more than noise, and a likelihood would follow it.
ENOUGH, NEARLY_ALL, FEW = 100.0, 0.9, 0.25


@dataclass(frozen=True)
class Advice:
    """What to take, and why; `str(advice)` says it in words.

    Attributes:
        method: "statistics" or "responses".
        nats: what observations of all labels tell, for each coefficient of a linear model.
        mechanism: which observations, if they are taken.
        words: the reason.
        model: which class of `lc.labels` learns.
    """

    method: str
    nats: float
    mechanism: str
    words: str
    model: str = ""

    def __str__(self) -> str:
        return self.words


def advise(
    epsilon: float,
    n_classes: int,
    *,
    rows: int,
    columns: int,
    curator: bool = True,
    delta: float = 1e-5,
    prior: npt.ArrayLike | None = None,
) -> Advice:
    """Which way to learn from this many labels, from public facts alone.

    One noised sum (`Logistic`; `LDA` with `readout="auto"` where it is little more than noise) teaches more than labels
    privatised one by one, and needs a curator who sees all labels, and a delta. Labels privatised one by one (`auto`,
    then `Classifier` with any base) carry few nats each. Once these are many for each coefficient of a linear model,
    they teach it as much, and other models too.

    Args:
        epsilon: differential privacy of each label.
        n_classes: number of classes.
        rows: number of labels.
        columns: number of features.
        curator: whether somebody may see all labels; otherwise each person privatises their own.
        delta: probability with which epsilon may fail; 0 where it may not.
        prior: shares of the classes, where they are known without the labels; even ones if left out. Where one class is
            frequent, observations tell less.

    Returns:
        The advice.

    Raises:
        InputError: a figure is out of range.

    Examples:
        >>> import leakcap as lc
        >>> lc.labels.advise(0.1, 7, rows=9000, columns=16).method
        'statistics'
        >>> lc.labels.advise(4.0, 7, rows=9000, columns=16).method
        'responses'
        >>> lc.labels.advise(0.5, 2, rows=71_000, columns=160, prior=[0.89, 0.11]).method
        'statistics'
    """
    rows, columns = checks.count(rows=rows), checks.count(columns=columns)
    if not 0 <= delta < 1:
        raise InputError("delta must be at least 0 and below 1")
    mechanism = auto(epsilon, n_classes, prior)
    coefficients = columns * (mechanism.n_classes - 1)
    told_each = mechanism.mutual_information(prior)
    nats = rows * told_each / coefficients
    whole = entropy(np.full(mechanism.n_classes, 1.0) if prior is None else np.atleast_2d(prior), axis=-1)
    enough = nats >= ENOUGH or told_each >= NEARLY_ALL * float(np.mean(whole))
    told = (
        f"{rows:,} observations at epsilon {epsilon:g} tell {nats:.2g} nats for each of {coefficients:,} coefficients"
    )
    name = type(mechanism).__name__
    if curator and delta > 0 and not enough:
        model, settings = ("LDA", ", readout='auto'") if nats < FEW else ("Logistic", "")
        sums = f"lc.labels.{model}(epsilon={epsilon:g}, n_classes={mechanism.n_classes}{settings})"
        words = (
            f"Statistics: {sums}. {told}; one noised sum tells more. Votes (lc.labels.PATE) are for teachers that are "
            "not linear: they cost more than sums"
        )
        return Advice("statistics", nats, name, words, model=model)
    why = "enough to learn from, by any model" if enough else "few, but nobody sees the labels themselves"
    if not enough and curator:
        why = "few, but delta is 0"
    chosen = f"lc.labels.auto({epsilon:g}, {mechanism.n_classes}{'' if prior is None else ', prior'})"
    words = f"Responses: {chosen}, then lc.labels.Classifier with any base. {told}, {why}"
    return Advice("responses", nats, name, words, model="Classifier")
