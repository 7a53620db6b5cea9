"""Functions of one's own, by the name of their module."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from leakcap.tables.questions import ask
from tests.unit.tables.people import GAPS, PEOPLE, refused


@pytest.fixture
def module(tmp_path: Path, monkeypatch: Any) -> Callable[[str, str], None]:
    """Writes modules into the current folder, and forgets them afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def write(name: str, code: str) -> None:
        monkeypatch.delitem(sys.modules, name, raising=False)
        (tmp_path / f"{name}.py").write_text(code)

    return write


def test_a_function_of_ones_own_gets_the_table_without_the_unit(people: Path, module: Any) -> None:
    module(
        "own_a",
        "def f(table):\n    return table['age'].mean()\nclass Box:\n    @staticmethod\n    def g(t): return 1.0\n",
    )
    question = ask(people, "own_a:f", unit="who")
    assert list(question.data.columns) == [name for name in PEOPLE if name != "who"]
    assert question.fn(question.data) == pytest.approx(PEOPLE["age"].mean())
    assert (question.names, question.title) == (None, "own_a:f")
    assert list(ask(people, "own_a:Box.g", ["town", "age"]).data.columns) == ["town", "age"]


def test_a_function_of_ones_own_sees_missing_values_unless_they_are_dropped(table: Any, module: Any) -> None:
    module("own_b", "def f(table):\n    return float(len(table))\n")
    path = table(GAPS)
    assert ask(path, "own_b:f", ["a", "b"]).data["a"].isna().sum() == 1
    assert len(ask(path, "own_b:f", ["a", "b"], missing="drop").data) == 2


@pytest.mark.slow
def test_a_function_of_ones_own_runs_in_worker_processes(table: Any, module: Any, tmp_path: Path) -> None:
    people = table(PEOPLE, "people.parquet")
    module("own_c", "def f(table):\n    return table[['age']].mean()\n")
    code = (
        "import leakcap as lc; from pathlib import Path; from leakcap.tables.questions import ask\n"
        f"q = ask(Path({str(people)!r}), 'own_c:f', ['age'])\n"
        "if __name__ == '__main__':\n"
        "    p = lc.plan(q.fn, q.data, cap=lc.membership(.7), worlds=16, draws=256, backend='processes', workers=2)\n"
        "    print(p.worlds.m)\n"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.stdout.strip() == "16", done.stderr


MODULES: dict[str, tuple[str, str, str]] = {
    "no such function": ("def f(t): ...\n", "{}:g", "Its functions are: f"),
    "no function": ("value = 3\n", "{}:value", "of type int, not a function"),
    "fails": ("x = 1\ny = {}['SECRET']\n", "{}:f", "KeyError in line 2 of"),
    "fails further down": ("import json\njson.loads('SECRET')\n", "{}:f", "JSONDecodeError in line 2 of"),
    "does not parse": ("def f(:  # SECRET\n", "{}:f", "SyntaxError in line 1 of"),
    "ends": ("raise SystemExit('SECRET')\n", "{}:f", "SystemExit in line 1"),
    "needs another": ("import no_such_package\n", "{}:f", "needs no_such_package, which is not installed"),
    "named as a file": ("def f(t): ...\n", "{}.py:f", "without .py"),
    "without a function": ("def f(t): ...\n", "{}:", "does not read as module:function"),
    "not a name": ("def f(t): ...\n", "{}:f()", "does not read as module:function"),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules_that_cannot_be_used_are_told_apart(name: str, people: Path, module: Any) -> None:
    code, fn, words = MODULES[name]
    own = f"own_{list(MODULES).index(name)}"
    module(own, code)
    refused(words, lambda: ask(people, fn.format(own)))


def test_a_module_that_is_not_there_is_told(people: Path, module: Any) -> None:
    refused("no module absent_one.*holds absent_one.py", lambda: ask(people, "absent_one:f"))
