"""Queries inside a condition or an expression: about the person of the row, or released first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from leakcap.sql.aggregates import is_aggregate
from leakcap.sql.compiling import NOT_LOCAL, PEOPLE, SELECT_PARTS, Compiling, Mapped, Scope, Tables, calls
from leakcap.sql.expressions import Expression
from leakcap.sql.kinds import NAMES_PEOPLE, alike
from leakcap.sql.reading import Reader, conjuncts, only
from leakcap.sql.refusals import Node, NotAnswered, refused
from leakcap.sql.relations import Relation, equalities, joined_origins, joined_scans, same_person

__all__ = ["InnerQueries"]

COUNTS = (exp.Count, exp.CountIf, exp.ApproxDistinct)
LOOSE = (
    "under a pool cap EXISTS looks the row outside up: write table.column = outer.column for all that it takes from "
    "there. Otherwise how long the answer takes would tell whether a condition holds of anybody"
)


class InnerQueries(Compiling):
    """EXISTS, IN, and queries that stand for a value."""

    def reader(
        self,
        scope: Scope,
        tables: Tables,
        mapped: Mapped | None = None,
        over: Relation | None = None,
    ) -> Reader:
        """Expressions at a place of the query, with the queries inside them."""

        def other(node: Node) -> Expression | None:
            known = mapped(node) if mapped is not None else None
            if known is not None:
                return known
            if isinstance(node, exp.Exists):
                return self._exists(node.this, scope, tables, negated=False)
            if isinstance(node, exp.Not) and isinstance(node.this.unnest(), exp.Exists):
                return self._exists(node.this.unnest().this, scope, tables, negated=True)
            if isinstance(node, exp.In) and node.args.get("query") is not None:
                return self._in_query(node, tables, made, negated=False)
            inner = node.this.unnest() if isinstance(node, exp.Not) else None
            if isinstance(inner, exp.In) and inner.args.get("query") is not None:
                return self._in_query(inner, tables, made, negated=True)
            if isinstance(node, exp.EQ) and isinstance(node.expression, exp.Any):
                same = exp.In(this=node.this.copy(), query=node.expression.this.copy())
                return self._in_query(same, tables, made, negated=False)
            if isinstance(node, exp.Subquery):
                return self._scalar(node, scope, tables)
            if isinstance(node, exp.Window):
                if over is None:
                    raise refused("a window stands in the list of SELECT or in QUALIFY: use its name further out", node)
                return self.window(node, over, made)
            if is_aggregate(node) and mapped is None:
                raise refused("an aggregate cannot stand here", node)
            return None

        made = Reader(scope.find, other)
        return made

    def _exists(self, node: Node, scope: Scope, tables: Tables, *, negated: bool) -> Expression:
        node = node.unnest()
        if not isinstance(node, exp.Select) or any(
            node.args.get(one) for one in ("group", "having", "qualify", "order", "limit", "with_", "with", "distinct")
        ):
            raise refused(
                "EXISTS takes a plain query: select 1 from table where ... What a person's rows add up to is asked "
                "with IN (select key from ... group by key having ...)",
                node,
            )
        only(node, SELECT_PARTS)
        if any(calls(one) for one in node.expressions):
            raise refused("EXISTS with an aggregate always holds: write select 1 from table where ...", node)
        inner = Scope([], scope, [])
        given = node.args.get("from_") or node.args.get("from")
        if given is None:
            raise refused("EXISTS takes a query from a table", node)
        made = self.from_tables(node, given, inner, tables)
        self._refuse_outsiders(made, scope, made.filters, node)
        if not _meets_few(made, inner):
            self.loose.append(LOOSE)
        word = "NOT EXISTS" if negated else "EXISTS"
        private = made.private or any(one.private for one in inner.used or [])
        return Expression("quantified", "bool", (), (word, f"SELECT 1 FROM ({made.sql})"), null=False, private=private)

    def _in_query(self, node: exp.In, tables: Tables, reader: Reader, *, negated: bool) -> Expression:
        made = self.query(node.args["query"], None, tables)
        if len(made.columns) != 1:
            raise refused("IN takes a query of one column", node)
        left, right = reader.read(node.this), made.columns[0].value
        if left.identity is not None and not made.private:
            raise refused(NAMES_PEOPLE, node)
        if (left.kind, left.digits) != (right.kind, right.digits):
            raise refused(f"{left.kind} and {right.kind} cannot be compared: cast one of them", node)
        if made.private and (not same_person(left, right) or right.null or left.null):
            raise refused(NOT_LOCAL, node)
        text = f"SELECT {right.value} FROM ({made.sql})"
        return Expression(
            "quantified", "bool", (left,), ("NOT IN" if negated else "IN", text), private=made.private or left.private
        )

    def _refuse_outsiders(self, made: Relation, scope: Scope, filters: Sequence[Expression], node: Node) -> None:
        """A query about people inside another must be about the person of the outer row."""
        if not made.private:
            return
        inside = {one.value.value for one in made.columns}
        for left, right in equalities(filters):
            if (left.value in inside) != (right.value in inside) and same_person(left, right):
                return
        raise refused(NOT_LOCAL, node)

    def _scalar(self, node: exp.Subquery, scope: Scope, tables: Tables) -> Expression:
        """A query that stands for one value: released first, where it is about people."""
        only(node, {"this"})
        inner = node.this
        if not isinstance(inner, exp.Select):
            raise refused("a query in brackets is a SELECT here", node)
        correlated = self._correlated(inner, scope, tables)
        if correlated is not None:
            return correlated
        made = self.query(inner, None, tables)
        if len(made.columns) != 1:
            raise refused("a query that stands for a value has one column", node)
        if made.private:
            raise refused(PEOPLE, node)
        value = made.columns[0].value
        return replace(
            value, op="query", args=(), value=f"SELECT {_finite(value)} FROM ({made.sql}) LIMIT 1", null=True
        )

    def _correlated(self, node: exp.Select, scope: Scope, tables: Tables) -> Expression | None:
        """A query about the row outside: by its key, as one group of many."""
        where = node.args.get("where")
        outer_only: list[tuple[Node, Node]] = []  # inner side, outer side
        rest: list[Node] = []
        inner = Scope([], None, [])
        given = node.args.get("from_") or node.args.get("from")
        if where is None or given is None:
            return None
        probe = type(self)(self.catalog, self.hidden_pool, self.worlds)
        probe.queries = self.queries
        parts = [probe.source(given.this, None, tables)]
        parts += [probe.source(join.this, None, tables) for join in node.args.get("joins") or []]
        inner.relations = parts
        for one in conjuncts(where.this):
            sides = [one.this, one.expression] if isinstance(one, exp.EQ) else []
            inside = [_all_known(side, inner) for side in sides]
            if sides and inside == [True, False]:
                outer_only.append((sides[0], sides[1]))
            elif sides and inside == [False, True]:
                outer_only.append((sides[1], sides[0]))
            else:
                rest.append(one)
        if not outer_only:
            return None
        alone = node.copy()
        alone.set("where", exp.Where(this=exp.and_(*[one.copy() for one in rest])) if rest else None)
        others = ("group", "having", "qualify", "order", "limit", "offset", "distinct")
        if len(alone.expressions) != 1 or any(alone.args.get(one) for one in others):
            raise refused(
                "a query about the row outside gives one aggregate, and has no more than FROM and WHERE", node
            )
        asked = alone.expressions[0].unalias()
        counts = isinstance(asked.unnest(), COUNTS)
        if not counts and any(isinstance(one, COUNTS) for one in asked.walk()):
            raise refused("a count about the row outside stands alone: select count(*) from ... where ...", node)
        alone.set(
            "expressions",
            [
                exp.alias_(asked.copy(), "value_"),
                *(exp.alias_(one.copy(), f"key_{k}") for k, (one, _) in enumerate(outer_only)),
            ],
        )
        alone.set("group", exp.Group(expressions=[one.copy() for one, _ in outer_only]))
        before = len(self.releases)
        made = self.query(alone, None, tables)
        reader = self.reader(scope, tables)
        outside = [reader.read(one) for _, one in outer_only]
        if len(self.releases) == before + 1 and not made.private:
            # Of all groups, those that the rows outside can ask for by public facts: the others would cost for nothing.
            rows = scope.relations
            beyond = Relation(
                "", (), filters=tuple(scope.filters), origins=joined_origins(rows), scans=joined_scans(rows)
            )
            latest = self.releases[-1]
            more = latest.keys[len(outside) :]  # of a tree of quantiles
            self.releases[-1] = replace(latest, asked_for=(beyond, (*outside, *more)))
        value, *inner_keys = [one.value for one in made.columns]
        if made.private and not any(
            same_person(mine, other) and not mine.null for mine, other in zip(inner_keys, outside, strict=True)
        ):
            raise refused(NOT_LOCAL, node)
        pairs = [alike(mine, other, node) for mine, other in zip(inner_keys, outside, strict=True)]
        match = " AND ".join(f"{mine.safe} = {other.safe}" for mine, other in pairs)
        text = f"SELECT {_finite(value)} FROM ({made.sql}) WHERE {match} LIMIT 1"
        if counts:  # of no rows there is no group, and yet a count
            text = f"SELECT coalesce(({text}), 0)"
        return replace(
            value,
            op="query",
            args=(),
            value=text,
            null=True,
            private=made.private or any(one.private for one in outside),
        )


def _finite(value: Expression) -> str:
    """A column guarded inside its query: outside, the guard would write the query twice, and it would be run twice."""
    return replace(value, wild=value.kind == "float").safe


def _meets_few(made: Relation, inner: Scope) -> bool:
    """Whether the row outside is looked up among the rows inside, so that work does not grow with both.

    It is where all that is used of the row outside must be equal to something inside, or where together that is a key.
    Otherwise only rows of the same person may be gone through, once: within one another they would multiply.
    """
    used = {one.value for one in inner.used or []}
    own = {one.value.value for one in made.columns}
    pairs = [(a.value, b.value) for a, b in equalities(made.filters)]
    bound = {a: b for one in pairs for a, b in (one, one[::-1]) if a in own and b in used}
    alone = inner.outer is None or inner.outer.outer is None
    return used <= set(bound.values()) or any(key <= set(bound) for key in made.unique) or (made.private and alone)


def _all_known(node: Node, scope: Scope) -> bool:
    """Whether all columns of an expression are of this scope; False where none or some are not."""
    columns = list(node.find_all(exp.Column))
    if not columns:
        return True
    for one in columns:
        try:
            scope.find(one)
        except NotAnswered:
            return False
    return True
