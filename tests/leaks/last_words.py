"""Functions that leave garbage with a last word, asked in a process of their own, and what was heard of them.

Such garbage is looked for among all that a process holds: here that is little, beside what a process of tests holds.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import warnings
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

import leakcap as lc

__all__ = ["ASKED", "GARBAGE", "main"]

PEOPLE = 8


class Talks:
    """Garbage that only a search for circles finds, with a last word."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        print("a cell")


class Fails(Talks):
    def __del__(self) -> None:
        raise ValueError("a cell")


class LeavesMore(Talks):
    def __del__(self) -> None:
        Talks()


def grown_old() -> None:
    kept = Talks()
    gc.collect()
    del kept


async def never_awaited() -> None:
    raise AssertionError


def forgotten() -> None:
    circle: list[Any] = [never_awaited()]
    circle.append(circle)


GARBAGE: dict[str, Callable[[], Any]] = {
    "a last word": Talks,
    "an old one": grown_old,
    "an error": Fails,
    "garbage of garbage": LeavesMore,
    "a coroutine": forgotten,
}
ASKED: dict[str, Callable[[lc.Session, Callable[..., Any]], Any]] = {
    "linear": lambda session, fn: session.linear(fn, bounds=(0, 1)),
    "where": lambda session, fn: session.count(where=fn),
    "blocks": lambda session, fn: session.blocks(fn, blocks=2, bounds=(0, 1)),
    "with nobody's care": lambda session, fn: fn(pd.DataFrame({"x": [3.0]})),  # planted: what must be heard
}


def heard(garbage: str, ask: str, streams: str) -> list[str]:
    """What came out of errors of destructors, warnings and both streams of the process, which lead to this file."""
    session = lc.Session(
        pd.DataFrame({"id": np.arange(PEOPLE), "x": np.arange(PEOPLE) * 1.0}),
        unit="id",
        rows_per_unit=1,
        cap=lc.pool_membership(0.6),
    )

    def fn(rows: pd.DataFrame) -> float:
        if (rows["x"] == 3).any():
            GARBAGE[garbage]()
        return 1.0

    words: list[str] = []
    sys.unraisablehook = lambda error: words.append(f"an error: {error.exc_value}")
    before = os.path.getsize(streams)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        ASKED[ask](session, fn)
        while gc.collect():
            pass
    words += [f"a warning: {one.message}" for one in warned if "awaited" in str(one.message)]
    sys.stdout.flush()
    with open(streams, encoding="utf-8") as said:
        said.seek(before)
        return [*words, *said.read().splitlines()]


def main(streams: str, found: str) -> None:
    gc.collect()
    told = {f"{garbage}, {ask}": heard(garbage, ask, streams) for garbage, ask in product(GARBAGE, ASKED)}
    with open(found, "w", encoding="utf-8") as file:
        json.dump(told, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
