"""What a question in SQL gives: a table with an interval for each number. Public side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leakcap.ground.arrays import Floats
from leakcap.sessions.answers import SessionAnswer
from leakcap.sql.evaluate import GroupCells, table_of
from leakcap.sql.intervals import with_ends
from leakcap.sql.program import Program

__all__ = ["Released", "SqlAnswer", "answer_of"]


TOO_FEW = "too few"


@dataclass(frozen=True, eq=False)
class SqlAnswer:
    """The answer to a question in SQL. Public side: safe to publish.

    Attributes:
        frame: the table, with columns `NAME`, and `NAME low` and `NAME high` for every released number. A mean, ratio
            or quantile of too few people is NaN, and so are its ends; in print it reads "too few".
        share: what the question took of the clock of whoever paid the most.
        number: of its last entry in the session's history; None where nothing was released.
        again: whether all of it was stored, so that nothing was spent.
        numbers: names of the columns that have an interval.
        whole: whether all of it was answered. From a list of worlds the last numbers may be refused: they are then what
            everybody can work out from earlier answers, and their intervals mean nothing.
    """

    frame: Any
    share: float
    number: int | None
    again: bool
    numbers: tuple[str, ...] = ()
    whole: bool = True

    @property
    def too_few(self) -> Any:
        """Which released numbers are of too few people to be told from noise: rows of the table, columns `numbers`."""
        return self.frame[list(self.numbers)].isna()

    def _shown(self) -> Any:
        """The table in words."""
        shown = self.frame.copy()
        for name in self.numbers:
            few = shown[name].isna()
            if few.any():
                for column, text in ((name, TOO_FEW), (f"{name} low", ""), (f"{name} high", "")):
                    shown[column] = shown[column].astype(object).where(~few, text)
        return shown

    def _repr_html_(self) -> str:
        return str(self._shown()._repr_html_())

    def __repr__(self) -> str:
        return repr(self._shown())


@dataclass(frozen=True, eq=False)
class Released:
    """A release as everybody sees it: groups, and every value with the ends of its interval."""

    made: GroupCells
    table: Any  # Arrow: keys and values
    values: Mapping[str, Floats]  # by column
    ends: Mapping[str, tuple[Floats, Floats]]
    answer: SessionAnswer

    @classmethod
    def of(cls, made: GroupCells, answer: SessionAnswer, *, halves: bool) -> Released:
        release = made.release
        sums = np.asarray(answer.value).reshape(made.groups, -1)
        spread = np.asarray(answer.noise).reshape(made.groups, -1)
        shown = None
        if release.tree is not None:
            nodes, most = release.tree.nodes, (release.base.most or 0.0) if halves else 0.0
            found = release.tree.with_ends(sums.reshape(-1, nodes), spread.reshape(-1, nodes), most)
            columns = list(zip(*(one.T for one in found), strict=True))
        else:
            shown = release.shows(sums[:, 0], spread[:, 0])
            if halves:
                spread = np.hypot(spread, np.sqrt(_halving(made, sums)))
            pairs = zip(release.aggregates, release.places, strict=True)
            columns = [with_ends(one, sums[:, list(places)], spread[:, list(places)]) for one, places in pairs]
        named = dict(zip(release.value_names, columns, strict=True))
        return cls(
            made=made,
            table=table_of(made, [value for value, _, _ in columns], shown),
            values={name: value for name, (value, _, _) in named.items()},
            ends={name: (low, high) for name, (_, low, high) in named.items()},
            answer=answer,
        )


def _halving(made: GroupCells, sums: Floats) -> Floats:
    """Variance that is due to coins or halves, about, of sums of what cannot be negative; 0 where nothing is known."""
    most = made.release.base.most
    if most is None:
        return np.zeros_like(sums)
    known = [
        not one.of or (len(one.of) == 1 and not one.middles[0] and (one.of[0].range or (-1,))[0] >= 0)
        for one in made.release.sums
    ]
    sizes = np.array([one.in_group(most) if ok else 0.0 for one, ok in zip(made.release.sums, known, strict=True)])
    sizes = np.append(sizes, np.zeros(len(made.release.held)))
    return np.asarray(sizes * np.maximum(sums, 0.0))


def answer_of(program: Program, last: Any, answers: Sequence[Released]) -> SqlAnswer:
    """The last table, with the intervals of columns that were released as they stand."""
    import pandas

    found = last.to_pandas()
    columns: dict[str, Any] = {}
    numbers: list[str] = []
    by_table = {one.made.release.table: one for one in answers}
    for one in program.outputs:
        name = _unused(one.name, columns)
        columns[name] = found[one.column].to_numpy()
        released = by_table.get(one.ratio.table) if one.ratio else None
        places = None if released is None else _rows(program, found, released)
        if released is None or places is None or one.ratio is None:
            continue
        value, low, high = one.ratio.with_ends(released.values, released.ends)
        columns[name] = np.where(np.isnan(value[places]), np.nan, columns[name].astype(np.float64))
        columns[f"{name} low"], columns[f"{name} high"] = low[places], high[places]
        numbers.append(name)
    spent = [one.answer for one in answers]
    return SqlAnswer(
        frame=pandas.DataFrame(columns),
        share=float(sum(one.share for one in spent if not one.again)),
        number=spent[-1].number if spent else None,
        again=bool(spent) and all(one.again for one in spent),
        numbers=tuple(numbers),
        whole=all(one.whole for one in spent),
    )


def _rows(program: Program, found: Any, one: Released) -> Any:
    """The group of each row of the answer, by the keys that are in it; None where they are not all there."""
    keys = [name for name in one.table.column_names if name not in one.ends]
    if not keys:
        return np.zeros(len(found), dtype=np.intp)
    shown = {each.released[1]: each.column for each in program.outputs if each.released}
    if any(name not in shown for name in keys):
        return None
    groups = one.table.select(keys).to_pandas()
    by_key = {tuple(map(str, row)): at for at, row in enumerate(groups.itertuples(index=False))}
    rows = found[[shown[name] for name in keys]].itertuples(index=False)
    return np.array([by_key[tuple(map(str, row))] for row in rows], dtype=np.intp)


def _unused(name: str, columns: dict[str, Any]) -> str:
    made, at = name, 2
    while made in columns:
        made, at = f"{name} {at}", at + 1
    return made
