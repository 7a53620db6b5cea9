"""MIN, MAX and COUNT(DISTINCT value): aggregates that hang on which values are there, and are no sums over people.

Only a list of worlds answers them: what one person changes in them hangs on who else is there.
"""

from __future__ import annotations

from dataclasses import dataclass

from leakcap.sql.aggregates import Aggregate
from leakcap.sql.expressions import Expression
from leakcap.sql.kinds import NUMBERS
from leakcap.sql.refusals import Node, refused

__all__ = ["ByValue", "by_value"]


@dataclass(frozen=True)
class ByValue:
    """A number of a group that hangs on which values are there."""

    which: str  # min, max or distinct
    of: Expression
    where: Expression | None = None

    @property
    def empty(self) -> float:
        """Of a group of nobody: no value is one value less to count; an extreme is in the middle of its range."""
        if self.which == "distinct":
            return 0.0
        low, high = self.of.range or (0.0, 0.0)
        return (low + high) / 2


def by_value(one: Aggregate, node: Node) -> ByValue | None:
    """What an aggregate is, where it hangs on the values that are there; None where it is made of sums."""
    if one.name == "count" and one.distinct and one.args[0].identity is None:
        return ByValue("distinct", one.args[0], one.where)
    if one.name not in ("min", "max"):
        return None
    (of,) = one.args
    if of.kind not in NUMBERS:
        raise refused(f"{one.name} is of numbers here, and this is of kind {of.kind}: count by its values", node)
    if of.range is None:
        raise refused(
            f"{one.name} needs a range: give bounds={{'column': (low, high)}} when registering, or cut the value with "
            "least(greatest(value, low), high). The answer for nobody is its middle",
            node,
        )
    return ByValue(one.name, of, one.where)
