"""Which way to learn from secret labels: by noised sums, by votes, or from labels privatised one by one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy.typing as npt

from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.labels.mechanisms.auto import auto

__all__ = ["Advice", "advise"]

# Nats of observations for each coefficient of a linear model, from which on labels privatised one by one teach more
# than noised sums. Chosen by five tables and pictures' embeddings, then judged on sets that were made afterwards, where
# it was right to a point and the error of measurement in eleven cases of twelve (benchmarks, "Private labels", fresh).
ENOUGH = 12.0


@dataclass(frozen=True)
class Advice:
    """What to take, and why; `str(advice)` says it in words.

    Attributes:
        method: "statistics" or "responses".
        nats: what observations of all labels tell, for each coefficient of a linear model.
        mechanism: which observations, if they are taken.
        words: the reason.
    """

    method: str
    nats: float
    mechanism: str
    words: str

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

    Labels privatised one by one (`auto`, then `Classifier` with any base) carry few nats each. Once these are more than
    the coefficients that are to be learnt they teach more than sums, because any model may learn from them; below that
    one noised sum (`LDA` with `readout="auto"`, which reads it as `Ridge` where that is nearer) teaches more, and needs
    a curator who sees all labels, and a delta.

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
        >>> lc.labels.advise(2.0, 7, rows=9000, columns=16).method
        'responses'
        >>> lc.labels.advise(0.5, 2, rows=71_000, columns=160, prior=[0.89, 0.11]).method
        'statistics'
    """
    rows, columns = checks.count(rows=rows), checks.count(columns=columns)
    if not 0 <= delta < 1:
        raise InputError("delta must be at least 0 and below 1")
    mechanism = auto(epsilon, n_classes, prior)
    coefficients = columns * (mechanism.n_classes - 1)
    nats = rows * mechanism.mutual_information(prior) / coefficients
    told = (
        f"{rows:,} observations at epsilon {epsilon:g} tell {nats:.2g} nats for each of {coefficients:,} coefficients"
    )
    name = type(mechanism).__name__
    if curator and delta > 0 and nats < ENOUGH:
        sums = f"lc.labels.LDA(epsilon={epsilon:g}, n_classes={mechanism.n_classes}, readout='auto')"
        words = (
            f"Statistics: {sums}. {told}, too few to learn from; one noised sum tells more. Votes (lc.labels.PATE) are "
            "for teachers that are not linear: they cost more than sums"
        )
        return Advice("statistics", nats, name, words)
    why = "enough to learn from, by any model" if nats >= ENOUGH else "few, but nobody sees the labels themselves"
    if nats < ENOUGH and curator:
        why = "few, but delta is 0"
    chosen = f"lc.labels.auto({epsilon:g}, {mechanism.n_classes}{'' if prior is None else ', prior'})"
    words = f"Responses: {chosen}, then lc.labels.Classifier with any base. {told}, {why}"
    return Advice("responses", nats, name, words)
