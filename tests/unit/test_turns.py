"""Where several processes share the tests: the longest files first, and each whole."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.turns import LONGEST, SHARED, in_turn, processes, turn_of

ROOT = Path(__file__).parents[2]


@dataclass
class Item:
    nodeid: str


def test_whatever_comes_first_is_there() -> None:
    assert len(set(LONGEST)) == len(LONGEST)
    assert [one for one in (*LONGEST, *SHARED) if not (ROOT / one).exists()] == []
    assert [one for one in LONGEST if turn_of(f"{one}::test") not in (one, *SHARED)] == []


def test_the_longest_come_first_then_those_of_many_tests_and_none_is_torn_apart() -> None:
    small = ["tests/unit/a.py::one", "tests/unit/b.py::one", "tests/unit/b.py::two"]
    long = [f"{LONGEST[2]}::b", f"{LONGEST[0]}::b", f"{LONGEST[0]}::a"]
    shared = [f"{SHARED[0]}/b.py::z", f"{SHARED[0]}/a.py::y"]
    items = [Item(name) for name in (small[0], long[0], shared[0], small[1], long[1], shared[1], small[2], long[2])]
    in_turn(items)
    assert [one.nodeid for one in items] == [*long[1:], *shared, long[0], *small[1:], small[0]]
    assert processes() >= 2
