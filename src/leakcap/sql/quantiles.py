"""Quantiles from counts on a public grid: between the declared ends of a number, on the tree that sessions use.

Each row is counted once on every level of the tree. So a quantile is a release of counts like any other, by one more
key: the node. What the counts make of it, and where it may lie, is public arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from leakcap.ground.arrays import Floats
from leakcap.kernels.bounded import Extent
from leakcap.sql.expressions import Expression, column
from leakcap.sql.intervals import LEVEL
from leakcap.sql.relations import NamedColumn, Names, Relation
from leakcap.stats.on_grid import CELLS, quantiles_from_counts
from leakcap.stats.tree_counts import BRANCHES, TreeCounts, extent_of_trees

__all__ = ["QuantileTree", "on_tree"]


@dataclass(frozen=True)
class QuantileTree:
    """Cells of equal width from `low` to `high`, counts of which are released, and the levels that are asked for."""

    low: float
    high: float
    levels: tuple[float, ...]

    @property
    def counts(self) -> TreeCounts:
        return TreeCounts(CELLS)

    @property
    def nodes(self) -> int:
        return sum(self.counts.sizes)

    @property
    def cuts(self) -> Floats:
        return np.linspace(self.low, self.high, CELLS + 1)

    def extent(self, most: float, groups: int) -> Extent:
        """The most that one person moves the counts of all groups: with each row, one count of every level."""
        one = extent_of_trees([self.counts], 1)
        part, weights = np.tile(one.part, groups), np.tile(one.weights, groups)
        return Extent(np.full(len(part), most), part, np.arange(len(part)), weights)

    def read(self, counts: Floats) -> Floats:
        """Quantiles, `(groups, levels)`, from counts `(groups, nodes)`."""
        cells = counts @ _cells_from_nodes().T
        levels = np.asarray(self.levels)
        found = [quantiles_from_counts(row, self.cuts, levels) for row in cells]
        return np.stack(found) if found else np.empty((0, len(levels)))

    def with_ends(self, counts: Floats, deviations: Floats, most: float) -> tuple[Floats, Floats, Floats]:
        """Quantiles and the ends of their intervals, `(groups, levels)`; NaN where there are too few.

        A cell may hold the quantile if neither the count up to its lower end contradicts that, nor the one up to its
        upper end. With coins, `most` rows of a person are in or out together; it is 0 where everybody takes part.
        """
        upto = np.concatenate([np.zeros((1, self.nodes)), np.cumsum(_cells_from_nodes(), axis=0)])  # (cuts, nodes)
        below, variances, cuts = counts @ upto.T, deviations**2, self.cuts
        rows = np.maximum(below[:, -1:], 0.0)
        few = below[:, -1] <= np.sqrt(variances @ upto[-1] ** 2 + most * rows[:, 0])
        value, ends = self.read(counts), []
        for level in self.levels:
            noise = variances @ ((upto - level * upto[-1]) ** 2).T
            inside = np.clip(below, 0.0, rows)
            halving = most * (inside * (1 - level) ** 2 + (rows - inside) * level**2)
            gap, room = below - level * below[:, -1:], LEVEL * np.sqrt(noise + halving)
            may = (gap[:, :-1] <= room[:, :-1]) & (gap[:, 1:] >= -room[:, 1:])
            may[~may.any(axis=1)] = True  # noise contradicts every cell: then nothing is known
            first, last = may.argmax(axis=1), CELLS - may[:, ::-1].argmax(axis=1)
            ends.append((cuts[first], cuts[last]))
        low, high = (np.stack(side, axis=1) for side in zip(*ends, strict=True))
        low, high = np.minimum(low, value), np.maximum(high, value)
        return tuple(np.where(few[:, None], np.nan, one) for one in (value, low, high))  # type: ignore[return-value]


@lru_cache(maxsize=1)
def _cells_from_nodes() -> Floats:
    """The best cells are linear in the counts of all nodes, `(cells, nodes)`."""
    tree = TreeCounts(CELLS)
    return np.stack([tree.best_cells(one) for one in np.eye(sum(tree.sizes))], axis=1)


def on_tree(
    whole: Relation, of: Expression, where: Expression | None, *, levels: Sequence[float], names: Names
) -> tuple[Relation, Expression, QuantileTree]:
    """Rows once for every level of the tree, the node that each is in, and the tree."""
    assert of.range is not None
    low, high = of.range if of.range[0] < of.range[1] else (of.range[0] - 0.5, of.range[0] + 0.5)
    tree = QuantileTree(low, high, tuple(levels))
    cell, first, wide, node = (names.fresh() for _ in range(4))
    width = (high - low) / CELLS
    place = f"least(greatest(floor(({of.safe}::DOUBLE - {low!r}) / {width!r}), 0), {CELLS - 1})::BIGINT"
    starts = np.cumsum([0, *tree.counts.sizes[:-1]])
    levels_listed = ", ".join(f"({start}, {BRANCHES**at})" for at, start in enumerate(starts))
    kept = "" if where is None else f" AND {where.safe}"
    text = (
        f"SELECT *, {first} + {cell} // {wide} AS {node} FROM (SELECT *, {place} AS {cell} FROM ({whole.sql}) "
        f"WHERE {of.safe} IS NOT NULL{kept}) CROSS JOIN (VALUES {levels_listed}) AS s{node}({first}, {wide})"
    )
    value = column(node, "int", range=(0.0, float(tree.nodes - 1)), null=False, private=True)
    columns = (*whole.columns, NamedColumn(None, "", value))
    return replace(whole, sql=text, columns=columns), value, tree
