"""SELECT, DISTINCT, ORDER BY and LIMIT: columns of a relation, and what may be picked out of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import ErrorLevel, exp

from leakcap.sql.compiling import PEOPLE, Compiling
from leakcap.sql.expressions import Expression
from leakcap.sql.reading import Reader, only
from leakcap.sql.refusals import Node, refused
from leakcap.sql.relations import NamedColumn, Relation, with_fewer
from leakcap.sql.windows import check_order

__all__ = ["SelectList", "spelled_out"]


class SelectList(Compiling):
    """What a query lists."""

    def items(self, node: exp.Select, whole: Relation) -> list[Node]:
        """Expressions of the list, with * written out."""
        found: list[Node] = []
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
            mine = mine if table else [each for each in mine if not each.merged]
            found += [exp.column(each.name, table=each.table, quoted=True) for each in mine]
        if not found:
            raise refused("SELECT needs a list of columns")
        named: dict[str, Node] = {}
        for at, one in enumerate(found):  # a name may be used further right in the list
            found[at] = spelled_out(one, named, whole)
            if isinstance(one, exp.Alias):
                named[one.alias.lower()] = found[at].this
        return found

    def projected(self, node: exp.Select, whole: Relation, items: Sequence[Node], reader: Reader) -> Relation:
        columns, listed, origins = [], [], dict(whole.origins)
        values = [reader.read(one.this if isinstance(one, exp.Alias) else one) for one in items]
        rows = _with_beside(whole, values, reader)
        for at, (one, value) in enumerate(zip(items, values, strict=True)):
            if value.kind == "interval":
                raise refused("an interval alone is no answer", one)
            name = self.names.fresh()
            listed.append(f"{value.safe} AS {name}")
            origins[name] = value
            facts = (
                replace(value, op="column", args=(), value=name, wild=False)
                if value.op != "column"
                else replace(value, value=name, wild=False)
            )
            label = one.alias_or_name if isinstance(one, (exp.Alias, exp.Column)) else _label(one, at)
            columns.append(NamedColumn(None, label, facts))
        numbered = whole.numbered | {one.value.value for one in reader.beside.values() if one.numbers_rows}
        new = {origins[c.value.value].value: c.value.value for c in columns if origins[c.value.value].op == "column"}
        unique = frozenset(frozenset(new[one] for one in key) for key in whole.unique if key <= set(new))
        return Relation(
            f"SELECT {', '.join(listed)}{whole.hidden} FROM ({rows})",
            tuple(columns),
            unit=whole.unit,
            most=whole.most,
            unique=unique,
            filters=whole.filters,
            origins=origins,
            scans=whole.scans,
            numbered=numbered | {c.value.value for c in columns if origins[c.value.value].value in numbered},
        )

    def qualified(self, made: Relation) -> Relation:
        """The rows for which the last column, a condition, holds; without it."""
        *columns, condition = made.columns
        names = ", ".join(one.value.value for one in columns)
        kept = replace(
            made,
            sql=f"SELECT {names}{made.hidden} FROM ({made.sql}) WHERE {condition.value.value}",
            columns=tuple(columns),
        )
        return with_fewer(kept, [made.origins[condition.value.value]])

    def distinct(self, node: exp.Select, made: Relation) -> Relation:
        if node.args["distinct"].args.get("on") is not None:
            raise refused("DISTINCT ON is not answered: it takes whichever row comes first", node)
        if made.private and not any(one.value.identity is not None and not one.value.null for one in made.columns):
            raise refused("DISTINCT over rows of several people would tell who has what: group by public values", node)
        names = ", ".join(one.value.value for one in made.columns)
        key = frozenset(one.value.value for one in made.columns)
        person = made.private and [one.value.identity for one in made.columns] == [self.catalog.person]
        return replace(
            made,
            most=1.0 if person else made.most,
            sql=f"SELECT DISTINCT {names}{made.hidden} FROM ({made.sql})",
            unique=made.unique | {key},
        )

    def ordered(self, node: Node, made: Relation, reader: Reader | None) -> Relation:
        order, limit, offset = (node.args.get(one) for one in ("order", "limit", "offset"))
        if not (order or limit or offset):
            return made
        if made.private:
            raise refused(f"{PEOPLE}. These are about a person each, or about what one person owns")
        text = f"SELECT {', '.join(one.value.value for one in made.columns)} FROM ({made.sql})"
        keys = []
        given = order.expressions if order is not None else []
        if len(given) == 1 and isinstance(given[0].this, exp.Var) and given[0].this.name.upper() == "ALL":
            how = {name: given[0].args.get(name) for name in ("desc", "nulls_first")}
            given = [exp.Ordered(this=exp.Literal.number(at + 1), **how) for at in range(len(made.columns))]
        for one in given:
            only(one, {"this", "desc", "nulls_first"})
            value = self._sort_key(one.this, made, reader)
            keys.append(
                f"{value}{' DESC' if one.args.get('desc') else ''} "
                f"NULLS {'FIRST' if one.args.get('nulls_first') else 'LAST'}"
            )
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

    def _sort_key(self, node: Node, made: Relation, reader: Reader | None) -> str:
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


def spelled_out(node: Node, named: Mapping[str, Node], whole: Relation) -> Node:
    """With what stands for a name of the list, where no column of the rows has it."""
    known = {one.name.lower() for one in whole.columns}
    made = node.copy()
    for one in [*made.find_all(exp.Column)]:
        name = one.name.lower()
        if one.table or name in known or name not in named or one.find_ancestor(exp.Select) is not None:
            continue
        meant = exp.Paren(this=named[name].copy())
        if one is made:
            return meant
        one.replace(meant)
    return made


def _with_beside(whole: Relation, values: Sequence[Expression], reader: Reader) -> str:
    """The rows, and windows over them."""
    beside = list(reader.beside.values())
    if not beside:
        return whole.sql
    used = None if any(one.asks for one in values) else [each for one in values for each in one.columns()]
    check_order(beside, used, whole)
    return f"SELECT *, {', '.join(one.sql for one in beside)} FROM ({whole.sql})"


def _label(node: Node, at: int) -> str:
    text = node.sql(dialect="duckdb", unsupported_level=ErrorLevel.IGNORE).lower()
    return text if len(text) <= 40 else f"column {at + 1}"
