"""What may stand in a question: the words that expressions are made of, and what a node of each may hold."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from leakcap.sql.expressions import Range
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
    "only",
]

DATE_PARTS = ("year", "quarter", "month", "day", "dayofweek", "dow", "isodow", "week", "hour", "minute")
PART_RANGES: dict[str, Range] = {
    "quarter": (1, 4),
    "month": (1, 12),
    "day": (1, 31),
    "dayofweek": (0, 6),
    "dow": (0, 6),
    "isodow": (1, 7),
    "week": (1, 53),
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
COMPARISONS = {exp.EQ: "=", exp.NEQ: "<>", exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<="}
ARITHMETIC = {exp.Add: "add", exp.Sub: "subtract", exp.Mul: "multiply"}
TEXTS = {exp.Upper: "upper", exp.Lower: "lower"}
ROUNDED = {exp.Floor: "floor", exp.Ceil: "ceil"}
CURVED = {exp.Sqrt: "sqrt", exp.Ln: "ln", exp.Exp: "exp"}

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
    exp.Greatest: {"this", "expressions", "ignore_nulls"},
    exp.Least: {"this", "expressions", "ignore_nulls"},
}


def only(node: Node, allowed: set[str]) -> None:
    """Nothing is in a node but what we know."""
    for name, value in node.args.items():
        if name not in allowed and value not in (None, False, [], "", ()):
            raise refused(f"{name.strip('_').replace('_', ' ').upper()} is not answered here", node)
