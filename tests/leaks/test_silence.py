"""What waits in a buffer or among the garbage says nothing after the silence either: it would tell of a row."""

from __future__ import annotations

import gc
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakcap as lc
from leakcap.simulate.silence import garbage_gone

PEOPLE = 8
BUFFERED = """
import ctypes, gc, sys
from leakcap.simulate.silence import each_unheard, unheard

library = ctypes.CDLL(None)

class Talks:
    def __init__(self):
        self.itself = self

    def __del__(self):
        print("a cell")

def old_garbage():
    kept = Talks()
    gc.collect()

WORDS = {
    "Python": lambda: sys.__stdout__.write("a cell"),
    "Python's errors": lambda: sys.__stderr__.write("a cell"),
    "bytes": lambda: sys.__stdout__.buffer.write(b"a cell"),
    "C": lambda: library.printf(b"a cell"),
    "garbage": lambda: Talks() and None,
    "old garbage": old_garbage,
    "an error of garbage": lambda: Talks().nothing,
}
gc.disable()  # or garbage might go by chance
for name, say in WORDS.items():
    print("Python before", name)
    library.printf(f"C before {name}\\n".encode())
    unheard(say)
    each_unheard(lambda _: say(), [1, 2])
    gc.collect()
assert gc.get_freeze_count() == 0
print("after")
"""
CASES = ("Python", "Python's errors", "bytes", "C", "garbage", "old garbage", "an error of garbage")


@pytest.mark.skipif(sys.platform == "win32", reason="C prints by another library there")
def test_what_waits_in_a_buffer_is_not_heard_and_what_was_said_before_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    heard = tmp_path / "heard"
    with heard.open("w") as file:  # nothing waits where a terminal listens
        subprocess.run([sys.executable, "-c", BUFFERED], stdout=file, stderr=subprocess.STDOUT, check=True, timeout=100)
    said = [f"{who} before {name}" for name in CASES for who in ("Python", "C")]
    assert heard.read_text().splitlines() == [*said, "after"]


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
}


@pytest.mark.parametrize("ask", ASKED)
@pytest.mark.parametrize("garbage", GARBAGE)
def test_garbage_of_a_function_has_no_last_word(
    garbage: str, ask: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
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

    errors: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", errors.append)
    gc.collect()
    capfd.readouterr()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        ASKED[ask](session, fn)
        gc.collect()
    assert not errors
    assert not [one for one in warned if "awaited" in str(one.message)]
    assert capfd.readouterr() == ("", "")


def test_garbage_of_before_is_left_alone_and_that_of_inside_goes() -> None:
    gone: list[str] = []

    class Speaks:
        def __init__(self, name: str) -> None:
            self.name, self.circle = name, self

        def __del__(self) -> None:
            gone.append(self.name)

    hook, on = sys.unraisablehook, gc.isenabled()
    gc.disable()
    try:
        Speaks("before")
        with garbage_gone():
            Speaks("inside")
            assert not gone and sys.unraisablehook is not hook
        assert gone == ["inside"] and sys.unraisablehook is hook
        assert gc.get_freeze_count() == 0
    finally:
        if on:
            gc.enable()
    gc.collect()
    assert gone == ["inside", "before"]
