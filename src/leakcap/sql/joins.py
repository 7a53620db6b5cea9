"""FROM and WHERE: tables side by side, of which rows of people meet rows of the same person alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from leakcap.sql.compiling import NOT_LOCAL, Compiling, Scope, calls, plainly_named, renamed, scalars
from leakcap.sql.expressions import Expression
from leakcap.sql.reading import conjuncts, only
from leakcap.sql.refusals import Node, refused
from leakcap.sql.relations import (
    Relation,
    equalities,
    joined_origins,
    joined_scans,
    same_person,
    scan,
    with_fewer,
)

__all__ = ["FromClause"]


MOST_TABLES = 60  # in one FROM
LOOSE = (
    "under a pool cap every table in FROM is matched on a key of its own, and {name} is not: how long the answer takes "
    "and whether it comes would tell whether a condition holds of anybody. Join it on its key with =, or group it by "
    "what it is joined on first, in a query of its own"
)


class FromClause(Compiling):
    """FROM, joins and WHERE."""

    def from_tables(self, node: exp.Select, given: exp.From, scope: Scope, tables: Mapping[str, Relation]) -> Relation:
        """All tables joined, and the rows of the condition."""
        # A comma binds last: each chain of joins between commas is put together first.
        chains: list[list[Relation]] = [[self.source(given.this, scope.outer, tables)]]
        conditions: list[Node] = []
        late: list[Node] = []  # of rows that have a partner, or none
        if len(node.args.get("joins") or []) >= MOST_TABLES:
            raise refused(f"there are more than {MOST_TABLES} tables in FROM: ask several")
        for join in node.args.get("joins") or []:
            only(join, {"this", "on", "side", "kind", "using"})
            side, kind = (join.side or "").upper(), (join.kind or "").upper()
            if kind in ("SEMI", "ANTI") and not side:
                late.append(_with_partner(join, negated=kind == "ANTI"))
                continue
            if side not in ("", "LEFT", "RIGHT") or kind not in ("", "INNER", "CROSS", "OUTER"):
                raise refused("joins are INNER, CROSS, LEFT, RIGHT, SEMI and ANTI: write others with these", join)
            right = self.source(join.this, scope.outer, tables)
            using, right = _using(chains[-1], right, join)
            if side:
                scope.relations = chains[-1]
                reader = self.reader(scope, tables)
                left = self._inner(chains[-1], [reader.truth(one) for one in conditions])
                conditions = []
                matched = [*conjuncts(join.args.get("on")), *using]
                if side == "RIGHT":
                    if using:
                        raise refused("RIGHT JOIN takes ON: or write a LEFT JOIN the other way round", join)
                    left, right = right, left
                made = self.reader(Scope([left, right], scope.outer, []), tables)
                chains[-1] = [self._left(left, right, join, [made.truth(one) for one in matched])]
            elif join.args.get("on") is None and not kind and not using:
                scope.relations = chains[-1]
                reader = self.reader(scope, tables)
                chains[-1] = (
                    [self._inner(chains[-1], [reader.truth(one) for one in conditions])] if conditions else chains[-1]
                )
                conditions = []
                chains.append([right])
            else:
                chains[-1].append(right)
                conditions += [*conjuncts(join.args.get("on")), *using]
        parts = [one for chain in chains for one in chain]
        _refuse_twice(parts)
        scope.relations = parts
        where = node.args.get("where")
        if where is not None:
            conditions += conjuncts(where.this)
        conditions += late
        if any(calls(one) for one in conditions):
            raise refused("a condition on rows cannot hold an aggregate: use HAVING, or a query of its own in brackets")
        reader = self.reader(scope, tables)
        plain = [one for one in conditions if not list(scalars(one))]
        scope.filters = [reader.truth(one) for one in plain]  # what a query about the row outside may rest on
        asking = [reader.truth(one) for one in conditions if list(scalars(one))]
        return self._inner(parts, [*scope.filters, *asking])

    def source(self, node: Node, outer: Scope | None, tables: Mapping[str, Relation]) -> Relation:
        if isinstance(node, exp.Subquery):
            only(node, {"this", "alias"})
            plainly_named(node)
            if not node.alias:
                raise refused("a query in FROM needs a name: (select ...) as t", node)
            made = self.query(node.this, None, tables).again(self.names)
            names = [one.name for one in (node.args["alias"].args.get("columns") or [])]
            return renamed(made, names, node).called(node.alias)
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise refused("FROM takes tables and queries in brackets: no functions and no files", node)
        only(node, {"this", "alias"})
        plainly_named(node)
        alias = node.alias or node.name
        if node.alias and node.args["alias"].args.get("columns"):
            raise refused("columns of a table keep their names", node)
        if node.name.lower() in tables:
            return tables[node.name.lower()].again(self.names).called(alias)
        table = self.catalog.table(node.name)
        if table is None:
            raise refused(f"there is no table of this name: there are {', '.join(self.catalog.tables)}", node)
        return scan(table, alias, self.names, hidden_pool=self.hidden_pool)

    def _inner(self, parts: Sequence[Relation], filters: Sequence[Expression]) -> Relation:
        """All parts side by side, and of these the rows for which the conditions hold."""
        parts = [with_fewer(one, filters) for one in parts]
        people = [one for one in parts if one.private]
        _refuse_strangers(people, filters)
        filters = [*filters, *(each for one in parts for each in one.filters)]
        if len(parts) == 1 and not filters:
            return parts[0]
        hidden = people[0].unit if people else None
        new = [one.safe for one in filters if not any(one in part.filters for part in parts)]
        text = f"SELECT * FROM {' CROSS JOIN '.join(f'({one.sql})' for one in parts)}"
        if new:
            text += f" WHERE {' AND '.join(new)}"
        most, unique = self._rows(parts, filters)
        return Relation(
            text,
            tuple(one for part in parts for one in part.columns),
            unit=hidden,
            most=most,
            unique=unique,
            filters=tuple(filters),
            origins=joined_origins(parts),
            scans=joined_scans(parts),
            # Beside rows of others a row may be there several times: then a number is no longer of one row.
            numbered=parts[0].numbered if len(parts) == 1 else frozenset(),
        )

    def _left(self, left: Relation, right: Relation, join: exp.Join, conditions: list[Expression]) -> Relation:
        if not conditions:
            raise refused("LEFT JOIN and RIGHT JOIN need ON", join)
        if right.private and not left.private:
            raise refused(
                "a public table cannot be kept whole beside rows of people: its rows without a partner would tell who "
                "is there. Group by its key instead: every key is listed, with 0 where there is nobody",
                join,
            )
        _refuse_strangers([one for one in (left, right) if one.private], conditions)
        match = " AND ".join(one.safe for one in conditions)
        text = f"SELECT * FROM ({left.sql}) LEFT JOIN ({right.sql}) ON {match}"
        most, unique = self._rows([left, right], conditions)
        if left.most != 1:  # a person's rows of the left side without a partner are alike in the right one's keys
            unique = frozenset(key if key in left.unique else key | own for key in unique for own in left.unique)
        # A row of the left side stays without a partner: then the right one's columns are missing, keys included.
        missing = tuple(replace(one, value=replace(one.value, null=True)) for one in right.columns)
        return Relation(
            text,
            (*left.columns, *missing),
            unit=left.unit,
            most=_with_unmatched(most, left, right, conditions),
            unique=unique,
            filters=left.filters,
            origins=joined_origins([left, right]),
            scans={**joined_scans([left]), **_with_none(right)},
        )

    def _rows(
        self, parts: Sequence[Relation], filters: Sequence[Expression]
    ) -> tuple[float | None, frozenset[frozenset[str]]]:
        """The most rows of one person in a join, and its keys; what is not matched on a key is written down."""
        most, unique, loose = _most_rows(parts, filters)
        if loose is not None:
            self.loose.append(LOOSE.format(name=loose.columns[0].table))
        return most, unique


def _with_unmatched(
    most: float | None, left: Relation, right: Relation, conditions: Sequence[Expression]
) -> float | None:
    """The most rows of a person where rows of the left side stay without a partner: beside all pairs, all but one."""
    own = {one.value.value for one in right.columns}
    pairs = [(a.value, b.value) for a, b in equalities(conditions) if (a.value in own) != (b.value in own)]
    bound = {one for pair in pairs for one in pair}
    if most is None or left.most is None or not right.private or any(key <= bound for key in right.unique):
        return most if most is None or left.most is None else max(most, left.most)
    return most + left.most - 1


def _with_partner(join: exp.Join, negated: bool) -> Node:
    """The condition that a SEMI or ANTI JOIN stands for."""
    if join.args.get("on") is None:
        raise refused("SEMI JOIN and ANTI JOIN need ON", join)
    inner = exp.select("1").from_(join.this.copy()).where(join.args["on"].copy())
    return exp.Not(this=exp.Exists(this=inner)) if negated else exp.Exists(this=inner)


def _using(left: Sequence[Relation], right: Relation, join: exp.Join) -> tuple[list[Node], Relation]:
    """Conditions that USING (...) stands for; columns of the right side that are now found on the left."""
    names = [one.name for one in join.args.get("using") or []]
    if not names:
        return [], right
    conditions: list[Node] = []
    for name in names:
        sides = []
        for relation in (left, [right]):
            found = [one for part in relation for one in part.columns if one.name.lower() == name.lower()]
            found = [one for one in found if not one.merged]
            if len(found) != 1:
                raise refused("USING takes columns that both sides have once: write ON a.key = b.key", join)
            sides.append(exp.column(found[0].name, table=found[0].table, quoted=True))
        conditions.append(exp.EQ(this=sides[0], expression=sides[1]))
    wanted = {name.lower() for name in names}
    columns = tuple(replace(one, merged=one.merged or one.name.lower() in wanted) for one in right.columns)
    return conditions, replace(right, columns=columns)


def _with_none(right: Relation) -> dict[str, str]:
    """Public rows of the right side of a LEFT JOIN, and one of which nothing is there."""
    if right.private:
        return dict(right.scans)
    names = [one.value.value for one in right.columns]
    nothing = ", ".join("NULL" for _ in names)
    text = f"SELECT {', '.join(names)} FROM ({right.sql}) UNION ALL SELECT {nothing}"
    return dict.fromkeys(names, text)


def _refuse_strangers(people: Sequence[Relation], filters: Sequence[Expression]) -> None:
    """Rows of people may meet only rows of the same person."""
    if len(people) < 2:
        return
    place = {one.value.value: at for at, relation in enumerate(people) for one in relation.columns}
    together = list(range(len(people)))
    for left, right in equalities(filters):
        if left.value in place and right.value in place and same_person(left, right):
            old, new = together[place[right.value]], together[place[left.value]]
            together = [new if one == old else one for one in together]
    if len(set(together)) > 1:
        raise refused(NOT_LOCAL)


def _refuse_twice(parts: Sequence[Relation]) -> None:
    names = [next(iter({one.table for one in part.columns}), None) for part in parts if part.columns]
    plain = [(one or "").lower() for one in names]
    if len(set(plain)) < len(plain):
        raise refused("two tables in FROM have the same name: give each a name of its own, as in: stays as s")


def _most_rows(
    parts: Sequence[Relation], filters: Sequence[Expression]
) -> tuple[float | None, frozenset[frozenset[str]], Relation | None]:
    """The most rows that one person has in a join, what is a key of it, and the first part that is not matched on one.

    Parts are taken in one by one. One that is matched on a key of its own adds no rows.
    """
    pairs = [(a.value, b.value) for a, b in equalities(filters)]
    start = max(range(len(parts)), key=lambda at: (parts[at].private, parts[at].most or 0.0, -at))
    loose, left = None, [one for at, one in enumerate(parts) if at != start]
    most, unique = parts[start].most, parts[start].unique
    known = {one.value.value for one in parts[start].columns}
    fixed = {
        a.args[0].value
        for a in filters
        if a.op == "compare" and a.value == "=" and a.args[0].op == "column" and a.args[1].op == "literal"
    }
    while left:
        for one in left:
            own = {c.value.value for c in one.columns}
            bound = {
                b if b in own else a
                for a, b in pairs
                if (a in known) != (b in known) and ({a, b} & own) and ({a, b} & known)
            } | (fixed & own)
            if any(key <= bound for key in one.unique):
                break
        else:
            one = left[0]
            most, unique = None, frozenset()  # how often a row is matched is not known
            loose = loose or one
        left = [each for each in left if each is not one]
        known |= {c.value.value for c in one.columns}
    return most, unique, loose
