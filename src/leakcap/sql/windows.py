"""Windows over the rows of one person, in an order that leaves nothing open; over released rows, any.

What a window gives a row may hang on other rows of its person alone, and not on the order in which the engine happens
to meet rows that are equal: that order may change with rows of others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from leakcap.ground.proofs import proves
from leakcap.sql.aggregates import NEEDS_RANGE
from leakcap.sql.compiling import Compiling, text_of
from leakcap.sql.expressions import Expression, Range, column
from leakcap.sql.kinds import NAMES_PEOPLE, NUMBERS, as_float, in_grains, numeric, same_kind, united
from leakcap.sql.reading import Beside, Reader, only
from leakcap.sql.refusals import Node, refused
from leakcap.sql.relations import Relation

__all__ = ["WindowFunctions"]

RANKS = {exp.Rank: "rank", exp.DenseRank: "dense_rank", exp.PercentRank: "percent_rank", exp.CumeDist: "cume_dist"}
NUMBERED = {exp.RowNumber: "row_number", exp.Ntile: "ntile"}
MOVED = {exp.Lag: "lag", exp.Lead: "lead"}
ENDS = {exp.FirstValue: "first_value", exp.LastValue: "last_value"}
ADDED = {exp.Count: "count", exp.Sum: "sum", exp.Avg: "avg", exp.Min: "min", exp.Max: "max"}
ANSWERED = ", ".join([*NUMBERED.values(), *RANKS.values(), *MOVED.values(), *ENDS.values(), *ADDED.values()])
WHOLE = "a window over rows of people stays with one person"
MOST_MOVED = 999  # rows


@dataclass
class Over:
    """What stands in OVER (...)."""

    partition: list[Expression]
    order: list[tuple[Expression, str]]
    frame: str = ""
    rows: bool = False  # whether the frame counts rows
    fixed: frozenset[str] = field(default_factory=frozenset)  # columns that are equal where the window sees no order

    @property
    def sql(self) -> str:
        by = f"PARTITION BY {', '.join(one.safe for one in self.partition)}" if self.partition else ""
        sort = f" ORDER BY {', '.join(one.safe + how for one, how in self.order)}" if self.order else ""
        return f"OVER ({by}{sort}{self.frame})"


@dataclass(frozen=True)
class Call:
    """A function as it is written once OVER (...) is known, what is known of it, and whether ties matter to it."""

    written: Callable[[str], str]
    facts: Expression
    ordered: bool = False
    of: tuple[Expression, ...] = ()  # what it looks at in other rows


class WindowFunctions(Compiling):
    """Functions OVER (...)."""

    def window(self, node: exp.Window, whole: Relation, reader: Reader) -> Expression:
        """A window as a column that is computed beside the rows."""
        known = reader.beside.get(text_of(node))
        if known is not None:
            return known.value
        only(node, {"this", "partition_by", "order", "spec", "over", "first"})
        over = _over(node, reader)
        if whole.private:
            _refuse_others(over, whole, node)
        call = self._function(node.this, over, whole, reader)
        letter = "x" if whole.private else "y"
        made = replace(call.facts, value=self.names.fresh(letter), private=whole.private)
        fixed = over.fixed if whole.private and (call.ordered or over.rows) else None
        person = whole.private and [one.identity for one in over.partition] == [self.catalog.person]
        reader.beside[text_of(node)] = Beside(
            sql=f"{call.written(over.sql)} AS {made.value}",
            value=made,
            of=call.of,
            fixed=fixed,
            node=node,
            numbers_rows=person and isinstance(node.this, exp.RowNumber),
        )
        return made

    def _function(self, node: Node, over: Over, whole: Relation, reader: Reader) -> Call:
        most = whole.most if whole.private else None
        count: Range | None = None if most is None else (1.0, most)
        kind = type(node)
        if kind in RANKS or kind in NUMBERED or kind in MOVED or kind in ENDS:
            if not over.order and kind is not exp.RowNumber:
                raise refused("this window needs an order: OVER (PARTITION BY ... ORDER BY ...)", node)
            if over.frame:
                raise refused("a frame goes with sums, averages and counts", node)
        if kind in RANKS:
            share = kind in (exp.PercentRank, exp.CumeDist)
            facts = column("", "float" if share else "int", range=(0.0, 1.0) if share else count, null=False)
            return Call(lambda written: f"{RANKS[kind]}() {written}", facts)
        if kind is exp.RowNumber:
            facts = column("", "int", range=count, null=False)
            return Call(lambda written: f"row_number() {written}", facts, ordered=True)
        if kind is exp.Ntile:
            parts = max(1, reader.whole_number(node.this, MOST_MOVED))
            facts = column("", "int", range=(1.0, float(parts)), null=False)
            return Call(lambda written: f"ntile({parts}) {written}", facts, ordered=True)
        if kind in MOVED:
            return _moved(node, reader)
        if kind in ENDS:
            only(node, {"this"})
            one = _plain(reader.read(node.this), node)
            return Call(
                lambda written: f"{ENDS[kind]}({one.safe}) {written}", replace(_like(one), null=True), True, (one,)
            )
        if kind in ADDED:
            return _added(node, reader, whole)
        raise refused(f"windows are {ANSWERED}", node)


def _refuse_others(over: Over, whole: Relation, node: Node) -> None:
    """A window sees rows of one person alone if a key of people is among what it is partitioned by."""
    if any(one.identity is not None and not one.null for one in over.partition):
        return
    keys = [one.name for one in whole.columns if one.value.identity is not None and not one.value.null]
    like = f", as in OVER (PARTITION BY {keys[0]} ORDER BY ...)" if keys else ""
    raise refused(f"{WHOLE}: PARTITION BY the person's key{like}", node)


@proves("unit-local")
def check_order(beside: Sequence[Beside], used: Sequence[Expression] | None, whole: Relation) -> None:
    """Refuse windows whose order leaves ties between rows that differ in what is `used`; None: that is not known."""
    for one in beside:
        if one.fixed is None or any(key <= one.fixed for key in whole.unique):
            continue
        # Rows that are equal in all that is looked at: whichever comes first, the outcome is the same. Numbers can be
        # equal and not the same, as 0 and -0.
        if len(beside) == 1 and used is not None and not any(given.asks for given in one.of):
            seen = [each for each in used if each.value != one.value.value]
            seen += [each for given in one.of for each in given.columns()]
            if all(each.value in one.fixed and each.kind != "float" for each in seen):
                continue
        names = {each.value.value: each.name for each in whole.columns}
        keys = [" and ".join(names.get(x, "") for x in sorted(key)) for key in whole.unique if key <= set(names)]
        rest = f"add a key of the rows to ORDER BY, such as {keys[0]}" if keys else "order by all columns of the list"
        raise refused(
            f"rows that are equal in ORDER BY could come in any order: {rest}, or ask for rank(), which takes equal "
            "rows together",
            one.node,
        )


def _over(node: exp.Window, reader: Reader) -> Over:
    partition = [reader.read(one) for one in node.args.get("partition_by") or []]
    order = []
    given = node.args.get("order")
    for one in given.expressions if given is not None else []:
        only(one, {"this", "desc", "nulls_first"})
        nulls = "FIRST" if one.args.get("nulls_first") else "LAST"
        order.append((reader.read(one.this), f"{' DESC' if one.args.get('desc') else ''} NULLS {nulls}"))
    fixed = frozenset(one.value for one in (*partition, *(one for one, _ in order)) if one.op == "column")
    over = Over(partition, order, fixed=fixed)
    spec = node.args.get("spec")
    if spec is not None:
        only(spec, {"kind", "start", "start_side", "end", "end_side"})
        over.rows = str(spec.args.get("kind")).upper() == "ROWS"
        if not over.rows and str(spec.args.get("kind")).upper() != "RANGE":
            raise refused("a frame is of ROWS or RANGE", node)
        ends = [_end(spec, "start", over.rows, node)]
        if spec.args.get("end") is not None:
            over.frame = (
                f" {'ROWS' if over.rows else 'RANGE'} BETWEEN {ends[0]} AND {_end(spec, 'end', over.rows, node)}"
            )
        else:
            over.frame = f" {'ROWS' if over.rows else 'RANGE'} {ends[0]}"
    return over


def _end(spec: exp.WindowSpec, name: str, rows: bool, node: Node) -> str:
    given, side = spec.args[name], str(spec.args.get(f"{name}_side") or "").upper()
    if isinstance(given, str):
        if given.upper() == "CURRENT ROW":
            return "CURRENT ROW"
        if given.upper() == "UNBOUNDED" and side in ("PRECEDING", "FOLLOWING"):
            return f"UNBOUNDED {side}"
    counted = rows and isinstance(given, exp.Literal) and given.this.isdigit() and len(given.this) < 4
    if counted and side in ("PRECEDING", "FOLLOWING"):
        return f"{int(given.this)} {side}"
    raise refused("a frame is written as in ROWS BETWEEN 2 PRECEDING AND CURRENT ROW", node)


def _like(one: Expression) -> Expression:
    return column("", one.kind, digits=one.digits, range=one.range, levels=one.levels, declared=one.declared)


def _plain(one: Expression, node: Node) -> Expression:
    if one.identity is not None:
        raise refused(NAMES_PEOPLE, node)
    return one


def _moved(node: Node, reader: Reader) -> Call:
    only(node, {"this", "offset", "default"})
    one, offset = _plain(reader.read(node.this), node), node.args.get("offset")
    by = 1 if offset is None else reader.whole_number(offset, MOST_MOVED)
    name = MOVED[type(node)]
    if node.args.get("default") is None:
        return Call(lambda over: f"{name}({one.safe}, {by}) {over}", replace(_like(one), null=True), True, (one,))
    one, other = same_kind([one, reader.read(node.args["default"])], node)
    if other.asks or any(other.columns()):
        raise refused(f"{name} takes a value that is written out in place of what is not there", node)
    facts = replace(_like(one), range=united([one, other])["range"], levels=None)
    return Call(lambda over: f"{name}({one.safe}, {by}, {other.safe}) {over}", facts, True, (one, other))


def _added(node: Node, reader: Reader, whole: Relation) -> Call:
    """Counts, sums, averages and extremes. Sums are of whole numbers, so that their order does not matter."""
    only(node, {"this", "big_int"})
    name, most = ADDED[type(node)], whole.most if whole.private else None
    if isinstance(node.this, exp.Distinct):
        raise refused("DISTINCT does not go with windows: count in a query with GROUP BY", node)
    if name == "count":
        of = () if node.this is None or isinstance(node.this, exp.Star) else (reader.read(node.this),)
        facts = column("", "int", range=None if most is None else (0.0, most), null=False)
        return Call(lambda over: f"count({of[0].safe if of else '*'}) {over}", facts, of=of)
    one = _plain(reader.read(node.this), node)
    if name in ("min", "max"):
        return Call(lambda over: f"{name}({one.safe}) {over}", replace(_like(one), null=True), of=(one,))
    if one.kind not in (*NUMBERS, "bool"):
        raise refused(f"{name} is of numbers, and this is of kind {one.kind}", node)
    one = numeric(one)
    if not whole.private:
        number = as_float(one)
        return Call(lambda over: f"{name}({number.safe}) {over}", column("", "float", wild=True))
    span = one.range
    if span is None:
        raise refused(NEEDS_RANGE, node)
    total = None if most is None else (min(0.0, most * span[0]), max(0.0, most * span[1]))
    if name == "sum" and one.kind == "int":
        return Call(
            lambda over: f"TRY_CAST(sum({one.safe}) {over} AS BIGINT)", column("", "int", range=total), of=(one,)
        )
    grains, grain = in_grains(one)
    if name == "sum":
        facts = column("", "float", range=total, wild=total is None)
        return Call(lambda over: f"(sum({grains}) {over})::DOUBLE * {grain!r}", facts, of=(one,))
    return Call(
        lambda over: f"(sum({grains}) {over})::DOUBLE * {grain!r} / nullif(count({one.safe}) {over}, 0)",
        column("", "float", range=span),
        of=(one,),
    )
