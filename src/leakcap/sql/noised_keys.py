"""Keys that are found in the data: those with enough people, by a noised count that everybody pays for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.proofs import proves
from leakcap.sql.aggregates import Aggregate, SumOf
from leakcap.sql.catalog import UNIT, Catalog
from leakcap.sql.domains import domain
from leakcap.sql.expressions import NoisedColumn, column
from leakcap.sql.program import SqlRelease
from leakcap.sql.refusals import refused
from leakcap.sql.relations import Relation

__all__ = ["NoisedKeys", "noised", "split_keys", "with_keys"]

HIDDEN = (
    "values of this column are found in the data, which a pool cap does not allow: register with keys={'column': "
    "[...]}, or list the values in the condition: column IN ('A', 'B')"
)


@dataclass(frozen=True)
class NoisedKeys:
    """Values to group by are those that enough people have, by a noised count.

    Attributes:
        threshold: the noised number of people from which a value is shown.
    """

    threshold: float


def noised(threshold: float) -> NoisedKeys:
    """Group by the values that at least so many people have, by a noised count: for a column without a public list.

    Given for a column when registering: `keys={"town": lc.sql.noised(threshold=50)}`. A question that groups by it is
    answered in two steps. First everybody who has a value counts for it, with noise; then the question is answered by
    the values whose count reaches the threshold, and is three deviations of its noise above 0. Whoever has a value pays
    for the first step, shown or not.

    Guarantee: both steps are answers of the session, charged to the same clocks, so that the cap holds for all of it.
    It is the cap on guessing who takes part: the values that are counted are those of the pool, which that game gives
    away. Under a pool cap such a question is refused.

    Args:
        threshold: people, above 0.

    Returns:
        What to give in `keys=` of `leakcap.sql.register`.

    Raises:
        InputError: the threshold is not a finite number above 0.
    """
    try:
        return NoisedKeys(float(checks.positive(threshold=threshold)))
    except InputError:
        raise InputError("threshold must be a finite number of people above 0") from None


def split_keys(given: Any, name: str, *, public: bool) -> tuple[Any, float | None]:
    """A column's declared values, or its threshold."""
    if not isinstance(given, NoisedKeys):
        return given, None
    if public:
        raise InputError(f"keys: {name} is of a public table, and its values are known: leave it out")
    return None, given.threshold


@proves("unit-local")
def with_keys(releases: Sequence[SqlRelease], catalog: Catalog, *, hidden_pool: bool) -> list[SqlRelease]:
    """Releases in their order, each after the counts of people that find its keys."""
    if not any(one.noised for table in catalog.tables.values() for one in table.columns):
        return list(releases)
    found: list[SqlRelease] = []
    known: set[str] = set()
    for release in releases:
        for one in domain(release, catalog).noised:
            if hidden_pool:
                raise refused(HIDDEN)
            if one.table not in known:
                known.add(one.table)
                found.append(_count_of_people(one, catalog))
        found.append(release)
    return found


def _count_of_people(one: NoisedColumn, catalog: Catalog) -> SqlRelease:
    """How many people have each value; the values are those of the pool, whoever takes part."""
    table = next(each for each in catalog.tables.values() if each.place == one.place)
    person = column(UNIT, "int", null=False, identity=catalog.person, private=True)
    base = Relation(
        f"SELECT {one.column}, {UNIT} FROM {one.place}",
        (),
        unit=UNIT,
        most=None if table.most_rows is None else float(table.most_rows),
    )
    return SqlRelease(
        table=one.table,
        base=base,
        keys=(column(one.column, one.kind, digits=one.digits, private=True),),
        key_names=("v",),
        aggregates=(Aggregate("count", (person,), distinct=True),),
        value_names=("n",),
        sums=(SumOf((), distinct=person, people=True),),
        places=((0,),),
        candidates=f"SELECT DISTINCT {one.column} AS v FROM {one.place}",
        threshold=one.threshold,
    )
