"""What a function is handed shows nothing but its rows, and changes nothing; a copy of the process gets no answers."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import leakcap as lc
from leakcap.ground.slices import take_alone, take_own
from leakcap.kernels.blocks import InBlocks
from leakcap.sessions import brought
from leakcap.worlds import Units
from tests.forked import said_by_a_fork

PEOPLE = 12
ROWS = np.array([3, 7, 8])
forking = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # of threads that this process may have


def table(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame({"id": np.arange(PEOPLE), "x": np.arange(PEOPLE) * 1.0, **columns})


def seen_in_blocks(data: Any, mask: Any) -> list[Any]:
    """What a function is handed, block by block, for those who take part."""
    seen: list[Any] = []
    made = lc.blocks(lambda rows: seen.append(rows) or 0.0, blocks=2, bounds=(0, 1))
    units = Units(PEOPLE, PEOPLE)
    InBlocks(made, (data,), units, made.of_rows(units), hidden=True).answers(mask)
    return seen


@pytest.mark.parametrize("index", [None, np.arange(5, 5 + PEOPLE), [("a", row) for row in range(PEOPLE)]])
def test_a_block_does_not_show_where_its_rows_were(index: Any) -> None:
    data = table()
    if index is not None:
        data.index = pd.Index(index)
    blocks = seen_in_blocks(data, np.arange(PEOPLE) % 3 > 0)
    assert sum(map(len, blocks)) == 8
    for rows in blocks:
        assert isinstance(rows.index, pd.RangeIndex)
        assert list(rows.index) == list(range(len(rows)))


@pytest.mark.parametrize("take", [take_alone, take_own])
def test_an_index_that_somebody_made_is_part_of_the_rows(take: Callable[..., Any]) -> None:
    names = [f"person {row}" for row in range(PEOPLE)]
    for index in (names, pd.Index(np.arange(PEOPLE), name="patient").astype("int64")[::-1]):
        assert list(take(table().set_axis(index), ROWS).index) == [index[row] for row in ROWS]


def arrays_of(rows: Any) -> list[np.ndarray]:
    """The memory in which rows lie."""
    if hasattr(rows, "columns"):
        return [np.asarray(rows[name]) for name in rows.columns]
    return [rows.data, rows.indices] if sparse.issparse(rows) else [np.asarray(one) for one in (rows,)]


WHOLES: dict[str, Callable[[], Any]] = {
    "an array": lambda: np.arange(24.0).reshape(PEOPLE, 2),
    "columns together": lambda: np.asfortranarray(np.arange(24.0).reshape(PEOPLE, 2)),
    "a masked array": lambda: np.ma.masked_less(np.arange(24.0).reshape(PEOPLE, 2), 3, copy=False),
    "text": lambda: np.arange(PEOPLE).astype(str),
    "objects": lambda: np.array([[row, str(row)] for row in range(PEOPLE)], dtype=object),
    "a table": lambda: table(word=[str(row) for row in range(PEOPLE)], kind=pd.Categorical(list("ab") * 6)),
    "a column": lambda: table()["x"],
    "a sparse matrix": lambda: sparse.csr_matrix(np.arange(1.0, 25).reshape(PEOPLE, 2)),
}


@pytest.mark.parametrize("kind", WHOLES)
def test_rows_lie_in_memory_of_their_own(kind: str) -> None:
    whole = WHOLES[kind]()
    for rows in (ROWS, np.arange(PEOPLE)):
        for own, all_of_it in zip(arrays_of(take_own(whole, rows)), arrays_of(whole), strict=True):
            base = own
            while isinstance(base.base, np.ndarray):
                base = base.base
            assert not np.shares_memory(base, all_of_it)
            assert base.size <= own.size
            assert own.flags.writeable or hasattr(whole, "iloc")


def test_a_table_of_polars_is_made_anew() -> None:
    polars = pytest.importorskip("polars")
    whole = polars.DataFrame({"x": np.arange(PEOPLE), "kind": polars.Series(["a", "b"] * 6, dtype=polars.Categorical)})
    own = take_own(whole, ROWS)
    assert own["x"].to_list() == [3, 7, 8]
    assert own["x"].to_arrow().buffers()[1].size <= 128  # and not that of a larger one, of which it is a part
    assert own["kind"].dtype == polars.String


def test_rows_that_are_views_of_one_array_come_without_it() -> None:
    whole = np.arange(24.0).reshape(PEOPLE, 2)
    for take in (take_own, take_alone):
        for row in take(list(whole), ROWS):
            assert row.base is None
            row[:] = -1
    assert whole.min() == 0


class Person:
    """Somebody's own class."""

    def __init__(self) -> None:
        self.marks: list[str] = []


class NeverCopied(Person):
    def __deepcopy__(self, memo: Any) -> Any:
        raise ValueError("a secret")


CELLS: dict[str, Callable[[], Any]] = {
    "lists": list,
    "dicts": dict,
    "sets": set,
    "arrays": lambda: np.zeros(1),
    "lists in tuples": lambda: ([],),
    "a class": Person,
    "a class that cannot be copied": NeverCopied,
}


def mark(cell: Any) -> None:
    if isinstance(cell, Person):
        cell.marks.append("seen")
    elif isinstance(cell, tuple):
        cell[0].append("seen")
    elif isinstance(cell, np.ndarray):
        cell[0] = 1
    elif isinstance(cell, dict):
        cell["seen"] = 1
    elif cell is not None:
        getattr(cell, "append" if isinstance(cell, list) else "add")("seen")


def marked(cell: Any) -> bool:
    if isinstance(cell, Person):
        return bool(cell.marks)
    return bool(np.any(cell)) if isinstance(cell, np.ndarray) else bool(cell[0] if isinstance(cell, tuple) else cell)


def as_objects(cells: list[Any]) -> np.ndarray:
    made = np.empty(len(cells), dtype=object)
    for place, cell in enumerate(cells):
        made[place] = cell
    return made


FORMS: dict[str, tuple[Callable[[list[Any]], Any], Callable[[Any], Any]]] = {
    "a table": (lambda cells: table(tags=pd.Series(cells, dtype=object)), lambda rows: list(rows["tags"])),
    "a column": (lambda cells: pd.Series(cells, dtype=object), list),
    "a list": (lambda cells: cells, list),
    "an array": (as_objects, list),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", CELLS)
def test_what_a_function_writes_into_a_cell_is_gone(kind: str, form: str) -> None:
    """Otherwise it marks everybody beside somebody, and a later question counts the marks."""
    cells = [CELLS[kind]() for _ in range(PEOPLE)]
    make, cells_of = FORMS[form]
    data = make(cells)

    def marking(rows: Any) -> float:
        for cell in cells_of(rows):
            mark(cell)
        return 0.5

    how = {"blocks": 2, "bounds": (0, 1)}
    if form != "a list":
        session = lc.Session(data, cap=0.6, analyst="ann", rows_per_unit=1, seed=1)
        session.blocks(marking, **how)
        session.linear(marking, bounds=(0, 1))
        session.count(where=marking)
    for options in ({"cap": 0.6, "design": "bits"}, {"cap": lc.pool_membership(0.6)}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            lc.release(lc.blocks(marking, **how), data, **options)
    assert not any(map(marked, cells))


def test_a_function_that_sorts_in_place_leaves_the_data_as_they_are() -> None:
    def median(rows: np.ndarray) -> float:
        rows.sort()
        return float(rows[len(rows) // 2])

    values = np.random.default_rng(0).permutation(60) * 1.0
    before = values.copy()
    lc.release(lc.blocks(median, blocks=3, bounds=(0, 60)), values, cap=lc.pool_membership(0.6))
    assert (values == before).all()


@pytest.mark.filterwarnings("ignore:the function answers otherwise")  # the custodian is told
@pytest.mark.parametrize("both", [True, False])
def test_an_analysts_function_is_slow_on_somebody_whatever_their_coin_is(both: bool) -> None:
    """And where only those who take part are asked, the clock tells: the planted twin."""
    data, told, totals = table(), set(), list[int]()
    for coin in (True, False):
        session = lc.Session(data, cap=0.6, unit="id", rows_per_unit=1, analyst="ann" if both else None, seed=1)
        session._desk = replace(session._desk, coins=np.full(PEOPLE, coin))
        calls: list[int] = []

        def slow(rows: Any, calls: list[int] = calls) -> float:
            calls.append(5 in list(rows["x"]))
            return float(len(rows))

        question = session._questions.blocks(slow, blocks=3, bounds=(0, PEOPLE))
        sums = question.sums(False)
        calls.clear()
        total, *_ = sums.totals(np.ones(1), np.ones(PEOPLE, dtype=bool), session._desk.coins, False)
        told.add((len(calls), sum(calls)))
        totals.append(int(total[0]))
    assert totals[0] > totals[1]  # the answer is that of those who take part
    assert (len(told) == 1) == both


def test_who_is_asked_first_follows_from_chance_alone() -> None:
    order: list[int] = []
    made = lc.blocks(lambda rows: order.append(len(rows)) or float(len(rows)), blocks=2, bounds=(0, PEOPLE))
    units = Units(PEOPLE, PEOPLE)
    pool = InBlocks(made, (np.arange(PEOPLE),), units, made.of_rows(units))
    mask = np.arange(PEOPLE) < 3
    plain = pool.answers(mask)
    for later in ([False, False], [True, True], [True, False]):
        order.clear()
        assert (pool.answers_beside(mask, np.array(later)) == plain).all()
        pairs = zip(pool._halves(mask), later, strict=True)
        assert order == [len(half) for halves, last in pairs for half in (halves[::-1] if last else halves)]


def test_which_half_is_asked_first_is_drawn_and_does_not_hang_on_the_coins(monkeypatch: pytest.MonkeyPatch) -> None:
    class Drawn:
        def bits(self) -> np.random.Generator:
            return np.random.default_rng(7)

    orders, coins = [], []
    asked = InBlocks.answers_beside

    def heard(self: InBlocks, mask: Any, later: Any) -> Any:
        orders.append(later.tolist())
        return asked(self, mask, later)

    monkeypatch.setattr(brought, "OperatingSystem", Drawn)
    monkeypatch.setattr(InBlocks, "answers_beside", heard)
    for seed in (1, 2, 3):
        session = lc.Session(table(), cap=0.6, analyst="ann", rows_per_unit=1, seed=seed)
        session.blocks(lambda rows: 0.5, blocks=8, bounds=(0, 1), share=0.1)
        coins.append(session._desk.coins.tolist())
    assert len(set(map(tuple, coins))) == 3, "the coins are the same: nothing was compared"
    assert orders == [Drawn().bits().integers(0, 2, size=8, dtype=np.bool_).tolist()] * 3


@forking
def test_a_session_without_a_ledger_answers_in_its_own_process_alone() -> None:
    session = lc.Session(table(), cap=0.6, seed=1)
    for ask in (lambda: session.count(share=0.9), lambda: session.spent, lambda: session.certificate):
        told = said_by_a_fork(lambda ask=ask: repr(ask()))
        assert told.startswith("LeakcapError: this session has no ledger"), told
    assert session.count(share=0.9).number == session.history[-1].number
    assert session.spent.share == pytest.approx(0.9)


@pytest.fixture
def place(kind: str, tmp_path: Path, own_key: Path, request: pytest.FixtureRequest) -> str | None:
    if kind == "postgres":
        return str(request.getfixturevalue("database"))
    return f"sqlite:///{tmp_path}/ledger.db" if kind == "sqlite" else None


@forking
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_session_with_a_ledger_is_charged_for_all_its_children(place: str) -> None:
    session = lc.Session(table(), cap=0.6, ledger=place, retire=False)
    session.count(share=0.1)
    told = [said_by_a_fork(lambda share=share: repr(session.count(share=share))) for share in (0.4, 0.41, 0.42)]
    assert [one.split(":")[0].split("(")[0] for one in told] == ["Answer", "Answer", "BudgetError"]
    assert session.spent.share == pytest.approx(0.91)
    assert not session.count(share=0.05).again


@forking
@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"])
def test_a_child_of_a_function_gets_no_answer(place: str | None) -> None:
    """A function in blocks runs when coins have fallen, in the middle of a transaction."""
    session = lc.Session(table(), cap=0.6, ledger=place, analyst="ann", rows_per_unit=1)
    told, tells = os.pipe()
    parent = os.getpid()

    def forks(rows: Any) -> float:
        if os.getpid() == parent:
            child = os.fork()
            if child:
                os.waitpid(child, 0)
        return 0.5

    try:
        answer = repr(session.blocks(forks, blocks=2, bounds=(0, 1), share=0.1))
    except BaseException as error:
        answer = f"{type(error).__name__}: {error}"
    if os.getpid() != parent:
        os.write(tells, answer.encode() + b"\n")
        os._exit(0)
    os.close(tells)
    with os.fdopen(told) as pipe:
        lines = pipe.read().splitlines()
    assert lines
    assert all(line.startswith("LeakcapError") for line in lines), lines
    assert answer.startswith("Answer")
    assert session.count(share=0.1).number == session.history[-1].number == 3
    assert session.spent.share == pytest.approx(0.2)
