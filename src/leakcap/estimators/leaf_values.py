"""What forests of public form learn: values of leaves by least squares, or under a pool cap by counts of classes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError
from leakcap.estimators.base import computed
from leakcap.estimators.computation import Computation
from leakcap.estimators.data import Rows
from leakcap.estimators.public_trees import Leading, PublicTrees, SummingTrees, even_ladder
from leakcap.estimators.regression import Ridge
from leakcap.estimators.sums import MAX_CELLS, OfAll
from leakcap.ground.arrays import Floats
from leakcap.kernels.bounded import Bounded, ColumnNames, Declared, Extent
from leakcap.worlds import Units

__all__ = ["LeafCounts", "counted_forest", "fitted_leaves"]

TRUST = 0.5  # of what a leaf of average size says against the shares of all rows

Named = dict[str, Floats]


def fitted_leaves(rows: Rows, trees: PublicTrees, *, alpha: float, most: int, design: str) -> Computation:
    """Scores of the classes by least squares, linear along the leading directions of the pool's leaves."""
    assert rows.classes is not None and rows.target is not None
    places = trees.places(rows.features)
    leading = Leading.of(places, trees.nodes.shape[0] * trees.leaves, most)
    if not leading.directions.shape[1]:
        raise InputError("no column tells rows apart: each holds one value, so that all rows are in the same leaves")
    kinds = np.eye(len(rows.classes))[rows.target]
    made = computed(Ridge(alpha), Rows(leading.of_rows(places), kinds, weight=rows.weight), design)
    build = functools.partial(_summed, solve=made.build, trees=trees, leading=leading, classes=rows.classes)
    known = "Along which directions leaves have values: the few in which the pool's rows differ most, labels aside."
    return replace(made, build=build, utility=None, pool_public=(*made.pool_public, known))


def _summed(
    value: Named, *, solve: Callable[[Named], Any], trees: PublicTrees, leading: Leading, classes: npt.NDArray[Any]
) -> SummingTrees:
    solved = solve(value)
    return SummingTrees.of(trees, leading.values(solved.coef_, solved.intercept_, len(trees.nodes)), classes)


@dataclass(frozen=True, eq=False)
class LeafCounts(OfAll):
    """How many rows of each class every leaf has, under a pool cap: a row counts once in each tree.

    The form of the trees comes from declared bounds and `draw`, of which nothing depends on the data.
    """

    draw: Callable[[Floats], PublicTrees]  # from the ladder of each column
    rungs: int
    names: tuple[str, ...]
    classes: int

    def bounded(self, data: tuple[Any, ...], units: Units, declared: Declared) -> Bounded:
        """How often every unit counts in each leaf and class."""
        features, (low, high), cut = declared.cut(data[0], ColumnNames(self.names))
        trees = self.draw(even_ladder(low, high, self.rungs))
        width = trees.leaves * self.classes
        numbers = len(trees.nodes) * width
        if units.count * numbers > MAX_CELLS:
            raise InputError(f"{numbers:,} counts are too many for {units.count:,} people: lower n_estimators")
        inside = np.flatnonzero(data[1] >= 0)
        places = trees.places(features[inside]) * self.classes + data[1][inside, None]
        owner = np.arange(units.rows) if units.of_row is None else units.of_row
        counts = np.zeros((units.count, numbers))
        np.add.at(counts, (owner[inside, None], places), 1.0)
        extent = Extent.one_of([width] * len(trees.nodes), declared.rows)
        return Bounded(counts, extent, functools.partial(self._made, trees=trees), cut)

    def _made(self, total: Floats, *, trees: PublicTrees) -> Named:
        counts = total.reshape(-1, self.classes)
        return {"nodes": trees.nodes.astype(np.float64), "thresholds": trees.thresholds, "votes": counts}


def counted_forest(value: Named, *, classes: npt.NDArray[Any]) -> SummingTrees:
    """A forest of noised counts: by how many rows more or less than elsewhere each class has in a leaf.

    That is linear in the counts, so that noise averages out over the trees.
    """
    trees = PublicTrees(np.rint(value["nodes"]).astype(np.intp), value["thresholds"])
    counts = value["votes"]
    overall = np.maximum(counts.sum(axis=0), 1.0)
    share = overall / overall.sum()
    size = overall.sum() / len(counts)  # of a leaf, on average
    moved = (counts - counts.sum(axis=1, keepdims=True) * share) / size
    return SummingTrees.of(trees, (share + TRUST * moved) / len(trees.nodes), classes)
