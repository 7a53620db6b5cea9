"""What waits in a buffer or among the garbage says nothing after the silence either: it would tell of a row."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from pathlib import Path

import pytest

from leakcap.simulate.silence import garbage_gone
from tests.leaks.last_words import GARBAGE

ROOT = Path(__file__).parents[2]
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


@pytest.fixture(scope="module")
def heard(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What was heard of functions that leave garbage, by kind of garbage and question."""
    folder = tmp_path_factory.mktemp("heard")
    streams, found = folder / "streams", folder / "found.json"
    with streams.open("w") as file:
        command = [sys.executable, "-m", "tests.leaks.last_words", str(streams), str(found)]
        subprocess.run(command, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT, check=True)
    told: dict[str, list[str]] = json.loads(found.read_text())
    return told


@pytest.mark.parametrize("ask", ["linear", "where", "blocks"])
@pytest.mark.parametrize("garbage", GARBAGE)
def test_garbage_of_a_function_has_no_last_word(garbage: str, ask: str, heard: dict[str, list[str]]) -> None:
    assert heard[f"{garbage}, {ask}"] == []


@pytest.mark.parametrize("garbage", GARBAGE)
def test_the_last_word_of_a_function_that_nobody_silences_is_heard(garbage: str, heard: dict[str, list[str]]) -> None:
    """The twin."""
    assert heard[f"{garbage}, with nobody's care"]


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
