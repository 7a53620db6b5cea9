"""Hostile layouts of files: everybody is whole in every world, or what is wrong is said and nothing is opened."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import leakcap as lc
from leakcap.cluster.parted.files import ParquetPart
from leakcap.errors import InputError

ROWS, WORLDS = 1200, 64
HOW: dict[str, Any] = {"cap": 0.6, "unit": "who", "seed": 1}


def people() -> pd.DataFrame:
    """One person has 1,000 rows, the others one or two."""
    rng = np.random.default_rng(0)
    owner = np.where(np.arange(ROWS) < 1000, 7, 100 + np.arange(ROWS) // 2)
    frame = pd.DataFrame({"who": owner, "paid": rng.normal(size=ROWS)})
    return frame.iloc[rng.permutation(ROWS)].reset_index(drop=True)


def written(frame: pd.DataFrame, folder: Path, cuts: list[int]) -> list[Path]:
    """Files that end at the cuts: empty ones where two are the same, and at both ends."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    paths = []
    for place, (first, end) in enumerate(pairwise([0, 0, *sorted(cuts), len(frame), len(frame)])):
        paths.append(folder / f"{place:03d}.parquet")
        pq.write_table(pa.Table.from_pandas(frame.iloc[first:end], preserve_index=False), paths[-1])
    return paths


def rows_in_worlds(session: lc.Session, worlds: Any) -> list[int]:
    """How many rows each world has."""
    found: list[int] = session._questions.count().in_worlds(worlds).table[:, 0].astype(int).tolist()
    return found


@cache
def whole() -> tuple[Any, list[int], Any]:
    """Of one table: the worlds, what they hold, and an answer under bits."""
    listed = lc.Session(people(), design="worlds", worlds=WORLDS, **HOW)
    worlds = listed._desk.engine.worlds  # type: ignore[union-attr]
    sums = lc.Session(people(), rows_per_unit=1000, **HOW)
    return worlds, rows_in_worlds(listed, worlds), sums.mean("paid", bounds=(-3, 3), share=0.1).value


LAYOUTS = st.lists(st.integers(0, ROWS) | st.just(500) | st.integers(0, 3), max_size=12)


@given(LAYOUTS, st.integers(0, 100))
@settings(max_examples=6, deadline=None)
def test_everybody_is_whole_in_every_world_and_answers_are_those_of_one_table(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int], seed: int
) -> None:
    frame = people().iloc[np.random.default_rng(seed).permutation(ROWS)]
    folder = tmp_path_factory.getbasetemp() / "layout"
    written(frame, folder, cuts)
    worlds, rows, answer = whole()
    session = lc.Session(lc.partitions(str(folder)), design="worlds", worlds=WORLDS, **HOW)
    assert rows_in_worlds(session, worlds) == rows
    of_one = np.unique(people()["who"], return_counts=True)[1]
    assert rows == [int(of_one[worlds.mask(w)].sum()) for w in range(WORLDS)]
    sums = lc.Session(lc.partitions(str(folder)), rows_per_unit=1000, **HOW)
    assert sums.mean("paid", bounds=(-3, 3), share=0.1).value == answer


def test_people_who_are_torn_in_two_are_seen() -> None:
    """The twin: where people are known by their file and not by name, worlds hold other rows."""
    frame, (_, rows, _) = people(), whole()
    torn = frame.assign(who=frame["who"].where(frame.index < ROWS // 2, 7 - frame["who"]))
    session = lc.Session(lc.partitions([torn]), design="worlds", worlds=WORLDS, **HOW)
    assert rows_in_worlds(session, session._desk.engine.worlds) != rows  # type: ignore[union-attr]


def _other_column(paths: list[Path], frame: pd.DataFrame) -> None:
    _write(paths, frame.assign(more=1.0).iloc[:3])


def _other_type(paths: list[Path], frame: pd.DataFrame) -> None:
    _write(paths, frame.assign(paid="x").iloc[:3])


def _no_owner(paths: list[Path], frame: pd.DataFrame) -> None:
    _write(paths, frame.drop(columns="who").iloc[:3])


def _twice(paths: list[Path], frame: pd.DataFrame) -> None:
    full = next(path for path in paths if pq.ParquetFile(path).metadata.num_rows)
    shutil.copy(full, full.with_name("zzz.parquet"))


def _cut_off(paths: list[Path], frame: pd.DataFrame) -> None:
    paths[-1].write_bytes(paths[-1].read_bytes()[:-9])


def _write(paths: list[Path], frame: pd.DataFrame) -> None:
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), paths[-1])


WRONG: dict[Callable[..., None], str] = {
    _other_column: "has a column 'more'",
    _other_type: "column 'paid' is of type",
    _no_owner: "has no column 'who'",
    _twice: "are the same file",
    _cut_off: "no whole Parquet file",
}


@given(LAYOUTS, st.sampled_from(list(WRONG)))
@settings(max_examples=15, deadline=None)
def test_what_is_wrong_is_said_by_the_name_of_a_file(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int], wrong: Callable[..., None]
) -> None:
    frame, folder = people(), tmp_path_factory.getbasetemp() / "wrong"
    paths = written(frame, folder, [4, *cuts])
    wrong(paths, frame)
    with pytest.raises(InputError, match=WRONG[wrong]) as told:
        lc.partitions(str(folder))
    assert ".parquet" in str(told.value)


@given(LAYOUTS, st.integers(0, 5), st.booleans())
@settings(max_examples=5, deadline=None)
def test_files_that_change_while_they_are_read_open_nothing(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int], after: int, longer: bool
) -> None:
    """Whichever file it is, and however many were read: there is no account afterwards."""
    frame, folder = people(), tmp_path_factory.mktemp("changed")
    paths = written(frame, folder, [400, 800, *cuts])
    parts, book = lc.partitions(str(folder)), folder.with_suffix(".db")
    read, seen = ParquetPart.batches, list[Any]()

    def changing(part: ParquetPart) -> Iterator[Any]:
        for batch in read(part):
            if len(seen) == min(after, 1):
                _write(paths, frame.iloc[: 900 if longer else 3].assign(paid=0.5))
            seen.append(batch)
            yield batch

    how = {name: value for name, value in HOW.items() if name != "seed"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ParquetPart, "batches", changing)
        with pytest.raises(InputError, match="was changed while it was read"):
            lc.Session(parts, ledger=f"sqlite:///{book}", name="people", **how)
    opened = lc.Session(lc.partitions([frame]), ledger=f"sqlite:///{book}", name="people", **how)
    assert len(opened.history) == 0
