"""What may stand in a question: the words that expressions are made of, and what a node of each may hold."""

from __future__ import annotations

from typing import Any, Protocol

from sqlglot import exp

from leakcap.sql.expressions import Expression, Range
from leakcap.sql.refusals import Node, refused

__all__ = [
    "ARITHMETIC",
    "CASTS",
    "COMPARISONS",
    "CURVED",
    "DATE_PARTS",
    "PARTS_OF",
    "PART_RANGES",
    "ROUNDED",
    "TEXTS",
    "TRUNCATED",
    "Reads",
    "only",
    "unknown_word",
]

DATE_PARTS = ("year", "quarter", "month", "day", "dow", "isodow", "doy", "week", "hour", "minute")
PART_RANGES: dict[str, Range] = {
    "quarter": (1, 4),
    "month": (1, 12),
    "day": (1, 31),
    "dow": (0, 6),
    "isodow": (1, 7),
    "week": (1, 53),
    "doy": (1, 366),
    "hour": (0, 23),
    "minute": (0, 59),
}
TRUNCATED = ("year", "quarter", "month", "week", "day")
CASTS = {
    "INT": ("int", "BIGINT"),
    "BIGINT": ("int", "BIGINT"),
    "SMALLINT": ("int", "BIGINT"),
    "TINYINT": ("int", "BIGINT"),
    "DOUBLE": ("float", "DOUBLE"),
    "FLOAT": ("float", "DOUBLE"),
    "VARCHAR": ("text", "VARCHAR"),
    "TEXT": ("text", "VARCHAR"),
    "DATE": ("date", "DATE"),
    "TIMESTAMP": ("timestamp", "TIMESTAMP"),
    "TIMESTAMPNTZ": ("timestamp", "TIMESTAMP"),
    "BOOLEAN": ("bool", "BOOLEAN"),
}
COMPARISONS = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
}
ARITHMETIC = {exp.Add: "add", exp.Sub: "subtract", exp.Mul: "multiply"}
TEXTS = {exp.Upper: "upper", exp.Lower: "lower"}
ROUNDED = {exp.Floor: "floor", exp.Ceil: "ceil"}
CURVED = {exp.Sqrt: "sqrt", exp.Cbrt: "cbrt", exp.Ln: "ln", exp.Exp: "exp", exp.Sin: "sin", exp.Cos: "cos"}

# What a node may hold. A part that nobody looks at could mean anything: with one, a question is refused.
PARTS_OF: dict[Any, set[str]] = {
    exp.Literal: {"this", "is_string"},
    exp.Boolean: {"this"},
    exp.Column: {"this", "table"},
    exp.Div: {"this", "expression", "typed", "safe"},
    exp.Like: {"this", "expression", "negate"},
    exp.ILike: {"this", "expression", "negate"},
    exp.In: {"this", "expressions"},
    exp.Between: {"this", "low", "high"},
    exp.Case: {"this", "ifs", "default"},
    exp.If: {"this", "true", "false"},
    exp.Coalesce: {"this", "expressions"},
    exp.Cast: {"this", "to"},
    exp.TryCast: {"this", "to", "safe"},
    exp.Interval: {"this", "unit"},
    exp.DateTrunc: {"this", "unit"},
    exp.TimestampTrunc: {"this", "unit"},
    exp.Substring: {"this", "start", "length"},
    exp.Trim: {"this", "expression", "position"},
    exp.DPipe: {"this", "expression", "safe"},
    exp.Concat: {"expressions", "safe", "coalesce"},
    exp.Round: {"this", "decimals"},
    exp.Trunc: {"this", "decimals"},
    exp.Replace: {"this", "expression", "replacement"},
    exp.DateDiff: {"this", "expression", "unit", "date_part_boundary"},
    exp.TimeToStr: {"this", "format"},
    exp.DateFromParts: {"year", "month", "day"},
    exp.Anonymous: {"this", "expressions"},
    exp.Greatest: {"this", "expressions", "ignore_nulls"},
    exp.Least: {"this", "expressions", "ignore_nulls"},
}


def only(node: Node, allowed: set[str]) -> None:
    """Nothing is in a node but what we know."""
    for name, value in node.args.items():
        if name not in allowed and value not in (None, False, [], "", ()):
            raise refused(f"{name.strip('_').replace('_', ' ').upper()} is not answered here", node)


# What is often asked, and what does the same.
INSTEAD = {
    "currentdate": "an answer must not change by the day: write the date out, as in DATE '2026-01-31'",
    "now": "an answer must not change by the day: write the date out, as in DATE '2026-01-31'",
    "currenttimestamp": "an answer must not change by the day: write the date out, as in DATE '2026-01-31'",
    "today": "an answer must not change by the day: write the date out, as in DATE '2026-01-31'",
    "age": "count the time between two dates with date_diff('year', first, last)",
    "rand": "nothing random is asked here: noise is added to what is released",
    "random": "nothing random is asked here: noise is added to what is released",
    "regexplike": "use LIKE, contains, starts_with or ends_with",
    "regexpilike": "use ILIKE, or LIKE of lower(...)",
    "similarto": "use LIKE, contains, starts_with or ends_with",
    "isnan": "a number that is none is NULL here: ask for IS NULL",
    "isinf": "an infinite number is NULL here: ask for IS NULL",
    "tuple": "compare one column at a time, and put the conditions together with AND",
    "widthbucket": "group by bins of equal width: floor(value / 10) * 10",
    "histogram": "group by bins of equal width: select floor(value / 10) * 10, count(*) from ... group by 1",
    "rollup": "ask for each level of groups in a question of its own",
    "cube": "ask for each level of groups in a question of its own",
    "groupingsets": "ask for each level of groups in a question of its own",
    "star": "* stands in the list of SELECT and in count(*)",
    "any": "write IN (select ...), EXISTS (select ...), or compare with a query that gives one value",
    "pad": "cut and join texts with left, right, substring and ||",
}
ANSWERED = (
    "arithmetic, comparisons, CASE, IN, LIKE, coalesce, nullif, casts; abs, sign, floor, ceil, round, trunc, sqrt, "
    "exp, ln, log10, pow, greatest, least; lower, upper, trim, length, left, right, substring, replace, contains, "
    "starts_with, ||; year, month, day, date_part, date_trunc, date_diff, strftime, dayname, last_day"
)


def unknown_word(node: Node) -> str:
    """What to use in place of something that is not answered."""
    word = str(node.name if node.key == "anonymous" else node.key).lower()
    return INSTEAD.get(word.replace("_", ""), f"this is not answered. There are {ANSWERED}")


class Reads(Protocol):
    """What reads the arguments of a function."""

    def read(self, node: Node) -> Expression:
        """Any expression."""
        ...

    def number(self, node: Node) -> Expression:
        """One that is a number."""
        ...

    def text(self, node: Node) -> Expression:
        """One that is a text."""
        ...

    def moment(self, node: Node) -> Expression:
        """One that is a date, also if it is written out."""
        ...

    def whole_number(self, node: Node | None, most: int) -> int:
        """One that is written out."""
        ...
