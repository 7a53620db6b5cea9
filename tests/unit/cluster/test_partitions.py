"""Rows in partitions are dealt by whose they are: nothing hangs on the layout, and hostile layouts are refused."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
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
from leakcap.cluster.parted import Shards, dealt
from leakcap.cluster.parted.shards import SHARDS
from leakcap.cluster.parted.stowed import PIECE, Stowed
from leakcap.custody.contents import contents_prints
from leakcap.custody.ledger.accounts import Secret
from leakcap.custody.sealing import BEYOND
from leakcap.errors import InputError
from leakcap.sessions.session import desk_of

SECRET = Secret(bytes(range(32)))


def refused(words: str) -> Any:
    return pytest.raises(InputError, match=re.escape(words))


def people(rows: int = 400, most: int = 60, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"who": rng.integers(0, most, rows), "paid": rng.normal(size=rows)})
    frame["ward"] = rng.choice(["A", "Bé", ""], rows)
    frame["day"] = pd.to_datetime("2026-01-01") + pd.to_timedelta(rng.integers(0, 300, rows), "D")
    frame.loc[frame.index % 17 == 3, "paid"] = np.nan
    return frame


def shards_of(parts: Any, unit: str | None = "who", most: int | None = None, **how: Any) -> Shards:
    return dealt(lc.partitions(parts, **how), unit=unit, most=most, key=SECRET.key)


def told(shards: Shards) -> dict[str, Any]:
    """Everything of the shards, in their order."""
    found: dict[str, Any] = {
        name: [cell for one in shards for cell in one.column(name).to_pylist()] for name in shards.shards[0].names
    }
    return found | {
        "people": shards.people.tolist(),
        "coins": shards.coins.tolist(),
        "ends": [one.ends().tolist() for one in shards],
        "version": shards.version,
        "most": shards.most,
        "left out": shards.left_out,
        "contents": shards.contents,
    }


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(np.array_equal(str(one[name]), str(other[name])) for name in one)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return people()


@pytest.fixture(scope="module")
def whole(frame: pd.DataFrame) -> dict[str, Any]:
    return told(shards_of([frame], most=5))


def written(frame: pd.DataFrame, folder: Path, parts: int) -> str:
    for place, rows in enumerate(np.array_split(np.arange(len(frame)), parts)):
        under = folder / f"year={place % 2}"
        under.mkdir(parents=True, exist_ok=True)
        table = pa.Table.from_pandas(frame.iloc[rows], preserve_index=False)
        pq.write_table(table, under / f"{place}.parquet", coerce_timestamps=None)
    return str(folder)


@given(st.lists(st.integers(0, 400), max_size=20), st.integers(0, 100))
@settings(max_examples=8, deadline=None)
def test_shards_are_the_same_on_every_partitioning_of_shuffled_rows(cuts: list[int], seed: int) -> None:
    """Empty parts and parts of one row among them; one person in most rows."""
    frame = people()
    frame.loc[frame.index % 3 != 0, "who"] = 7  # skew
    order = np.random.default_rng(seed).permutation(len(frame))
    ends = [0, *sorted(cuts), len(frame)]
    parts = [frame.iloc[order[first:end]] for first, end in pairwise(ends)]
    shards = shards_of(parts, most=5)
    assert same(told(shards), told(shards_of([frame], most=5)))
    assert shards.most == 5 and shards.rows + shards.left_out == len(frame)


def test_of_whoever_has_too_many_rows_so_many_count_whatever_their_order(frame: pd.DataFrame) -> None:
    forwards, backwards = (shards_of([rows], most=5) for rows in (frame, frame.iloc[::-1]))
    assert same(told(forwards), told(backwards))
    kept = frame["who"].value_counts().clip(upper=5).sum()
    assert forwards.most == 5 and forwards.rows == kept and forwards.left_out == len(frame) - kept


def test_sources_of_all_kinds_hold_the_same_rows(frame: pd.DataFrame, whole: dict[str, Any], tmp_path: Path) -> None:
    pytest.importorskip("dask.dataframe")
    import dask.dataframe as dd

    table = pa.Table.from_pandas(frame, preserve_index=False)
    sources: dict[str, Callable[[], Any]] = {
        "folder": lambda: written(frame, tmp_path / "a", 5),
        "address": lambda: f"file://{tmp_path / 'a'}",
        "files": lambda: sorted((tmp_path / "a").rglob("*.parquet"), reverse=True),
        "functions": lambda: [lambda: frame.iloc[:100], lambda: frame.iloc[100:]],
        "reader": lambda: pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=90)),
        "dask": lambda: dd.from_pandas(frame, npartitions=3),
    }
    for kind, make in sources.items():
        assert same(told(shards_of(make(), most=5)), whole), kind


def test_everybodys_rows_are_in_one_shard_and_nobodys_are_lost(frame: pd.DataFrame) -> None:
    shards = shards_of([frame.iloc[:50], frame.iloc[50:]])
    sums: dict[int, float] = {}
    numbers = dict(zip(SECRET.people(np.arange(60)).tolist(), range(60), strict=True))
    for one in shards:
        everybody = np.split(one.column("paid").to_pandas().to_numpy(), one.ends())
        assert len(everybody.pop()) == 0  # nobody's rows lie behind the last person's
        for number, paid in zip(shards.people[one.people], everybody, strict=True):
            assert numbers[int(number)] not in sums
            sums[numbers[int(number)]] = float(np.nansum(paid))
    expected = frame.groupby("who")["paid"].sum()
    assert sorted(sums) == expected.index.tolist()
    assert np.allclose([sums[who] for who in expected.index], expected)
    assert len(shards.shards) <= SHARDS and (np.diff(shards.people.astype(float)) > 0).all()


def test_coins_and_contents_are_those_of_one_machine(frame: pd.DataFrame) -> None:
    shards = shards_of([frame.iloc[::2], frame.iloc[1::2]])
    names = np.unique(frame["who"])
    coins = dict(zip(SECRET.people(names).tolist(), SECRET.coins(names).tolist(), strict=True))
    assert shards.coins.tolist() == [coins[number] for number in shards.people.tolist()]
    assert set(shards.contents) == set(contents_prints((frame.drop(columns="who"),)))


def test_rows_without_a_unit_are_known_by_their_place(frame: pd.DataFrame) -> None:
    shards = shards_of([frame[:10], frame[10:]], unit=None)
    assert sorted(shards.people.tolist()) == sorted(SECRET.people(np.arange(len(frame))).tolist())
    assert shards.most == 1


def test_rows_that_memory_has_no_room_for_are_put_aside_unreadable_and_taken_away(tmp_path: Path) -> None:
    frame = people(60_000, 5_000)
    frame["note"] = "a very telling cell"
    room = 2**24
    shards = shards_of([frame.iloc[:30_000], frame.iloc[30_000:]], memory=room, folder=str(tmp_path))
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > SHARDS
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in files)
    assert not any(b"telling" in path.read_bytes() or b"note" in path.read_bytes() for path in files)
    held = shards_of([frame])
    assert shards.version == held.version and np.array_equal(shards.people, held.people)
    for one, other in zip(shards, held, strict=True):
        assert one.column("paid").equals(other.column("paid"))
    files[0].write_bytes(files[0].read_bytes()[:-1] + b"\0")
    with refused("changed"):
        told(shards)
    del shards, one
    assert not list(tmp_path.iterdir())


def test_pieces_of_rows_put_aside_can_neither_be_left_out_nor_change_places(tmp_path: Path) -> None:
    room = Stowed(2 * PIECE, str(tmp_path))
    column = np.arange(3 * PIECE // 8)
    room.add(pa.record_batch({"a": column}), {}, np.zeros(len(column), dtype=np.intp), None)
    (path,) = (path for path in tmp_path.rglob("*") if path.is_file())
    stored, step = path.read_bytes(), PIECE + BEYOND
    first, second, rest = stored[:step], stored[step : 2 * step], stored[2 * step :]
    assert room.column(0, "a").to_pylist() == column.tolist()
    for wrong in (second + first + rest, first + second, first + first + rest, first + rest, stored + first, b""):
        room = _again(room)
        path.write_bytes(wrong)
        with refused("changed"):
            room.column(0, "a")
    path.write_bytes(stored)
    assert _again(room).column(0, "a").to_pylist() == column.tolist()


def _again(room: Stowed) -> Stowed:
    """Without what it has in memory."""
    room._last = None
    return room


def test_memory_of_a_column_is_used_again_only_when_nobody_holds_it(tmp_path: Path) -> None:
    frame = people(150_000, 5_000).drop(columns=["ward", "day"]).fillna(0)
    shards = shards_of([frame], memory=2**24, folder=str(tmp_path))
    spaces = shards.shards[0].stowed._spaces
    held = [one.column("paid").to_numpy() for one in shards]
    kept = [one.copy() for one in held]
    part, whole = held[0][3:9], [one.column("paid").to_numpy() for one in shards]
    assert not spaces
    del whole, held[1:]
    assert len(spaces) == 2 * len(kept) - 1
    again = [one.column("paid").to_numpy() for one in shards]
    assert len(spaces) == len(kept) - 1  # it was lent again
    assert np.array_equal(held[0], kept[0], equal_nan=True)
    del held
    assert len(spaces) == len(kept) - 1 and np.array_equal(part, kept[0][3:9], equal_nan=True)
    for ours, one in zip(again, kept, strict=True):
        assert np.array_equal(ours, one, equal_nan=True)


def test_a_person_whose_rows_do_not_fit_is_refused_with_a_way_out() -> None:
    frame = people(200_000, 1)
    with refused("rows_per_unit="):
        shards_of([frame], memory=2**24)


def test_two_people_who_share_a_number_stay_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "leakcap.cluster.parted.shards.keyed_by_all",
        lambda names, keys: np.stack(
            [np.asarray(names).astype(np.uint64) * np.uint64(key != SECRET.key("people")) for key in keys]
        ),
    )
    shards = shards_of([people(50, 3)])
    assert len(shards.people) == 3


# hostile layouts


def test_parts_with_other_columns_are_refused_by_name(frame: pd.DataFrame, tmp_path: Path) -> None:
    with refused("partition 2 has no column 'day'"):
        shards_of([frame, frame.drop(columns="day")])
    with refused("has a column 'more'"):
        shards_of([frame, frame.assign(more=1)])
    with refused("column 'who' is of type double in partition 2"):
        shards_of([frame, frame.assign(who=frame["who"] * 1.0)])
    with refused("another order"):
        shards_of([frame, frame[["paid", "who", "ward", "day"]]])
    written(frame, tmp_path, 2)
    pq.write_table(pa.Table.from_pandas(frame.drop(columns="paid"), preserve_index=False), tmp_path / "z.parquet")
    with refused("z.parquet has no column 'paid'"):
        lc.partitions(str(tmp_path))


def test_the_same_file_twice_is_refused_and_files_that_look_alike_are_not(frame: pd.DataFrame, tmp_path: Path) -> None:
    written(frame, tmp_path, 1)
    path = next(tmp_path.rglob("*.parquet"))
    with refused("are the same file"):
        lc.partitions([path, path])
    (tmp_path / "copy.parquet").write_bytes(path.read_bytes())
    with refused("are the same file"):
        lc.partitions(str(tmp_path))
    (tmp_path / "copy.parquet").unlink()
    for name, number in (("x", 1), ("y", 2)):
        table = pa.table({"who": [number]})
        pq.write_table(table, tmp_path / f"{name}.parquet", write_statistics=False)
    assert len(lc.partitions([tmp_path / "x.parquet", tmp_path / "y.parquet"])) == 2


@pytest.mark.parametrize("when", ["before", "between"])
def test_a_file_that_changes_while_it_is_read_is_refused(frame: pd.DataFrame, tmp_path: Path, when: str) -> None:
    parts = lc.partitions(written(frame, tmp_path, 2))
    last = sorted(tmp_path.rglob("*.parquet"))[-1]
    batches = parts.batches()
    if when == "between":
        next(batches)
    before = last.stat()
    table = pa.Table.from_pandas(frame.iloc[200:].assign(paid=1.0), preserve_index=False)
    pq.write_table(table, last)
    os.utime(last, ns=(before.st_atime_ns, before.st_mtime_ns))  # whoever changed it hides when
    with refused("was changed while it was read"):
        list(batches)


def test_what_is_no_parquet_file_is_refused(frame: pd.DataFrame, tmp_path: Path) -> None:
    path = next(Path(written(frame, tmp_path, 1)).rglob("*.parquet"))
    path.write_bytes(path.read_bytes()[:-20])
    with refused("no whole Parquet file"):
        lc.partitions(str(tmp_path))
    with refused("no Parquet files"):
        lc.partitions(str(tmp_path / "nowhere"))


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ([], "there are no partitions"),
        ([people(0)], "there are no rows"),
        ([people().assign(who=np.nan)], "missing labels"),
        ([people().assign(who=0.5)], "ids may have been lost"),
        ([pd.DataFrame({"other": [1]})], "no column 'who'"),
        ([pd.DataFrame({"who": [1], "x": [[1, 2]]})], "one value a cell"),
        ([pd.DataFrame({"who": [1, 2], "x": ["secret", 3]})], "values of one kind"),
        ([pd.DataFrame([[1, 2, 3]], columns=["who", "x", "x"])], "two columns of partition 1 are called 'x'"),
        ([pa.Table.from_arrays([pa.array([1])] * 2, names=["who", "who"])], "two columns of partition 1 are called"),
        ([pa.table({"who": [1], "\0number": [2]})], "give it a name without NUL"),
        ([lambda: int("a secret")], "partition 1 could not be read: it stopped with ValueError"),
        (7, "a folder of Parquet files"),
    ],
)
def test_what_cannot_be_dealt_is_refused_without_a_cell(parts: Any, why: str) -> None:
    with refused(why) as told_of:
        shards_of(parts)
    assert "secret" not in str(told_of.value)


def test_files_of_odd_columns_are_refused_before_they_are_read(tmp_path: Path) -> None:
    for names, why in ((["who", "x", "x"], "called 'x'"), (["who", "x", "\0row"], "without NUL")):
        pq.write_table(pa.Table.from_arrays([pa.array([1])] * 3, names=names), tmp_path / "a.parquet")
        with refused(why):
            lc.partitions(str(tmp_path))


@pytest.mark.parametrize(
    ("later", "why"),
    [
        (pa.table({"who": [2], "other": [1.0]}), "the stream has no column 'paid'"),
        (pa.table({"who": ["2"], "paid": [1.0]}), "column 'who' is of type string in the stream"),
        (None, "the stream could not be read: it stopped with ValueError"),
    ],
)
def test_a_stream_that_becomes_another_is_refused_without_a_cell(later: Any, why: str) -> None:
    """Batches under the names of the first one would be other columns than they say."""
    first = pa.table({"who": [1], "paid": [1.0]})

    def batches() -> Iterator[pa.RecordBatch]:
        yield from first.to_batches()
        yield from [later.to_batches()[0]] if later is not None else [int("a secret")]

    reader = pa.RecordBatchReader.from_batches(first.schema, batches())
    with refused(why) as told_of:
        shards_of(reader)
    assert "secret" not in str(told_of.value)


def test_groups_without_rows_and_folders_within_folders_are_read(frame: pd.DataFrame, tmp_path: Path) -> None:
    table, below = pa.Table.from_pandas(frame, preserve_index=False), tmp_path / "a=1" / "b=2"
    below.mkdir(parents=True)
    with pq.ParquetWriter(below / "x.parquet", table.schema) as writer:
        for start, end in ((0, 0), (0, 10), (10, 10), (10, 30), (30, 30)):
            writer.write_table(table.slice(start, end - start))
    pq.write_table(table.slice(30), tmp_path / "y.parquet")
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / "loop").symlink_to(tmp_path)
    assert same(told(shards_of(str(tmp_path))), told(shards_of([table])))


DAY = datetime(2026, 1, 1, tzinfo=UTC)
IDS: dict[str, Any] = {
    "beyond floats": pa.array(np.arange(40) % 7 + 2**60),
    "beyond signed": pa.array(np.arange(40, dtype=np.uint64) % 7 + np.uint64(2**63)),
    "whole floats": pa.array(np.where(np.arange(40) % 7, np.arange(40) % 7, -0.0)),
    "truth": pa.array(np.arange(40) % 2 == 0),
    "codes": pa.array([f"p{one % 7}" for one in range(40)]).dictionary_encode(),
    "large texts": pa.array([f"p{one % 7}" for one in range(40)], pa.large_string()),
    "alike": pa.array([["1", "1.0", "01", " 1", "1 ", "NaN", ""][one % 7] for one in range(40)]),
    "two forms": pa.array([["é", "e\u0301", "É"][one % 3] for one in range(40)]),
    "NULs": pa.array([["a", "a\0", "a\0b", "\0a"][one % 4] for one in range(40)]),
    "bytes": pa.array([bytes([one % 7]) * 16 for one in range(40)], pa.binary(16)),
    "decimals": pa.array([Decimal(one % 7) / 4 for one in range(40)]),
    "moments": pa.array([DAY + timedelta(hours=one % 7) for one in range(40)], pa.timestamp("us", "America/New_York")),
    "days": pa.array([DAY.date() + timedelta(days=one % 7) for one in range(40)]),
}


@pytest.mark.parametrize("kind", IDS)
def test_ids_of_every_kind_are_the_people_of_one_table(tmp_path: Path, kind: str) -> None:
    """Known by the same numbers, with the same coins: otherwise one account would have two clocks for them."""
    table = pa.table({"who": IDS[kind], "x": np.linspace(0, 10, 40)})
    for place, some in enumerate((table.slice(0, 15), table.slice(15))):
        pq.write_table(some, tmp_path / f"{place}.parquet")
    whole, parted = (
        lc.Session(rows, cap=0.6, unit="who", seed=1) for rows in (table.to_pandas(), lc.partitions(str(tmp_path)))
    )
    assert len(desk_of(whole).people) == {"truth": 2, "two forms": 3, "NULs": 3}.get(kind, 7)
    known = [
        sorted(zip(desk.people.tolist(), desk.coins.tolist(), strict=True)) for desk in map(desk_of, (whole, parted))
    ]
    assert known[0] == known[1]
    one, other = (session.sum("x", bounds=(0, 11), share=0.2).value for session in (whole, parted))
    assert one == other


def test_a_stream_is_read_once(frame: pd.DataFrame) -> None:
    table = pa.Table.from_pandas(frame, preserve_index=False)
    parts = lc.partitions(table.to_reader())
    dealt(parts, unit="who", most=None, key=SECRET.key)
    with refused("was read"):
        dealt(parts, unit="who", most=None, key=SECRET.key)
    with pytest.raises(InputError, match="not pickled"):
        parts.__reduce__()


def test_one_row_is_a_partition() -> None:
    assert shards_of([people(1)]).rows == 1


def test_a_missing_cell_is_no_nought_and_no_empty_text() -> None:
    """What data are known by tells them apart; its two halves have nothing to do with each other."""
    schema = pa.schema({"who": pa.int64(), "n": pa.int64(), "x": pa.float64(), "yes": pa.bool_(), "text": pa.string()})
    nought = {"who": 1, "n": 0, "x": 0.0, "yes": False, "text": ""}
    versions = set()
    for row in (nought, *({**nought, name: None} for name in schema.names[1:])):
        rows = pa.Table.from_pylist([row, {**nought, "who": 2}], schema=schema)
        version = shards_of([rows]).version
        first, second = version[-32:-16], version[-16:]
        assert first != second
        versions.add(version)
    assert len(versions) == len(schema.names)
