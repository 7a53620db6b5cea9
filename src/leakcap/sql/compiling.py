"""What every part of the compiler stands on: names and what they mean, and what has been released so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from sqlglot import ErrorLevel, exp

from leakcap.sql.aggregates import is_aggregate
from leakcap.sql.catalog import Catalog
from leakcap.sql.expressions import Expression
from leakcap.sql.program import SqlRelease
from leakcap.sql.reading import Reader, only
from leakcap.sql.refusals import Node, refused
from leakcap.sql.relations import Names, Relation

__all__ = [
    "NOT_LOCAL",
    "PEOPLE",
    "SELECT_PARTS",
    "Compiling",
    "Mapped",
    "Scope",
    "Tables",
    "calls",
    "plainly_named",
    "renamed",
    "scalars",
    "text_of",
]

PEOPLE = "rows of people do not leave: ask for counts, sums or averages, by columns with public values"
NOT_LOCAL = (
    "tables of people can only be joined along the links between them, on the key of one person: otherwise a row of "
    "one would meet rows of another"
)
SELECT_PARTS = {
    "expressions",
    "from_",
    "from",
    "joins",
    "where",
    "group",
    "having",
    "order",
    "limit",
    "offset",
    "distinct",
    "qualify",
    "with_",
    "with",
}
Tables = Mapping[str, Relation]  # of WITH, by name
Mapped = Callable[[Node], Expression | None]  # what nodes of keys and aggregates are called in a relation of groups


@dataclass
class Scope:
    """What names mean at a place of the query."""

    relations: Sequence[Relation]
    outer: Scope | None = None
    used: list[Expression] | None = None  # columns of outer queries that were named in this one
    filters: Sequence[Expression] = ()  # conditions that are known so far

    def find(self, node: exp.Column) -> Expression:
        table, name = node.table, node.name
        if not name or node.args.get("db") is not None or isinstance(node.this, exp.Star):
            raise refused("write columns as name or table.name", node)
        found = [
            one.value
            for relation in self.relations
            for one in relation.columns
            if one.name.lower() == name.lower()
            and ((one.table or "").lower() == table.lower() if table else not one.merged)
        ]
        if len(found) > 1:
            raise refused("this name means several columns: write table.name", node)
        if found:
            return found[0]
        if self.outer is not None:
            value = self.outer.find(node)
            if self.used is not None:
                self.used.append(value)
            return value
        tables = {(one.table or "").lower() for relation in self.relations for one in relation.columns}
        if table and table.lower() not in tables:
            raise refused(
                f"there is no table {table} in FROM: there are {', '.join(sorted(tables - {''}))[:400]}", node
            )
        known = sorted({one.name for relation in self.relations for one in relation.columns} - {""})
        raise refused(f"there is no column of this name: there are {', '.join(known)[:400]}", node)


class Compiling:
    """State of a compilation. Its parts are in files of their own: FROM, SELECT, GROUP BY, and queries inside."""

    def __init__(self, catalog: Catalog, hidden_pool: bool, worlds: bool = False) -> None:
        self.catalog, self.names, self.hidden_pool, self.worlds = catalog, Names(), hidden_pool, worlds
        self.releases: list[SqlRelease] = []
        self.loose: list[str] = []  # refusals where the pool is hidden: work that could grow without end, for some rows
        self.queries = count()  # how many were read

    def query(self, node: Node, outer: Scope | None, tables: Tables) -> Relation:
        """The relation of a whole query."""
        raise NotImplementedError

    def reader(
        self, scope: Scope, tables: Tables, mapped: Mapped | None = None, over: Relation | None = None
    ) -> Reader:
        """A reader of expressions at a place of the query; windows are over the rows `over`."""
        raise NotImplementedError

    def window(self, node: exp.Window, whole: Relation, reader: Reader) -> Expression:
        """A window over rows, as a column beside them."""
        raise NotImplementedError

    def source(self, node: Node, outer: Scope | None, tables: Tables) -> Relation:
        """A table or a query in FROM."""
        raise NotImplementedError

    def from_tables(self, node: Node, given: Node, scope: Scope, tables: Tables) -> Relation:
        """All tables of a query joined, and the rows of its condition."""
        raise NotImplementedError


def calls(node: Node | None) -> list[Node]:
    """Aggregates in an expression, those of queries inside it left out."""
    if node is None:
        return []
    if isinstance(node, exp.Window):  # what it is of, and not what it does itself
        function = node.this.this if isinstance(node.this, exp.Filter) else node.this
        inside = [*function.iter_expressions(), *(node.args.get("partition_by") or []), node.args.get("order")]
        return [call for one in inside for call in calls(one)]
    if is_aggregate(node):
        return [node]
    if isinstance(node, (exp.Subquery, exp.Select, exp.Exists)):
        return []
    found = []
    for one in node.iter_expressions():
        found += calls(one)
    return found


def scalars(node: Node) -> Iterator[exp.Subquery]:
    """Queries in brackets that stand for a value."""
    for one in node.find_all(exp.Subquery):
        if not isinstance(one.parent, (exp.In, exp.Exists)):
            yield one


def text_of(node: Node) -> str:
    return str(node.sql(dialect="duckdb", normalize=True, unsupported_level=ErrorLevel.IGNORE))


def plainly_named(node: Node) -> None:
    """Refuse what the parser takes for a name, and is none."""
    alias = node.args.get("alias")
    if alias is None:
        return
    only(alias, {"this", "columns"})
    if not isinstance(alias.this, exp.Identifier):
        raise refused("a table has a word for its name, as in: stays as s", node)


def renamed(made: Relation, names: Sequence[str], node: Node) -> Relation:
    if not names:
        return made
    if len(names) != len(made.columns):
        raise refused("as many names as columns are needed", node)
    return replace(made, columns=tuple(replace(one, name=name) for one, name in zip(made.columns, names, strict=True)))
