"""Questions of a session on a server, as SQL: what a local session has a method for, over declared columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from leakcap.errors import InputError
from leakcap.server.bins import bin_width

__all__ = ["RemoteQuestions"]

By = str | Sequence[str]


class RemoteQuestions:
    """SQL for the tables of one data set, from what was declared of them."""

    def __init__(self, schema: Callable[[], Mapping[str, Any]]) -> None:
        self._schema = schema

    def count(self, table: str | None = None, *, where: str | None = None, by: By = ()) -> str:
        return self._select("count(*) as n", table, where, by)

    def mean(self, column: str, table: str | None = None, *, where: str | None = None, by: By = ()) -> str:
        return self._select(f"avg({_quoted(column)}) as {_quoted(column)}", table, where, by)

    def sum(self, column: str, table: str | None = None, *, where: str | None = None, by: By = ()) -> str:
        return self._select(f"sum({_quoted(column)}) as {_quoted(column)}", table, where, by)

    def quantile(
        self, column: str, q: float = 0.5, table: str | None = None, *, where: str | None = None, by: By = ()
    ) -> str:
        if not isinstance(q, (int, float)) or not 0 < q < 1:
            raise InputError("q must lie between 0 and 1, such as 0.9: ask for several quantiles one by one")
        measure = f"quantile_cont({_quoted(column)}, {float(q)!r}) as {_quoted(column)}"
        return self._select(measure, table, where, by)

    def histogram(self, column: str, table: str | None = None, *, bins: int = 20, where: str | None = None) -> str:
        if not isinstance(bins, int) or not 1 <= bins <= 1000:
            raise InputError("bins must be a whole number from 1 to 1000")
        named = table or self._only_table()
        low, high = self._range(named, column)
        width = bin_width(low, high, bins)
        begin = f"floor({_quoted(column)} / {width}) * {width} as {_quoted(f'{column} from')}"
        told = f" where {where}" if where else ""
        return f"select {begin}, count(*) as n from {_quoted(named)}{told} group by 1 order by 1"

    def _select(self, measure: str, table: str | None, where: str | None, by: By) -> str:
        groups = [_quoted(one) for one in ([by] if isinstance(by, str) else by)]
        text = f"select {', '.join([*groups, measure])} from {_quoted(table or self._only_table())}"
        text += f" where {where}" if where else ""
        return text + (f" group by {', '.join(groups)} order by {', '.join(groups)}" if groups else "")

    def _only_table(self) -> str:
        private = [one["name"] for one in self._schema()["tables"] if not one["public"]]
        if len(private) != 1:
            raise InputError(f"name the table: table= is one of {', '.join(private)}")
        return str(private[0])

    def _range(self, table: str, column: str) -> tuple[float, float]:
        for one in self._schema()["tables"]:
            for known in one["columns"] if one["name"] == table else ():
                if known["name"] == column and isinstance(known["low"], (int, float)) and known["high"] > known["low"]:
                    return float(known["low"]), float(known["high"])
        raise InputError("a histogram needs a column of numbers with a declared range: see them in schema")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
