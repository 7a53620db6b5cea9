"""From the text of a question to a program: read, checked against what is allowed, and written anew.

No letter of the question reaches the engine but as a literal. What touches people's rows must be unit-local (see
`relations`) up to an aggregate by public keys; this is released, and whatever comes after is public.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from sqlglot import Dialect, TokenType, exp
from sqlglot.errors import SqlglotError

from leakcap.sql.catalog import Catalog
from leakcap.sql.compiling import PEOPLE, SELECT_PARTS, Scope, calls, plainly_named, renamed
from leakcap.sql.expressions import Expression, column
from leakcap.sql.grouping import GroupClause
from leakcap.sql.inner_queries import InnerQueries
from leakcap.sql.joins import FromClause
from leakcap.sql.kinds import NAMES_PEOPLE
from leakcap.sql.noised_keys import with_keys
from leakcap.sql.program import Output, Program
from leakcap.sql.ratios import ratio_of
from leakcap.sql.reading import only
from leakcap.sql.refusals import Node, NotAnswered, refused
from leakcap.sql.relations import WRITTEN, NamedColumn, Relation, joined_origins, without_unread
from leakcap.sql.select_list import SelectList, spelled_out
from leakcap.sql.windows import WindowFunctions

__all__ = ["compiled"]

LONGEST = 50_000  # letters
NO_NAMES = (TokenType.HEX_STRING, TokenType.BIT_STRING, TokenType.BYTE_STRING)
MOST_QUERIES = 400  # inside one question; those about a row outside are read twice


def compiled(text: str, catalog: Catalog, *, hidden_pool: bool = False, worlds: bool = False) -> Program:
    """The program of a question, or a refusal that says what would work.

    `hidden_pool` where nothing may hang on who is in the pool, not even whether a value is missing; `worlds` where a
    list of worlds answers, also what is no sum over people.
    """
    if not isinstance(text, str) or not text.strip():
        raise refused("ask in SQL, as in: select count(*) from stays")
    if any("\ud800" <= letter <= "\udfff" or letter == "\x00" for letter in text):
        raise refused("the question holds letters that are none: half a pair, or a zero byte")
    if len(text) > LONGEST:
        raise refused(f"the question has more than {LONGEST:,} letters: ask several")
    try:
        return _Compiler(catalog, hidden_pool, worlds).program(text, parsed(text))
    except RecursionError:
        raise refused("the question is nested too deeply: ask several") from None


def parsed(text: str) -> Node:
    """The one SELECT. What else there is, is not even parsed: the parser would log the text of some of it."""
    try:
        dialect = Dialect.get_or_raise("duckdb")
        tokens = dialect.tokenize(text)
        while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
            tokens.pop()
        if any(one.token_type == TokenType.SEMICOLON for one in tokens):
            raise refused("ask one question at a time: one SELECT, without a semicolon between")
        first = next((one.token_type for one in tokens if one.token_type != TokenType.L_PAREN), None)
        if first not in (TokenType.SELECT, TokenType.WITH):
            raise refused("a question is a SELECT: nothing is written, set or attached here")
        _refuse_other_numbers(tokens)
        found = [one for one in dialect.parser().parse(tokens, text) if one is not None]
    except NotAnswered:
        raise
    except (SqlglotError, RecursionError, ValueError):
        raise refused("this cannot be read as SQL: check brackets, commas and quotes") from None
    if len(found) != 1:
        raise refused("ask one question at a time: one SELECT, without a semicolon between")
    return found[0]


def _refuse_other_numbers(tokens: Sequence[Any]) -> None:
    """The parser reads 0x1F as 0 by the name of x1F; the engine reads 31."""
    for one, after in pairwise(tokens):
        named = after.token_type not in NO_NAMES and (after.text[:1].isalpha() or after.text[:1] == "_")
        if one.token_type == TokenType.NUMBER and one.end + 1 == after.start and named:
            raise refused(f"write numbers as 31, 1.5 or 1e3, with a blank behind: not {one.text}{after.text[:20]}")
    if any(one.token_type in NO_NAMES for one in tokens):
        raise refused("write numbers as 31 or 1.5, and text as 'text': no bits, bytes or hexadecimal digits")


class _Compiler(FromClause, SelectList, GroupClause, WindowFunctions, InnerQueries):
    """All parts together."""

    def program(self, text: str, node: Node) -> Program:
        relation = self.query(node, None, {})
        if relation.private:
            raise refused(PEOPLE)
        if self.hidden_pool and self.releases and self.loose:  # public tables alone: there the time tells nothing
            raise refused(self.loose[0])
        if len(relation.sql) + sum(len(one.base.sql) for one in self.releases) > WRITTEN:
            raise refused("the question is too long once written out: ask several")
        releases = with_keys(self.releases, self.catalog, hidden_pool=self.hidden_pool)
        made = {name: (one.table, name) for one in releases for name in (*one.key_names, *one.value_names)}
        asked = {
            name: (one.table, each.name)
            for one in releases
            for name, each in zip(one.value_names, one.aggregates, strict=False)  # quantiles are no aggregates of sums
        }
        asked |= {name: (one.table, "quantile") for one in releases if one.tree for name in one.value_names}
        outputs = tuple(
            Output(
                one.name,
                one.value.value,
                one.value.kind,
                released=made.get(_origin(one.value.value, relation.origins)),
                ratio=ratio_of(one.value, asked, relation.origins),
            )
            for one in relation.columns
        )
        return Program(text, tuple(releases), without_unread(relation.sql), outputs)

    def query(self, node: Node, outer: Scope | None, tables: Mapping[str, Relation]) -> Relation:
        if next(self.queries) > MOST_QUERIES:
            raise refused("there are too many queries inside one another: ask several")
        while isinstance(node, exp.Subquery):
            only(node, {"this", "alias"})
            node = node.this
        tables = self._with(node, outer, tables)
        if isinstance(node, exp.SetOperation):
            return self._union(node, outer, tables)
        if not isinstance(node, exp.Select):
            raise refused("a question is a SELECT: nothing is written, set or attached here", node)
        only(node, SELECT_PARTS)
        return self._select(node, outer, tables)

    def _with(self, node: Node, outer: Scope | None, tables: Mapping[str, Relation]) -> Mapping[str, Relation]:
        given = node.args.get("with_") or node.args.get("with")
        if given is None:
            return tables
        if given.args.get("recursive"):
            raise refused("WITH RECURSIVE is not answered: there is no telling when it ends")
        found, own = dict(tables), set()
        for one in given.expressions:
            only(one, {"this", "alias", "materialized"})
            plainly_named(one)
            if one.alias.lower() in own:
                raise refused("two queries of WITH have this name: give each its own", one.this)
            own.add(one.alias.lower())
            made = self.query(one.this, outer, found)
            names = [each.name for each in (one.args["alias"].args.get("columns") or [])]
            found[one.alias.lower()] = renamed(made, names, one)
        return found

    def _union(self, node: exp.SetOperation, outer: Scope | None, tables: Mapping[str, Relation]) -> Relation:
        only(node, {"this", "expression", "distinct", "with_", "with", "by_name", "order", "limit", "offset"})
        word = {exp.Union: "UNION", exp.Intersect: "INTERSECT", exp.Except: "EXCEPT"}.get(type(node), "")
        different = bool(node.args.get("distinct"))
        if node.args.get("by_name") or not word or (word != "UNION" and not different):
            raise refused("there are UNION ALL, UNION, INTERSECT and EXCEPT, of columns in their order", node)
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
            parts.append(
                f"SELECT {', '.join(listed)}{f', {side.unit} AS {hidden}' if hidden else ''} FROM ({side.sql})"
            )
        for one, other, name in zip(first.columns, second.columns, new, strict=True):
            if (one.value.kind, one.value.digits) != (other.value.kind, other.value.digits):
                raise refused("both sides of UNION ALL need columns of the same kinds: cast them", node)
            a, b = one.value, other.value
            span = (min(a.range[0], b.range[0]), max(a.range[1], b.range[1])) if a.range and b.range else None
            levels = (
                tuple(dict.fromkeys((*a.levels, *b.levels))) if a.levels is not None and b.levels is not None else None
            )
            if a.identity != b.identity:
                raise refused(NAMES_PEOPLE, node)
            value = column(
                name,
                a.kind,
                digits=a.digits,
                range=span,
                null=a.null or b.null,
                levels=levels,
                identity=a.identity,
                private=a.private or b.private,
                declared=a.declared and b.declared,
            )
            columns.append(NamedColumn(None, one.name, value))
        most = first.most + second.most if first.most is not None and second.most is not None else None
        if (
            different
            and first.private
            and not any(one.value.identity is not None and not one.value.null for one in columns)
        ):
            raise refused(
                f"{word} would tell which rows of people are the same as others': add the person's key to both lists, "
                "or use UNION ALL",
                node,
            )
        if word != "UNION":
            most = first.most
        text = f" {word}{'' if different else ' ALL'} ".join(parts)
        made = Relation(text, tuple(columns), hidden, most, origins=joined_origins(sides))
        return (
            self.ordered(node, made, None) if any(node.args.get(one) for one in ("order", "limit", "offset")) else made
        )

    def _select(self, node: exp.Select, outer: Scope | None, tables: Mapping[str, Relation]) -> Relation:
        given = node.args.get("from_") or node.args.get("from")
        if given is None:
            raise refused("a question is about a table: select ... from table")
        scope = Scope([], outer, [])
        whole = self.from_tables(node, given, scope, tables)
        items = self.items(node, whole)
        named = {one.alias.lower(): one.this for one in items if isinstance(one, exp.Alias)}
        having, qualify = (
            None if node.args.get(one) is None else spelled_out(node.args[one].this, named, whole)
            for one in ("having", "qualify")
        )
        listed = items if qualify is None else [*items, exp.alias_(qualify, "qualify")]
        called = [call for one in (*listed, having, node.args.get("order")) for call in calls(one)]
        reader = self.reader(scope, tables, over=whole)
        if node.args.get("group") is None and not called:
            if having is not None:
                raise refused("HAVING needs an aggregate")
            made = self.projected(node, whole, listed, reader)
            made = made if qualify is None else self.qualified(made)
            if node.args.get("distinct"):
                made = self.distinct(node, made)
            return self.ordered(node, made, self.reader(Scope([made, whole], outer, []), tables))
        grouped, mapped = self.grouped(node, whole, reader, items=items, called=called)
        inside = self.reader(Scope([grouped], outer, []), tables, mapped)
        if having is not None:
            condition = inside.truth(having)
            grouped = replace(
                grouped,
                sql=f"SELECT * FROM ({grouped.sql}) WHERE {condition.safe}",
                filters=(*grouped.filters, condition),
            )
        made = self.projected(
            node, grouped, listed, self.reader(Scope([grouped], outer, []), tables, mapped, over=grouped)
        )
        made = made if qualify is None else self.qualified(made)
        if node.args.get("distinct"):
            made = self.distinct(node, made)
        return self.ordered(node, made, self.reader(Scope([made, grouped], outer, []), tables, mapped))


def _origin(name: str, origins: Mapping[str, Expression]) -> str:
    """The column that this one is, however often it was passed on."""
    while name in origins and origins[name].op == "column" and origins[name].value != name:
        name = origins[name].value
    return name
