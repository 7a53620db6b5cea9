"""Rows that a query is made of, and whether they are unit-local.

A relation is unit-local if, for disjoint sets of people, its rows for both together are its rows for the one and its
rows for the other, and it has none where there is nobody. Then it may be evaluated on the whole pool, and the rows of
those who take part picked out afterwards: that is the same as evaluating it on their rows alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from leakcap.ground.proofs import proves
from leakcap.sql.catalog import UNIT, CatalogTable
from leakcap.sql.expressions import Expression, NoisedColumn, column, day_of
from leakcap.sql.refusals import refused

__all__ = ["NamedColumn", "Names", "Relation", "same_person", "scan", "with_fewer", "without_unread"]


WRITTEN = 500_000  # letters of what we write
RENAMED = 2_000_000  # letters of expressions, about, that are written anew because a query is named in another
NAMED = re.compile(r"'(?:[^']|'')*'|\b[xu]\d+\b")  # literals, and names that are not those of a released table
READ = re.compile(r"'(?:[^']|'')*'|(?<!AS )\b(x\d+)\b")  # literals, and names of columns where they are used
SCANNED = re.compile(r"'(?:[^']|'')*'|\bc\d+ AS (x\d+), ")  # literals, and columns of a table, as `scan` lists them


class Names:
    """Names of columns in the SQL that we write: none is given twice, so that none is ever ambiguous."""

    def __init__(self) -> None:
        self._next, self._left = count(), RENAMED

    def fresh(self, letter: str = "x") -> str:
        return f"{letter}{next(self._next)}"

    def anew(self, letters: int) -> None:
        """So much is renamed: queries of queries would take ever longer, each being written again for the next."""
        self._left -= letters
        if self._left < 0:
            raise refused("there are too many queries of queries: ask for less, or in several steps")


@dataclass(frozen=True)
class NamedColumn:
    """A column by the names that a query may call it."""

    table: str | None
    name: str
    value: Expression
    merged: bool = False  # by USING: the name alone means the column of the other table


@dataclass(frozen=True)
class Relation:
    """Rows with columns, public or unit-local."""

    sql: str
    columns: tuple[NamedColumn, ...]
    unit: str | None = None  # the hidden column that says whose row it is; None for public rows
    most: float | None = None  # rows of one person
    unique: frozenset[frozenset[str]] = frozenset()  # columns that are a key
    filters: tuple[Expression, ...] = ()  # what holds of every row
    origins: Mapping[str, Expression] = field(default_factory=dict)  # what columns were made of
    scans: Mapping[str, str] = field(default_factory=dict)  # public columns, by the SQL that lists their rows
    numbered: frozenset[str] = frozenset()  # columns that number the rows of each person: 1, 2, 3

    def __post_init__(self) -> None:
        if len(self.sql) > WRITTEN:  # a query that is named twice by another is written twice
            raise refused("the question is too long once written out: ask several")

    @property
    def private(self) -> bool:
        return self.unit is not None

    def called(self, alias: str | None) -> Relation:
        """The same under another name."""
        if alias is None:
            return self
        return replace(self, columns=tuple(replace(one, table=alias) for one in self.columns))

    def again(self, names: Names) -> Relation:
        """The same rows with columns of their own, for another place in the query."""
        return self._deeply(names)._outside(names)

    def _deeply(self, names: Names) -> Relation:
        """All names inside are new: otherwise two places would share what is known of their columns."""
        names.anew(len(self.sql) + sum(one.size for one in (*self.filters, *self.origins.values())))
        new: dict[str, str] = {}

        def word(found: re.Match[str]) -> str:
            old = found[0]
            if not old.startswith("'") and old not in new:
                new[old] = names.fresh(old[0])
            return new.get(old, old)

        def text(sql: str) -> str:
            return NAMED.sub(word, sql)

        def value(one: Expression) -> Expression:
            own = one.value
            if one.op in ("column", "query"):
                own = text(own)
            elif one.op == "quantified":
                own = (own[0], text(own[1]))
            return replace(one, value=own, args=tuple(value(arg) for arg in one.args))

        return replace(
            self,
            sql=text(self.sql),
            columns=tuple(replace(one, value=value(one.value)) for one in self.columns),
            unit=None if self.unit is None else text(self.unit),
            unique=frozenset(frozenset(map(text, key)) for key in self.unique),
            filters=tuple(value(one) for one in self.filters),
            origins={text(name): value(one) for name, one in self.origins.items()},
            scans={text(name): text(sql) for name, sql in self.scans.items()},
            numbered=frozenset(map(text, self.numbered)),
        )

    def _outside(self, names: Names) -> Relation:
        new = {one.value.value: names.fresh() for one in self.columns}
        hidden = names.fresh("u") if self.unit else None
        parts = [f"{old} AS {made}" for old, made in new.items()] + ([f"{self.unit} AS {hidden}"] if hidden else [])
        origins = {
            **self.origins,
            **{made: next(c.value for c in self.columns if c.value.value == old) for old, made in new.items()},
        }
        return replace(
            self,
            sql=f"SELECT {', '.join(parts)} FROM ({self.sql})",
            columns=tuple(replace(one, value=replace(one.value, value=new[one.value.value])) for one in self.columns),
            unit=hidden,
            unique=frozenset(
                frozenset(new[one] for one in key) for key in self.unique if all(one in new for one in key)
            ),
            origins=origins,
            numbered=frozenset(new[one] for one in self.numbered if one in new),
        )

    @property
    def hidden(self) -> str:
        return f", {self.unit}" if self.unit else ""


def scan(table: CatalogTable, alias: str, names: Names, *, hidden_pool: bool = False) -> Relation:
    """A table as it is; where the pool is hidden, neither which values there are nor whether some are missing."""
    if hidden_pool and table.private:
        _refuse_found(table)
    columns, written = [], []
    for one in table.columns:
        name = names.fresh()
        written.append(f"{one.place} AS {name}")
        span = (
            None
            if one.low is None
            else (
                (day_of(one.low), day_of(one.high))
                if one.kind in ("date", "timestamp")
                else (float(one.low), float(one.high))
            )
        )
        value = column(
            name,
            one.kind,
            digits=one.digits,
            range=span,
            null=not one.key and (one.gaps or (hidden_pool and table.private)),
            identity=one.identity,
            # Which texts there are is a fact of the pool, and so is that they are few.
            levels=None if hidden_pool and table.private and not one.declared else one.levels,
            refers=one.refers,
            noised=None
            if one.noised is None
            else NoisedColumn(table.place, one.place, one.kind, digits=one.digits, threshold=one.noised),
            private=table.private,
            declared=one.declared,
        )
        columns.append(NamedColumn(alias, one.name, value))
    hidden = names.fresh("u") if table.private else None
    text = f"SELECT {', '.join(written)}{f', {UNIT} AS {hidden}' if hidden else ''} FROM {table.place}"
    keys = {frozenset([c.value.value]) for c, one in zip(columns, table.columns, strict=True) if one.unique}
    if table.private and table.most_rows == 1:
        keys |= {frozenset([c.value.value]) for c in columns if c.value.identity is not None}
    return Relation(
        text,
        tuple(columns),
        unit=hidden,
        most=None if table.most_rows is None else float(table.most_rows),
        unique=frozenset(keys),
    )


def without_unread(sql: str) -> str:
    """The same rows without columns of tables that nothing reads: the engine would look up every one, several times.

    The last column that a scan lists stays, so that there is one.
    """
    read = {found[1] for found in READ.finditer(sql)}
    return SCANNED.sub(lambda found: found[0] if found[1] is None or found[1] in read else "", sql)


def _refuse_found(table: CatalogTable) -> None:
    """One person's text among numbers makes a column of text, and every refusal and answer would tell."""
    found = [one.name for one in table.columns if one.found]
    if found:
        raise refused(
            f"under a pool cap kinds of columns are not found in their values, as those of {table.name} were "
            f"({', '.join(found)[:200]}): register a Parquet file, a DuckDB file, or a table whose columns have types "
            "of their own; in pandas none of objects, in CSV there are none"
        )


@proves("unit-local")
def same_person(left: Expression, right: Expression) -> bool:
    """Whether these are equal only in rows of one person: both are the same key of people."""
    return left.op == right.op == "column" and left.identity is not None and left.identity == right.identity


def joined_origins(relations: Iterable[Relation]) -> dict[str, Expression]:
    return {name: one for relation in relations for name, one in relation.origins.items()}


def joined_scans(relations: Iterable[Relation]) -> dict[str, str]:
    """Public columns of a join, each with the SQL that lists its rows."""
    found: dict[str, str] = {}
    for one in relations:
        found |= one.scans if one.private else {each.value.value: one.sql for each in one.columns}
    return found


def with_fewer(made: Relation, filters: Iterable[Expression]) -> Relation:
    """With fewer rows of a person, where conditions keep the first few by their number."""
    most = made.most
    for given in filters:
        for one in given.args if given.op == "and" else (given,):
            counted = one.op == "compare" and one.args[0].op == "column" and one.args[0].value in made.numbered
            end = one.args[1].range if counted and one.args[1].op == "literal" else None
            if end is not None and one.value in ("=", "<=", "<"):
                left = 1.0 if one.value == "=" else max(1.0, math.floor(end[1]))
                most = left if most is None else min(most, left)
    return replace(made, most=most) if made.private else made


def equalities(filters: Sequence[Expression]) -> list[tuple[Expression, Expression]]:
    """Pairs of columns that are equal in every row."""
    return [
        (one.args[0], one.args[1])
        for one in filters
        if one.op == "compare" and one.value == "=" and one.args[0].op == one.args[1].op == "column"
    ]
