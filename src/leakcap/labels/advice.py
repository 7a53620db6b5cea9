"""Which way to learn from secret labels: by noised sums, by votes, or from labels privatised one by one."""

from __future__ import annotations

import numpy.typing as npt

from leakcap.labels.mechanisms.auto import auto
from leakcap.labels.ways import Advice, weighed

__all__ = ["Advice", "advise"]


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

    One noised sum (`Logistic`; `LDA` with `readout="auto"` where it is little more than noise) teaches a linear model
    more than labels privatised one by one, and needs a curator who sees all labels, and a delta. Labels privatised one
    by one (`auto`, then `Classifier` with any base) are advised where they cost a linear model a quarter of a point of
    accuracy at most, wherever features tell little or much of labels: they leave other models free.

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
    return weighed(auto(epsilon, n_classes, prior), prior, rows=rows, columns=columns, curator=curator, delta=delta)
