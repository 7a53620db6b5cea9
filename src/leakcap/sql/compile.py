"""From the text of a question to a program: read, checked against what is allowed, and written anew.

No letter of the question reaches the engine but as a literal. What touches people's rows must be unit-local (see
`relations`) up to an aggregate by public keys; this is released, and whatever comes after is public.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import ErrorLevel, SqlglotError

from leakcap.sql.aggregates import AGGREGATES, Aggregate, SumOf, aggregate, sums_of
from leakcap.sql.catalog import Catalog
from leakcap.sql.expressions import Expression, column
from leakcap.sql.program import Output, Program, Release
from leakcap.sql.reading import NAMES_PEOPLE, Reader, alike, conjuncts, only
from leakcap.sql.refusals import Refused, refused
from leakcap.sql.relations import (
    WRITTEN,
    NamedColumn,
    Names,
    Relation,
    equalities,
    joined_origins,
    joined_scans,
    same_person,
    scan,
)

__all__ = ["compiled"]

LONGEST = 50_000  # letters
MOST_TABLES = 60  # in one FROM
MOST_QUERIES = 400  # inside one question; those about a row outside are read twice
PEOPLE = "rows of people do not leave: ask for counts, sums or averages, by columns with public values"
NOT_LOCAL = (
    "tables of people can only be joined along the links between them, on the key of one person: otherwise a row of one "
    "would meet rows of another"
)
SELECT_PARTS = {"expressions", "from_", "from", "joins", "where", "group", "having", "order", "limit", "offset", "distinct", "with_", "with"}


def compiled(text: str, catalog: Catalog, *, hidden_pool: bool = False) -> Program:
    """The program of a question, or a refusal that says what would work.

    `hidden_pool` where nothing may hang on who is in the pool, not even whether a value is missing.
    """
    if not isinstance(text, str) or not text.strip():
        raise refused("ask in SQL, as in: select count(*) from stays")
    if any("\ud800" <= letter <= "\udfff" or letter == "\x00" for letter in text):
        raise refused("the question holds letters that are none: half a pair, or a zero byte")
    if len(text) > LONGEST:
        raise refused(f"the question has more than {LONGEST:,} letters: ask several")
    try:
        return _Compiler(catalog, hidden_pool).program(text, _parsed(text))
    except RecursionError:
        raise refused("the question is nested too deeply: ask several") from None


def _parsed(text: str) -> exp.Expression:
    """The one SELECT. What else there is, is not even parsed: the parser would log the text of some of it."""
    try:
        tokens = sqlglot.tokenize(text, read="duckdb")
        while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
            tokens.pop()
        if any(one.token_type == TokenType.SEMICOLON for one in tokens):
            raise refused("ask one question at a time: one SELECT, without a semicolon between")
        first = next((one.token_type for one in tokens if one.token_type != TokenType.L_PAREN), None)
        if first not in (TokenType.SELECT, TokenType.WITH):
            raise refused("a question is a SELECT: nothing is written, set or attached here")
        found = [one for one in sqlglot.parse(text, read="duckdb") if one is not None]
    except Refused:
        raise
    except (SqlglotError, RecursionError, ValueError):
        raise refused("this cannot be read as SQL: check brackets, commas and quotes") from None
    if len(found) != 1:
        raise refused("ask one question at a time: one SELECT, without a semicolon between")
    return found[0]


@dataclass
class _Scope:
    """What names mean at a place of the query."""

    relations: Sequence[Relation]
    outer: _Scope | None = None
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
            if one.name.lower() == name.lower() and (not table or (one.table or "").lower() == table.lower())
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
        known = sorted({one.name for relation in self.relations for one in relation.columns})
        raise refused(f"there is no column of this name: there are {', '.join(known)[:400]}", node)


class _Compiler:
    def __init__(self, catalog: Catalog, hidden_pool: bool) -> None:
        self.catalog, self.names, self.hidden_pool = catalog, Names(), hidden_pool
        self.releases: list[Release] = []
        self.read = count()  # queries so far

    def program(self, text: str, node: exp.Expression) -> Program:
        relation = self.query(node, None, {})
        if relation.private:
            raise refused(PEOPLE)
        if len(relation.sql) + sum(len(one.base.sql) for one in self.releases) > WRITTEN:
            raise refused("the question is too long once written out: ask several")
        made = {name: (one.table, name) for one in self.releases for name in (*one.key_names, *one.value_names)}
        outputs = tuple(
            Output(one.name, one.value.value, one.value.kind, made.get(_origin(one.value.value, relation.origins)))
            for one in relation.columns
        )
        return Program(text, tuple(self.releases), relation.sql, outputs)

    # Queries

    def query(self, node: exp.Expression, outer: _Scope | None, tables: Mapping[str, Relation]) -> Relation:
        if next(self.read) > MOST_QUERIES:
            raise refused("there are too many queries inside one another: ask several")
        while isinstance(node, exp.Subquery):
            only(node, {"this", "alias"})
            node = node.this
        tables = self._with(node, outer, tables)
        if isinstance(node, exp.Union):
            return self._union(node, outer, tables)
        if not isinstance(node, exp.Select):
            raise refused("a question is a SELECT: nothing is written, set or attached here", node)
        only(node, SELECT_PARTS)
        return self._select(node, outer, tables)

    def _with(
        self, node: exp.Expression, outer: _Scope | None, tables: Mapping[str, Relation]
    ) -> Mapping[str, Relation]:
        given = node.args.get("with_") or node.args.get("with")
        if given is None:
            return tables
        if given.args.get("recursive"):
            raise refused("WITH RECURSIVE is not answered: there is no telling when it ends")
        found = dict(tables)
        for one in given.expressions:
            made = self.query(one.this, outer, found)
            names = [each.name for each in (one.args["alias"].args.get("columns") or [])]
            found[one.alias.lower()] = _renamed(made, names, one)
        return found

    def _union(self, node: exp.Union, outer: _Scope | None, tables: Mapping[str, Relation]) -> Relation:
        only(node, {"this", "expression", "distinct", "with_", "with", "by_name", "order", "limit", "offset"})
        if node.args.get("distinct") or node.args.get("by_name") or type(node) is not exp.Union:
            raise refused("UNION ALL is answered; UNION, INTERSECT and EXCEPT are not", node)
        sides = [self.query(one, outer, tables) for one in (node.this, node.expression)]
        if len({one.private for one in sides}) > 1:
            raise refused("rows of people cannot be put beside public ones: ask for each", node)
        first, second = sides
        if len(first.columns) != len(second.columns):
            raise refused("both sides of UNION ALL need the same columns", node)
        new, parts, columns = [self.names.fresh() for _ in first.columns], [], []
        hidden = self.names.fresh("u") if first.private else None
        for side in sides:
            listed = [f"{one.value.safe} AS {name}" for one, name in zip(side.columns, new, strict=True)]
            parts.append(f"SELECT {', '.join(listed)}{f', {side.unit} AS {hidden}' if hidden else ''} FROM ({side.sql})")
        for one, other, name in zip(first.columns, second.columns, new, strict=True):
            if (one.value.kind, one.value.digits) != (other.value.kind, other.value.digits):
                raise refused("both sides of UNION ALL need columns of the same kinds: cast them", node)
            a, b = one.value, other.value
            span = (min(a.range[0], b.range[0]), max(a.range[1], b.range[1])) if a.range and b.range else None
            levels = tuple(dict.fromkeys((*a.levels, *b.levels))) if a.levels is not None and b.levels is not None else None
            if a.identity != b.identity:
                raise refused(NAMES_PEOPLE, node)
            value = column(name, a.kind, digits=a.digits, range=span, null=a.null or b.null, levels=levels, identity=a.identity, private=a.private or b.private, declared=a.declared and b.declared)
            columns.append(NamedColumn(None, one.name, value))
        most = first.most + second.most if first.most is not None and second.most is not None else None
        made = Relation(" UNION ALL ".join(parts), tuple(columns), hidden, most, origins=joined_origins(sides))
        return self._ordered(node, made, None) if any(node.args.get(one) for one in ("order", "limit", "offset")) else made

    def _select(self, node: exp.Select, outer: _Scope | None, tables: Mapping[str, Relation]) -> Relation:
        given = node.args.get("from_") or node.args.get("from")
        if given is None:
            raise refused("a question is about a table: select ... from table")
        scope = _Scope([], outer, [])
        whole = self._from(node, given, scope, tables)
        items = self._items(node, whole)
        calls = [call for one in (*items, node.args.get("having"), node.args.get("order")) for call in _calls(one)]
        reader = self._reader(scope, tables)
        if node.args.get("group") is None and not calls:
            if node.args.get("having") is not None:
                raise refused("HAVING needs an aggregate")
            made = self._projected(node, whole, items, reader)
            if node.args.get("distinct"):
                made = self._distinct(node, made)
            return self._ordered(node, made, self._reader(_Scope([made, whole], outer, []), tables))
        if node.args.get("distinct"):
            raise refused("DISTINCT beside aggregates is not needed: groups differ already", node)
        grouped, mapped = self._grouped(node, whole, items, calls, reader)
        inside = self._reader(_Scope([grouped], outer, []), tables, mapped)
        having = node.args.get("having")
        if having is not None:
            condition = inside.truth(having.this)
            grouped = replace(
                grouped, sql=f"SELECT * FROM ({grouped.sql}) WHERE {condition.safe}", filters=(*grouped.filters, condition)
            )
        made = self._projected(node, grouped, items, inside)
        return self._ordered(node, made, self._reader(_Scope([made, grouped], outer, []), tables, mapped))

    # FROM and WHERE

    def _from(self, node: exp.Select, given: exp.From, scope: _Scope, tables: Mapping[str, Relation]) -> Relation:
        """All tables joined, and the rows of the condition."""
        parts: list[Relation] = [self._source(given.this, scope.outer, tables)]
        conditions: list[exp.Expression] = []
        if len(node.args.get("joins") or []) >= MOST_TABLES:
            raise refused(f"there are more than {MOST_TABLES} tables in FROM: ask several")
        for join in node.args.get("joins") or []:
            only(join, {"this", "on", "side", "kind", "using"})
            side, kind = (join.side or "").upper(), (join.kind or "").upper()
            if side not in ("", "LEFT") or kind not in ("", "INNER", "CROSS", "OUTER"):
                raise refused("joins are INNER, CROSS and LEFT: write others with these", join)
            right = self._source(join.this, scope.outer, tables)
            if join.args.get("using"):
                raise refused("write the columns out: JOIN ... ON a.key = b.key", join)
            if side == "LEFT":
                left = self._inner(parts, [], scope)
                parts = [self._left(left, right, join, scope, tables)]
                continue
            parts.append(right)
            scope.relations = parts
            conditions += conjuncts(join.args.get("on"))
        _refuse_twice(parts)
        scope.relations = parts
        where = node.args.get("where")
        if where is not None:
            conditions += conjuncts(where.this)
        if any(_calls(one) for one in conditions):
            raise refused("a condition on rows cannot hold an aggregate: use HAVING, or a query of its own in brackets")
        reader = self._reader(scope, tables)
        plain = [one for one in conditions if not list(_scalars(one))]
        scope.filters = [reader.truth(one) for one in plain]  # what a query about the row outside may rest on
        late = [reader.truth(one) for one in conditions if list(_scalars(one))]
        return self._inner(parts, [*scope.filters, *late], scope)

    def _source(self, node: exp.Expression, outer: _Scope | None, tables: Mapping[str, Relation]) -> Relation:
        if isinstance(node, exp.Subquery):
            only(node, {"this", "alias"})
            if not node.alias:
                raise refused("a query in FROM needs a name: (select ...) as t", node)
            made = self.query(node.this, None, tables).again(self.names)
            names = [one.name for one in (node.args["alias"].args.get("columns") or [])]
            return _renamed(made, names, node).called(node.alias)
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise refused("FROM takes tables and queries in brackets: no functions and no files", node)
        only(node, {"this", "alias"})
        alias = node.alias or node.name
        if node.alias and node.args["alias"].args.get("columns"):
            raise refused("columns of a table keep their names", node)
        if node.name.lower() in tables:
            return tables[node.name.lower()].again(self.names).called(alias)
        table = self.catalog.table(node.name)
        if table is None:
            raise refused(f"there is no table of this name: there are {', '.join(self.catalog.tables)}", node)
        return scan(table, alias, self.names, hidden_pool=self.hidden_pool)

    def _inner(self, parts: Sequence[Relation], filters: Sequence[Expression], scope: _Scope) -> Relation:
        """All parts side by side, and of these the rows for which the conditions hold."""
        people = [one for one in parts if one.private]
        _refuse_strangers(people, filters)
        filters = [*filters, *(each for one in parts for each in one.filters)]
        if len(parts) == 1 and not filters:
            return parts[0]
        hidden = people[0].unit if people else None
        names = [one.value.value for part in parts for one in part.columns]
        listed = ", ".join([*names, *([hidden] if hidden else [])])
        new = [one.safe for one in filters if not any(one in part.filters for part in parts)]
        text = f"SELECT {listed} FROM {' CROSS JOIN '.join(f'({one.sql})' for one in parts)}"
        if new:
            text += f" WHERE {' AND '.join(new)}"
        most, unique = _most_rows(parts, filters)
        return Relation(
            text,
            tuple(one for part in parts for one in part.columns),
            hidden,
            most,
            unique,
            tuple(filters),
            joined_origins(parts),
            joined_scans(parts),
        )

    def _left(
        self, left: Relation, right: Relation, join: exp.Join, scope: _Scope, tables: Mapping[str, Relation]
    ) -> Relation:
        scope.relations = [left, right]
        conditions = [self._reader(scope, tables).truth(one) for one in conjuncts(join.args.get("on"))]
        if not conditions:
            raise refused("LEFT JOIN needs ON", join)
        if right.private and not left.private:
            raise refused(
                "a public table cannot be kept whole beside rows of people: its rows without a partner would tell who "
                "is there. Group by its key instead: every key is listed, with 0 where there is nobody",
                join,
            )
        _refuse_strangers([one for one in (left, right) if one.private], conditions)
        names = [one.value.value for part in (left, right) for one in part.columns]
        listed = ", ".join([*names, *([left.unit] if left.unit else [])])
        text = f"SELECT {listed} FROM ({left.sql}) LEFT JOIN ({right.sql}) ON {' AND '.join(one.safe for one in conditions)}"
        most, unique = _most_rows([left, right], conditions)
        # A row of the left side stays without a partner: then the right one's columns are missing, keys included.
        missing = tuple(replace(one, value=replace(one.value, null=True)) for one in right.columns)
        return Relation(
            text,
            (*left.columns, *missing),
            left.unit,
            None if most is None else max(most, left.most or most),
            unique,
            left.filters,
            joined_origins([left, right]),
            {**joined_scans([left]), **_with_none(right)},
        )

    # SELECT

    def _items(self, node: exp.Select, whole: Relation) -> list[exp.Expression]:
        """Expressions of the list, with * written out."""
        found: list[exp.Expression] = []
        for one in node.expressions:
            star = isinstance(one, exp.Star) or (isinstance(one, exp.Column) and isinstance(one.this, exp.Star))
            if not star:
                found.append(one)
                continue
            if any((one if isinstance(one, exp.Star) else one.this).args.values()):
                raise refused("* takes no EXCLUDE or REPLACE here", one)
            table = one.table if isinstance(one, exp.Column) else ""
            mine = [each for each in whole.columns if not table or (each.table or "").lower() == table.lower()]
            if not mine:
                raise refused("there is no table of this name", one)
            found += [exp.column(each.name, table=each.table, quoted=True) for each in mine]
        if not found:
            raise refused("SELECT needs a list of columns")
        return found

    def _projected(
        self, node: exp.Select, whole: Relation, items: Sequence[exp.Expression], reader: Reader
    ) -> Relation:
        columns, listed, origins = [], [], dict(whole.origins)
        for at, one in enumerate(items):
            value = reader.read(one.this if isinstance(one, exp.Alias) else one)
            if value.kind == "interval":
                raise refused("an interval alone is no answer", one)
            name = self.names.fresh()
            listed.append(f"{value.safe} AS {name}")
            origins[name] = value
            facts = replace(value, op="column", args=(), value=name, wild=False) if value.op != "column" else replace(value, value=name, wild=False)
            label = one.alias_or_name if isinstance(one, (exp.Alias, exp.Column)) else _label(one, at)
            columns.append(NamedColumn(None, label, facts))
        kept = {one.value for one in origins.values() if one.op == "column"}
        new = {origins[c.value.value].value: c.value.value for c in columns if origins[c.value.value].op == "column"}
        unique = frozenset(frozenset(new[one] for one in key) for key in whole.unique if key <= set(new))
        del kept
        return Relation(
            f"SELECT {', '.join(listed)}{whole.hidden} FROM ({whole.sql})",
            tuple(columns),
            whole.unit,
            whole.most,
            unique,
            whole.filters,
            origins,
            whole.scans,
        )

    def _distinct(self, node: exp.Select, made: Relation) -> Relation:
        if node.args["distinct"].args.get("on") is not None:
            raise refused("DISTINCT ON is not answered: it takes whichever row comes first", node)
        if made.private and not any(one.value.identity is not None and not one.value.null for one in made.columns):
            raise refused("DISTINCT over rows of several people would tell who has what: group by public values", node)
        names = ", ".join(one.value.value for one in made.columns)
        key = frozenset(one.value.value for one in made.columns)
        return replace(
            made,
            sql=f"SELECT DISTINCT {names}{made.hidden} FROM ({made.sql})",
            unique=made.unique | {key},
        )

    def _ordered(self, node: exp.Expression, made: Relation, reader: Reader | None) -> Relation:
        order, limit, offset = (node.args.get(one) for one in ("order", "limit", "offset"))
        if not (order or limit or offset):
            return made
        if made.private:
            raise refused(f"{PEOPLE}. These are about a person each, or about what one person owns")
        text = f"SELECT {', '.join(one.value.value for one in made.columns)} FROM ({made.sql})"
        keys = []
        for one in order.expressions if order is not None else []:
            only(one, {"this", "desc", "nulls_first"})
            value = self._sort_key(one.this, made, reader)
            keys.append(f"{value}{' DESC' if one.args.get('desc') else ''} NULLS {'FIRST' if one.args.get('nulls_first') else 'LAST'}")
        if keys:
            text += f" ORDER BY {', '.join(keys)}"
        for word, given in (("LIMIT", limit), ("OFFSET", offset)):
            if given is not None:
                only(given, {"expression"})
                size = given.expression
                if not isinstance(size, exp.Literal) or size.is_string or not size.this.isdigit() or len(size.this) > 9:
                    raise refused(f"{word} takes a whole number", given)
                text += f" {word} {int(size.this)}"
        return replace(made, sql=text)

    def _sort_key(self, node: exp.Expression, made: Relation, reader: Reader | None) -> str:
        if isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit():
            place = int(node.this)
            if not 1 <= place <= len(made.columns):
                raise refused(f"ORDER BY {place}: there are {len(made.columns)} columns", node)
            return str(made.columns[place - 1].value.value)
        for one in made.columns:
            if isinstance(node, exp.Column) and not node.table and one.name.lower() == node.name.lower():
                return str(one.value.value)
        if reader is None:
            raise refused("order by the name or the number of a column here", node)
        value = reader.read(node)
        for one in made.columns:
            if made.origins.get(one.value.value) == value:
                return str(one.value.value)
        raise refused("order by what is in the list: add it to SELECT, and order by its name", node)

    # GROUP BY

    def _keys(self, node: exp.Select, items: Sequence[exp.Expression], reader: Reader) -> list[tuple[exp.Expression, Expression]]:
        group = node.args.get("group")
        if group is None:
            return []
        only(group, {"expressions"})
        found = []
        for one in group.expressions:
            if isinstance(one, exp.Literal) and not one.is_string:
                place = int(one.this) if one.this.isdigit() else 0
                if not 1 <= place <= len(items):
                    raise refused("GROUP BY takes numbers of columns in the list", one)
                one = items[place - 1]
            elif isinstance(one, exp.Column) and not one.table:
                named = [each for each in items if isinstance(each, exp.Alias) and each.alias.lower() == one.name.lower()]
                if named and not _is_known(one, reader):
                    one = named[0]
            inner = one.this if isinstance(one, exp.Alias) else one
            if _calls(inner):
                raise refused("groups cannot be made by an aggregate: ask for it in a query of its own, in FROM", inner)
            found.append((inner, reader.read(inner)))
        return found

    def _grouped(
        self,
        node: exp.Select,
        whole: Relation,
        items: Sequence[exp.Expression],
        calls: Sequence[exp.Expression],
        reader: Reader,
    ) -> tuple[Relation, Callable[[exp.Expression], Expression | None]]:
        """The relation of groups, and what the nodes of keys and aggregates are called in it."""
        keys = self._keys(node, items, reader)
        asked: dict[str, tuple[exp.Expression, Aggregate]] = {}
        for call in calls:
            asked.setdefault(_text(call), (call, aggregate(call, reader)))
        owned = whole.private and any(value.identity is not None and not value.null for _, value in keys)
        letter = "y" if whole.private and not owned else "x"  # columns of a released table keep their names
        names = [self.names.fresh(letter) for _ in keys]
        made = {text: self.names.fresh(letter) for text in asked}
        facts = [replace(value, op="column", args=(), value=name, wild=False) for (_, value), name in zip(keys, names, strict=True)]
        most = whole.most if owned else None
        values = {text: replace(one.facts(most), value=made[text]) for text, (_, one) in asked.items()}
        if whole.private and not owned:
            table = self.names.fresh("r")
            self._release(table, whole, keys, names, asked, made)
            text = f"SELECT {', '.join([*names, *made.values()])} FROM {table}"
            facts = [replace(one, private=False, identity=None) for one in facts]
            values = {key: replace(one, private=False, null=True, range=None, wild=False, levels=None, kind="float", digits=None) for key, one in values.items()}
            relation = Relation(text, (), origins={})
        else:
            listed = [f"{value.safe} AS {name}" for (_, value), name in zip(keys, names, strict=True)]
            listed += [f"{one.sql} AS {made[key]}" for key, (_, one) in asked.items()]
            by = [value.safe for _, value in keys] + ([whole.unit] if whole.unit else [])
            text = f"SELECT {', '.join(listed)}{whole.hidden} FROM ({whole.sql})"
            if by:
                text += f" GROUP BY {', '.join(by)}"
            single = len(keys) == 1 and whole.private and keys[0][1].identity == self.catalog.person
            relation = Relation(
                text,
                (),
                whole.unit,
                1.0 if single else whole.most,
                frozenset([frozenset(names)]),
                whole.filters,
                {**whole.origins, **{name: value for (_, value), name in zip(keys, names, strict=True)}},
                whole.scans,
            )
        columns = [
            NamedColumn(one.table if isinstance(one, exp.Column) else None, one.name if isinstance(one, exp.Column) else "", fact)
            for (one, _), fact in zip(keys, facts, strict=True)
        ]
        relation = replace(relation, columns=tuple(columns) + tuple(NamedColumn(None, "", one) for one in values.values()))
        by_text = {**{_text(one): fact for (one, _), fact in zip(keys, facts, strict=True)}, **values}
        by_value = {value: fact for (_, value), fact in zip(keys, facts, strict=True)}

        def mapped(one: exp.Expression) -> Expression | None:
            known = by_text.get(_text(one))
            if known is None and isinstance(one, exp.Column):
                try:
                    known = by_value.get(reader.find(one))
                except Refused:
                    return None
                if known is None:
                    raise refused("this column is neither grouped by nor in an aggregate", one)
            return known

        return relation, mapped

    def _release(
        self,
        table: str,
        base: Relation,
        keys: Sequence[tuple[exp.Expression, Expression]],
        names: Sequence[str],
        asked: Mapping[str, tuple[exp.Expression, Aggregate]],
        made: Mapping[str, str],
    ) -> None:
        if not asked:
            raise refused("which groups there are would tell of people: ask for count(*) of each")
        sums: list[SumOf] = []
        places = []
        for call, one in asked.values():
            mine = []
            for each in sums_of(one, call):
                if each not in sums:
                    sums.append(each)
                mine.append(sums.index(each))
            places.append(tuple(mine))
        self.releases.append(
            Release(
                table,
                base,
                tuple(value for _, value in keys),
                tuple(names),
                tuple(one for _, one in asked.values()),
                tuple(made.values()),
                tuple(sums),
                tuple(places),
            )
        )

    # Expressions that hold queries

    def _reader(
        self,
        scope: _Scope,
        tables: Mapping[str, Relation],
        mapped: Callable[[exp.Expression], Expression | None] | None = None,
    ) -> Reader:
        def other(node: exp.Expression) -> Expression | None:
            known = mapped(node) if mapped is not None else None
            if known is not None:
                return known
            if isinstance(node, exp.Exists):
                return self._exists(node.this, scope, tables, negated=False)
            if isinstance(node, exp.Not) and isinstance(node.this.unnest(), exp.Exists):
                return self._exists(node.this.unnest().this, scope, tables, negated=True)
            if isinstance(node, exp.In) and node.args.get("query") is not None:
                return self._in_query(node, scope, tables, reader, negated=False)
            inner = node.this.unnest() if isinstance(node, exp.Not) else None
            if isinstance(inner, exp.In) and inner.args.get("query") is not None:
                return self._in_query(inner, scope, tables, reader, negated=True)
            if isinstance(node, exp.Subquery):
                return self._scalar(node, scope, tables)
            if isinstance(node, exp.Window):
                raise refused("windows are not answered yet: group by the person's key in a query of its own", node)
            if isinstance(node, (*AGGREGATES, exp.Filter)) and mapped is None:
                raise refused("an aggregate cannot stand here", node)
            return None

        reader = Reader(scope.find, other)
        return reader

    def _exists(self, node: exp.Expression, scope: _Scope, tables: Mapping[str, Relation], *, negated: bool) -> Expression:
        node = node.unnest()
        if not isinstance(node, exp.Select) or any(node.args.get(one) for one in ("group", "having", "order", "limit", "with_", "with", "distinct")):
            raise refused("EXISTS takes a plain query: select 1 from table where ...", node)
        only(node, SELECT_PARTS)
        if any(_calls(one) for one in node.expressions):
            raise refused("EXISTS with an aggregate always holds: write select 1 from table where ...", node)
        inner = _Scope([], scope, [])
        given = node.args.get("from_") or node.args.get("from")
        if given is None:
            raise refused("EXISTS takes a query from a table", node)
        made = self._from(node, given, inner, tables)
        self._refuse_outsiders(made, scope, made.filters, node)
        word = "NOT EXISTS" if negated else "EXISTS"
        private = made.private or any(one.private for one in inner.used or [])
        return Expression("quantified", "bool", (), (word, f"SELECT 1 FROM ({made.sql})"), null=False, private=private)

    def _in_query(
        self, node: exp.In, scope: _Scope, tables: Mapping[str, Relation], reader: Reader, *, negated: bool
    ) -> Expression:
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

    def _refuse_outsiders(
        self, made: Relation, scope: _Scope, filters: Sequence[Expression], node: exp.Expression
    ) -> None:
        """A query about people inside another must be about the person of the outer row."""
        if not made.private:
            return
        inside = {one.value.value for one in made.columns}
        for left, right in equalities(filters):
            if (left.value in inside) != (right.value in inside) and same_person(left, right):
                return
        raise refused(NOT_LOCAL, node)

    def _scalar(self, node: exp.Subquery, scope: _Scope, tables: Mapping[str, Relation]) -> Expression:
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
        return replace(value, op="query", args=(), value=f"SELECT {value.value} FROM ({made.sql}) LIMIT 1", null=True, wild=value.kind == "float")

    def _correlated(
        self, node: exp.Select, scope: _Scope, tables: Mapping[str, Relation]
    ) -> Expression | None:
        """A query about the row outside: by its key, as one group of many."""
        where = node.args.get("where")
        outer_only: list[tuple[exp.Expression, exp.Expression]] = []  # inner side, outer side
        rest: list[exp.Expression] = []
        inner = _Scope([], None, [])
        given = node.args.get("from_") or node.args.get("from")
        if where is None or given is None:
            return None
        probe = _Compiler(self.catalog, self.hidden_pool)
        probe.read = self.read
        parts = [probe._source(given.this, None, tables)]
        parts += [probe._source(join.this, None, tables) for join in node.args.get("joins") or []]
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
        if alone.args.get("group") or len(alone.expressions) != 1:
            raise refused("a query about the row outside gives one aggregate", node)
        only = alone.expressions[0]
        alone.set("expressions", [exp.alias_(only.unalias().copy(), "value_"), *(exp.alias_(one.copy(), f"key_{k}") for k, (one, _) in enumerate(outer_only))])
        alone.set("group", exp.Group(expressions=[one.copy() for one, _ in outer_only]))
        before = len(self.releases)
        made = self.query(alone, None, tables)
        reader = self._reader(scope, tables)
        outside = [reader.read(one) for _, one in outer_only]
        if len(self.releases) == before + 1 and not made.private:
            # Of all groups, those that the rows outside can ask for by public facts: the others would cost for nothing.
            parts = scope.relations
            beyond = Relation("", (), filters=tuple(scope.filters), origins=joined_origins(parts), scans=joined_scans(parts))
            self.releases[-1] = replace(self.releases[-1], asked_for=(beyond, tuple(outside)))
        value, *inner_keys = [one.value for one in made.columns]
        if made.private and not any(same_person(mine, other) and not mine.null for mine, other in zip(inner_keys, outside, strict=True)):
            raise refused(NOT_LOCAL, node)
        pairs = [alike(mine, other, node) for mine, other in zip(inner_keys, outside, strict=True)]
        match = " AND ".join(f"{mine.safe} = {other.safe}" for mine, other in pairs)
        text = f"SELECT {value.value} FROM ({made.sql}) WHERE {match} LIMIT 1"
        if not made.private and any(isinstance(each, exp.Count) for each in only.walk()):
            text = f"SELECT coalesce(({text}), 0)"
        return replace(value, op="query", args=(), value=text, null=True, wild=value.kind == "float", private=made.private or any(one.private for one in outside))


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
) -> tuple[float | None, frozenset[frozenset[str]]]:
    """The most rows that one person has in a join, and what is a key of it.

    Parts are taken in one by one. One that is matched on a key of its own adds no rows.
    """
    pairs = [(a.value, b.value) for a, b in equalities(filters)]
    start = max(range(len(parts)), key=lambda at: (parts[at].private, parts[at].most or 0.0, -at))
    taken, left = [parts[start]], [one for at, one in enumerate(parts) if at != start]
    most, unique = parts[start].most, parts[start].unique
    known = {one.value.value for one in parts[start].columns}
    fixed = {a.args[0].value for a in filters if a.op == "compare" and a.value == "=" and a.args[0].op == "column" and a.args[1].op == "literal"}
    while left:
        for one in left:
            own = {c.value.value for c in one.columns}
            bound = {b if b in own else a for a, b in pairs if (a in known) != (b in known) and ({a, b} & own) and ({a, b} & known)} | (fixed & own)
            if any(key <= bound for key in one.unique):
                break
        else:
            one = left[0]
            most, unique = None, frozenset()  # how often a row is matched is not known
        left = [each for each in left if each is not one]
        taken.append(one)
        known |= {c.value.value for c in one.columns}
    return most, unique


def _calls(node: exp.Expression | None) -> list[exp.Expression]:
    """Aggregates in an expression, those of queries inside it left out."""
    if node is None:
        return []
    if isinstance(node, exp.Filter):
        return [node]
    if isinstance(node, tuple(AGGREGATES)) or (isinstance(node, exp.AggFunc) and not isinstance(node, exp.Window)):
        return [node]
    if isinstance(node, (exp.Subquery, exp.Select, exp.Exists, exp.Window)):
        return []
    found = []
    for one in node.iter_expressions():
        found += _calls(one)
    return found


def _scalars(node: exp.Expression) -> Iterator[exp.Subquery]:
    """Queries in brackets that stand for a value."""
    for one in node.find_all(exp.Subquery):
        if not isinstance(one.parent, (exp.In, exp.Exists)):
            yield one


def _text(node: exp.Expression) -> str:
    return node.sql(dialect="duckdb", normalize=True, unsupported_level=ErrorLevel.IGNORE)


def _label(node: exp.Expression, at: int) -> str:
    text = node.sql(dialect="duckdb", unsupported_level=ErrorLevel.IGNORE).lower()
    return text if len(text) <= 40 else f"column {at + 1}"


def _origin(name: str, origins: Mapping[str, Expression]) -> str:
    """The column that this one is, however often it was passed on."""
    while name in origins and origins[name].op == "column" and origins[name].value != name:
        name = origins[name].value
    return name


def _renamed(made: Relation, names: Sequence[str], node: exp.Expression) -> Relation:
    if not names:
        return made
    if len(names) != len(made.columns):
        raise refused("as many names as columns are needed", node)
    return replace(made, columns=tuple(replace(one, name=name) for one, name in zip(made.columns, names, strict=True)))


def _is_known(node: exp.Column, reader: Reader) -> bool:
    try:
        reader.find(node)
    except Refused:
        return False
    return True


def _all_known(node: exp.Expression, scope: _Scope) -> bool:
    """Whether all columns of an expression are of this scope; False where none or some are not."""
    columns = list(node.find_all(exp.Column))
    if not columns:
        return True
    for one in columns:
        try:
            scope.find(one)
        except Refused:
            return False
    return True


_ = Any
