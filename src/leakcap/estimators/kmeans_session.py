"""K-Means in a session: every step is a noised number and a noised sum of the rows nearest to each centre.

Centres start where made-up rows with the released mean and covariance cluster; without bounds at the pool's own
centres, which the certificate then lists.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn import cluster
from sklearn.metrics import pairwise_distances_argmin

from leakcap.errors import InputError
from leakcap.estimators.sums import ByClass, ClassSums, Products, ProductSums
from leakcap.ground.arrays import Floats
from leakcap.kernels.bounded import ColumnNames, Declared
from leakcap.sessions.brought import within
from leakcap.sessions.fitting import Fitting
from leakcap.sessions.seats import Seats

__all__ = ["centres_in_session"]

STEPS = 6
FOR_THE_START = 0.2  # of the share
DRAWN = 2000  # made-up rows by which centres start
SURE = 3.0  # deviations of its noise, that a cluster's number must exceed for its centre to move


def centres_in_session(fitting: Fitting, clusters: int, steps: int, seed: int) -> Floats:
    """Centres, `(clusters, d)`, from answers and declarations; without bounds also from the pool's own start."""
    cells = np.asarray(fitting.features, dtype=np.float64)
    declared, public = fitting.declared, True
    if declared is None:
        if fitting.everybody:
            raise InputError("under a pool cap K-Means needs bounds of the columns that do not come from the data")
        # The bounds that noise is made for are the pool's own, and so are the centres it starts from.
        declared, public = (
            Declared((cells.min(axis=0), cells.max(axis=0) + 1e-12), fitting.most_rows, quiet=True),
            False,
        )
    low, high = declared.of_columns(ColumnNames(fitting.names), cells.shape[1])
    if public:
        centres = _like_the_rows(fitting, cells, (low, high), clusters=clusters, seed=seed)
    else:
        centres = cluster.KMeans(clusters, n_init=3, random_state=seed).fit(cells).cluster_centers_
    half = (high - low) / 2
    left = fitting.share * (1 - FOR_THE_START if public else 1.0)
    seats = Seats.of_rows(np.clip(cells, low, high) / half)
    for step in range(steps):
        codes = seats.each(partial(pairwise_distances_argmin, Y=centres / half))
        asked = ClassSums(_means, fitting.names, clusters, squares=False)
        made = asked.bounded((cells, codes), fitting.units, replace(declared, bounds=(low, high), quiet=True))
        sums = replace(within(made, scale=None), declared=public)
        noised = fitting.ask(sums, left / steps, step=step)
        found, count = noised.value["means"], noised.value["counts"]
        # What is too small to be told from noise stays where it was.
        sure = count > SURE * noised.deviations.reshape(clusters, -1)[:, -1]
        centres = np.where(sure[:, None], found, centres)
    return np.asarray(centres)


def _means(by: ByClass) -> dict[str, Floats]:
    return {"means": by.middle + by.half * by.mean, "counts": by.count}


def _like_the_rows(fitting: Fitting, cells: Floats, ends: tuple[Floats, Floats], *, clusters: int, seed: int) -> Floats:
    """Centres of numbers drawn with the released mean and covariance of the rows: spread as the rows are."""
    asked = ProductSums(_moments, fitting.names)
    declared = Declared(ends, fitting.most_rows, quiet=True)
    sums = within(asked.bounded((cells,), fitting.units, declared), scale=None)
    moments = fitting.ask(sums, FOR_THE_START * fitting.share, step="start").value
    values, vectors = np.linalg.eigh(moments["covariance"])
    rng = np.random.default_rng(seed)
    drawn = rng.standard_normal((DRAWN, len(values))) * np.sqrt(np.maximum(values, moments["level"])) @ vectors.T
    found = cluster.KMeans(clusters, n_init=1, random_state=seed).fit(np.clip(moments["mean"] + drawn, -1, 1))
    middle, half = (ends[0] + ends[1]) / 2, (ends[1] - ends[0]) / 2
    return np.asarray(middle + half * found.cluster_centers_)


def _moments(products: Products) -> dict[str, Any]:
    return {"mean": products.mean, "covariance": products.covariance, "level": products.level}
