"""Which groups there may be, from public facts alone: declared values, ranges, and the rows of public tables.

Keys are data. A list made of what is there would tell of whoever alone has a value; so every group of the list is
answered, empty or not, and rows with a key that is not on it are in no group.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from leakcap.ground.proofs import proves
from leakcap.sql.catalog import Catalog
from leakcap.sql.expressions import Expression, NoisedColumn, Range, column, literal, short
from leakcap.sql.kinds import years
from leakcap.sql.program import SqlRelease
from leakcap.sql.refusals import NotAnswered, refused
from leakcap.sql.relations import Relation

__all__ = ["Domain", "domain"]

SMALL = 400  # whole numbers, up to which the range of an expression is its list
LARGE = 20_000  # values of one column
PUBLIC = (
    "groups need public values: {ways}. The custodian can declare keys={{'column': [...]}} when registering, or link "
    "the column to a public table"
)
WAYS = {
    "int": "give the column bounds= when registering, or list the values in the condition: column IN (1, 2)",
    "date": "give the column bounds= when registering, and group by year(...) or date_trunc('month', ...)",
    "text": "list the values in the condition: column IN ('A', 'B')",
    "float": "group by bins, as in floor(value / 10) * 10, of a column with bounds=",
}
WAYS |= {"decimal": WAYS["float"], "timestamp": WAYS["date"]}


@dataclass(frozen=True)
class Domain:
    """The SQL that lists all keys, and whether nothing in it was read off the pool."""

    sql: str
    declared: bool
    noised: tuple[NoisedColumn, ...] = ()  # columns whose values are released first


@proves("unit-local")
def domain(release: SqlRelease, catalog: Catalog) -> Domain:
    """The list of a release's groups."""
    try:
        return _domain(release, catalog)
    except RecursionError:
        raise refused("a column to group by is made in too many steps: group by a simpler one") from None


def _domain(release: SqlRelease, catalog: Catalog) -> Domain:
    if not release.keys:
        return Domain("SELECT 1 AS one", True)
    if release.candidates is not None:
        return Domain(release.candidates, False)
    if release.asked_for is not None:
        outside, keys = release.asked_for
        found = _listed(outside, keys, release.key_names, catalog)
        if found is not None:
            return found
    found = _listed(release.base, release.keys, release.key_names, catalog)
    if found is not None:
        return found
    for one, name, text in zip(release.keys, release.key_names, release.key_texts, strict=False):
        if _listed(release.base, [one], [name], catalog) is None:
            raise NotAnswered(f"at `{text}`: " + PUBLIC.format(ways=WAYS.get(one.kind, WAYS["text"])))
    raise NotAnswered(PUBLIC.format(ways=WAYS["text"]))


def _listed(base: Relation, keys: Sequence[Expression], names: Sequence[str], catalog: Catalog) -> Domain | None:
    work = _Listing(base, catalog)
    made = [work.finite(work.inlined(one)) for one in keys]
    if any(one is None for one in made):
        return None
    filters = work.applied([work.inlined(one) for one in base.filters])
    listed = ", ".join(f"{one.safe} AS {name}" for one, name in zip(made, names, strict=True) if one)
    where = " AND ".join(one.safe for one in filters)
    text = f"SELECT DISTINCT {listed} FROM {' CROSS JOIN '.join(work.sources()) or '(SELECT 1)'}"
    return Domain(f"{text} WHERE {where}" if where else text, work.declared, tuple(work.noised))


@dataclass
class _Listing:
    base: Relation
    catalog: Catalog
    listed: dict[str, tuple[str, Expression]] = field(default_factory=dict)  # lists of values, by what has them
    scanned: dict[str, set[str]] = field(default_factory=dict)  # columns of public rows, by their SQL
    declared: bool = True
    noised: dict[NoisedColumn, None] = field(default_factory=dict)
    known: dict[str, Expression] = field(default_factory=dict)  # columns, inlined

    def sources(self) -> list[str]:
        """What the lists are selected from: short ones where they are multiplied, one alone as it stands."""
        found = [text for text, _ in self.listed.values()]
        once = "DISTINCT " if len(found) + len(self.scanned) > 1 else ""
        return found + [
            f"(SELECT {once}{', '.join(sorted(names))} FROM ({text}))" for text, names in self.scanned.items()
        ]

    def applied(self, filters: Sequence[Expression]) -> list[Expression]:
        """Conditions that hold of the list, with public tables that they lead to."""
        found: dict[int, Expression] = {}
        while True:
            size = len(found), len(self.scanned)
            for at, one in enumerate(filters):
                if at in found:
                    continue
                columns = list(one.columns())
                public = bool(columns) and all(each.value in self.base.scans for each in columns)
                near = public and any(self.base.scans[each.value] in self.scanned for each in columns)
                made = self.finite(one, new=near and one.op == "compare" and one.value == "=")
                if made is not None and (public or not _has_query(made)):
                    found[at] = made
            if size == (len(found), len(self.scanned)):
                return list(found.values())

    def inlined(self, one: Expression) -> Expression:
        """An expression in terms of columns of tables."""
        if one.op == "column":
            if one.value in self.base.scans or one.value not in self.base.origins:
                return one
            if one.value not in self.known:
                made = self.inlined(self.base.origins[one.value])
                self.known[one.value] = _or_missing(one, made) if one.null and not made.null else made
            return self.known[one.value]
        if one.op in ("query", "quantified"):
            return one
        return short(replace(one, args=tuple(self.inlined(arg) for arg in one.args)))

    def finite(self, one: Expression, new: bool = True) -> Expression | None:
        """The expression in terms of lists; None where it has no list, or would need a new one that is not wanted."""
        if one.op == "literal" or not (one.asks or any(one.columns())):
            return one
        if one.sql in self.listed:
            return self.listed[one.sql][1]
        if one.op == "column" and one.value in self.base.scans:
            return self._scan(one, self.base.scans[one.value], new)
        if new and one.op != "compare":
            values = self._in_condition(one)
            if values is not None:
                return self._list(one, values)
        if one.op == "column":
            return self._column(one) if new else None
        if one.op == "quantified" and one.args and not one.private:
            arg = self.finite(one.args[0], new)
            return None if arg is None else replace(one, args=(arg,))
        if one.op in ("query", "quantified"):
            return self._bools(one) if new else None
        span = self._narrow_part(one)
        if new and one.kind == "int" and _at_most(span, SMALL):
            self.declared &= not _of_pool(one)
            low, high = map(int, span or ())
            return self._list(one, _with_gap(one, range(low, high + 1)))
        bins = _bins(one)
        if new and bins is not None and not any(each.kind == "int" for each in one.columns()):
            self.declared &= not _of_pool(one)
            return self._list(one, _with_gap(one, bins))
        before = (dict(self.listed), {text: set(names) for text, names in self.scanned.items()}, self.declared)
        args = []
        for arg in one.args:
            found = self.finite(arg, new)
            if found is None:
                self.listed, self.scanned, self.declared = before
                return self._results(one) if new else None
            args.append(found)
        return replace(one, args=tuple(args))

    def _narrow_part(self, one: Expression) -> Range | None:
        """The range of an expression, of a year also by what the conditions say of its date."""
        if one.op != "part" or one.value != "year" or one.args[0].range is None:
            return one.range
        low, high = one.args[0].range
        for given in self.base.filters:
            condition = self.inlined(given)
            parts = condition.args if condition.op == "and" else (condition,)
            for each in parts:
                if each.op == "compare" and each.args[0] == one.args[0] and each.args[1].op == "literal":
                    end = each.args[1].range
                    low = max(low, end[0]) if end and each.value in (">", ">=", "=") else low
                    high = min(high, end[1]) if end and each.value in ("<", "<=", "=") else high
        if low > high:
            return one.range
        return years((low, high))

    def _scan(self, one: Expression, text: str, new: bool) -> Expression | None:
        if text in self.scanned:
            self.scanned[text].add(one.value)
            return one
        if not new:
            return None
        self.scanned[text] = {one.value}
        return one

    def _column(self, one: Expression) -> Expression | None:
        if one.levels is not None:
            self.declared &= one.declared
            return self._list(one, one.levels if one.declared else _with_gap(one, one.levels))
        if one.noised is not None:
            self.noised[one.noised] = None
            self.declared = False
            new = f"d{len(self.listed)}"
            self.listed[one.sql] = (f"(SELECT v AS {new} FROM {one.noised.table})", replace(one, value=new))
            return self.listed[one.sql][1]
        if one.refers is not None:
            target, found = self.catalog.end(one.refers)
            new = f"d{len(self.listed)}"
            text = f"(SELECT {found.place} AS {new} FROM {target.place} WHERE {found.place} IS NOT NULL"
            text += " UNION ALL SELECT NULL)" if one.null else ")"
            self.listed[one.sql] = (text, replace(one, value=new))
            return self.listed[one.sql][1]
        if one.kind == "bool":
            return self._bools(one)
        if _at_most(one.range, LARGE):
            low, high = map(int, one.range or ())
            if one.kind == "int":
                return self._list(one, _with_gap(one, range(low, high + 1)))
            if one.kind == "date" and low >= 1 and high <= date.max.toordinal():
                return self._list(one, _with_gap(one, [date.fromordinal(day) for day in range(low, high + 1)]))
        return None

    def _bools(self, one: Expression) -> Expression | None:
        if one.kind != "bool":
            return None
        return self._list(one, (False, True, None) if one.null else (False, True))

    def _results(self, one: Expression) -> Expression | None:
        """The values that a CASE may take, where its conditions have no list of their own."""
        if one.kind == "bool":
            return self._bools(one)
        if one.op == "case":
            results = [*one.args[1:-1:2], one.args[-1]]
            if all(each.op == "literal" for each in results):
                return self._list(one, dict.fromkeys(each.value for each in results))
        return None

    def _in_condition(self, one: Expression) -> list[Any] | None:
        """Values that the condition of the query lists for it."""
        for given in self.base.filters:
            condition = self.inlined(given)
            equal = condition.op == "in" or (condition.op == "compare" and condition.value == "=")
            if equal and condition.args[0] == one and all(_is_one_of(x, one) for x in condition.args[1:]):
                return [x.value for x in condition.args[1:]]
        return None

    def _list(self, one: Expression, values: Any) -> Expression:
        name = f"d{len(self.listed)}"
        rows = list(dict.fromkeys(values))
        kind = {"int": "BIGINT", "float": "DOUBLE", "text": "VARCHAR", "bool": "BOOLEAN"}.get(
            one.kind, one.kind.upper()
        )
        if one.op == "cast" and one.kind == "int":
            kind = one.value  # days are added to dates in 32 bits
        if one.kind == "decimal":
            kind = f"DECIMAL({one.digits[0]},{one.digits[1]})" if one.digits else "DOUBLE"
        if not rows:
            raise refused("a list of keys is empty: declare the values of the column")
        if one.kind == "int" and len(rows) > 1 and None not in rows and rows == list(range(rows[0], rows[-1] + 1)):
            text = f"(SELECT CAST(range AS {kind}) AS {name} FROM range({rows[0]}, {rows[-1] + 1}))"
        else:
            listed = ", ".join(f"(CAST({literal(value, one.kind, one.digits).sql} AS {kind}))" for value in rows)
            text = f"(VALUES {listed}) AS s{name}({name})"
        self.listed[one.sql] = (text, column(name, one.kind, digits=one.digits, null=None in rows))
        return self.listed[one.sql][1]


def _or_missing(one: Expression, made: Expression) -> Expression:
    """What a column was made of, or nothing: where LEFT JOIN has no partner for a row."""
    there = column(f"{one.value} there", "bool", null=False)
    parts = (there, made, literal(None, made.kind))
    facts = Expression("case", made.kind, parts, private=made.private, declared=made.declared)
    return replace(facts, digits=made.digits, range=made.range)


def _is_one_of(value: Expression, one: Expression) -> bool:
    """Whether a literal is of the same kind as an expression, so that a list of them can be written."""
    if value.op != "literal" or value.value is None or value.kind != one.kind:
        return False
    return value.digits == one.digits or one.kind != "decimal"


def _with_gap(one: Expression, values: Iterable[Any]) -> list[Any]:
    """NULL is a group too, where values may be missing."""
    return [*values, None] if one.null else list(values)


def _at_most(span: tuple[float, float] | None, numbers: float) -> bool:
    """Whether a range has no more whole numbers than so many, each of which a float is: its ends are floats."""
    return span is not None and span[1] - span[0] <= numbers and max(map(abs, span)) <= 2**53


def _bins(one: Expression) -> list[float] | None:
    """All whole numbers, tens or hundreds that a rounded expression can be, where its range is known and short."""
    if one.op == "round" and one.args[1].op == "literal" and one.args[1].value <= 0:
        step = 10.0 ** -one.args[1].value
    elif one.op in ("floor", "ceil", "trunc number"):
        step = 1.0
    else:
        return None
    if one.range is None or not _at_most(one.range, SMALL * step):
        return None
    first, last = (round(end / step) for end in one.range)
    return [at * step for at in range(first, last + 1)]


def _of_pool(one: Expression) -> bool:
    return any(not each.declared and each.levels is not None for each in one.columns())


def _has_query(one: Expression) -> bool:
    return one.op in ("query", "quantified") or any(_has_query(arg) for arg in one.args)
