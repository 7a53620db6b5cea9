"""What a question in SQL gives: a table with an interval for each number. Public side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leakcap.ground.arrays import Floats
from leakcap.sessions.answers import SessionAnswer
from leakcap.sql.evaluate import CellSums
from leakcap.sql.intervals import with_ends
from leakcap.sql.program import Program

__all__ = ["Released", "SqlAnswer", "answer_of"]


@dataclass(frozen=True, eq=False)
class SqlAnswer:
    """The answer to a question in SQL. Public side: safe to publish.

    Attributes:
        frame: the table, with columns `NAME`, and `NAME low` and `NAME high` for every released number.
        share: what the question took of the clock of whoever paid the most.
        number: of its last entry in the session's history; None where nothing was released.
        again: whether all of it was stored, so that nothing was spent.
        whole: whether all of it was answered. From a list of worlds the last numbers may be refused: they are then what
            everybody can work out from earlier answers, and their intervals mean nothing.
    """

    frame: Any
    share: float
    number: int | None
    again: bool
    whole: bool = True

    def _repr_html_(self) -> str:
        return str(self.frame._repr_html_())

    def __repr__(self) -> str:
        return repr(self.frame)


@dataclass(frozen=True, eq=False)
class Released:
    """A release as everybody sees it: groups, and every value with the ends of its interval."""

    made: CellSums
    table: Any  # Arrow: keys and values
    ends: Mapping[str, tuple[Floats, Floats]]  # by column
    answer: SessionAnswer

    @classmethod
    def of(cls, made: CellSums, answer: SessionAnswer, *, halves: bool) -> Released:
        import pyarrow

        release = made.release
        sums = np.asarray(answer.value).reshape(made.groups, -1)
        spread = np.asarray(answer.noise).reshape(made.groups, -1)
        if halves:
            spread = np.sqrt(spread**2 + _halving(made, sums))
        columns = {name: made.keys.column(name) for name in release.key_names}
        ends = {}
        for name, one, places in zip(release.value_names, release.aggregates, release.places, strict=True):
            value, *two = with_ends(one, sums[:, list(places)], spread[:, list(places)])
            columns[name] = pyarrow.array(value, mask=~np.isfinite(value), type=pyarrow.float64())
            ends[name] = (two[0], two[1])
        return cls(made, pyarrow.table(columns), ends, answer)


def _halving(made: CellSums, sums: Floats) -> Floats:
    """Variance that is due to coins or halves, about, of sums of what cannot be negative; 0 where nothing is known."""
    most = made.release.base.most
    if most is None:
        return np.zeros_like(sums)
    known = [
        not one.of or (len(one.of) == 1 and not one.middles[0] and (one.of[0].range or (-1,))[0] >= 0)
        for one in made.release.sums
    ]
    sizes = np.array([most * one.size if ok else 0.0 for one, ok in zip(made.release.sums, known, strict=True)])
    sizes = np.append(sizes, np.zeros(len(made.release.held)))
    return np.asarray(sizes * np.maximum(sums, 0.0))


def answer_of(program: Program, last: Any, answers: Sequence[Released]) -> SqlAnswer:
    """The last table, with the intervals of columns that were released as they stand."""
    import pandas

    found = last.to_pandas()
    columns: dict[str, Any] = {}
    by_table = {one.made.release.table: one for one in answers}
    for one in program.outputs:
        name = _unused(one.name, columns)
        columns[name] = found[one.column].to_numpy()
        released = by_table.get(one.released[0]) if one.released else None
        if released is None or one.released is None or one.released[1] not in released.ends:
            continue
        places = _rows(program, found, released.made)
        if places is not None:
            low, high = released.ends[one.released[1]]
            columns[f"{name} low"], columns[f"{name} high"] = low[places], high[places]
    spent = [one.answer for one in answers]
    return SqlAnswer(
        frame=pandas.DataFrame(columns),
        share=float(sum(one.share for one in spent if not one.again)),
        number=spent[-1].number if spent else None,
        again=bool(spent) and all(one.again for one in spent),
        whole=all(one.whole for one in spent),
    )


def _rows(program: Program, found: Any, made: CellSums) -> Any:
    """The group of each row of the answer, by the keys that are in it; None where they are not all there."""
    if not made.release.keys:
        return np.zeros(len(found), dtype=np.intp)
    shown = {
        one.released[1]: one.column for one in program.outputs if one.released and one.released[0] == made.release.table
    }
    if any(name not in shown for name in made.release.key_names):
        return None
    groups = made.keys.to_pandas()
    by_key = {
        tuple(map(str, row)): at for at, row in enumerate(groups[list(made.release.key_names)].itertuples(index=False))
    }
    rows = found[[shown[name] for name in made.release.key_names]].itertuples(index=False)
    return np.array([by_key[tuple(map(str, row))] for row in rows], dtype=np.intp)


def _unused(name: str, columns: dict[str, Any]) -> str:
    made, at = name, 2
    while made in columns:
        made, at = f"{name} {at}", at + 1
    return made
