"""Functions and data are known again, and others are not taken for them."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import threading
import types
from collections.abc import Callable
from dataclasses import dataclass, make_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars
import pytest
import scipy.sparse as sp

import leakcap as lc
from leakcap.custody import fingerprint as fingerprints
from leakcap.custody.fingerprint import DataPrint, fingerprint, row_prints
from leakcap.worlds import Units
from tests.unit.custody.runs import (
    CALLS,
    SMALL,
    TABLE,
    X,
    counted,
)

# Functions


@dataclass
class Scaled:
    factor: float

    def __call__(self, x: Any) -> Any:
        return self.factor * counted(x)

    def method(self, x: Any) -> Any:
        return self.factor * counted(x)


def with_default(x: Any, factor: float = 2.0, *, shift: float = 0.0) -> Any:
    return factor * counted(x) + shift


def scaling(factor: float) -> Callable[[Any], Any]:
    return lambda x: factor * counted(x)


def wrapped(fn: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fn)
    def inner(*given: Any) -> Any:
        return fn(*given)

    return inner


def knows_a_module() -> Callable[[Any], Any]:
    import math

    return lambda x: math.sqrt(2) * counted(x)


FUNCTIONS: dict[str, Any] = {
    "a function": lambda: counted,
    "a lambda": lambda: lambda x: counted(x) + 1,
    "a partial": lambda: functools.partial(with_default, factor=3.0),
    "a partial of a lambda": lambda: functools.partial(lambda x, f: f * counted(x), f=3.0),
    "a bound method": lambda: Scaled(2.0).method,
    "a callable": lambda: Scaled(2.0),
    "a closure": lambda: scaling(3.0),
    "a decorated function": lambda: wrapped(counted),
    "numpy's": lambda: np.mean,
    "a closure with a module in it": knows_a_module,
}


@pytest.mark.parametrize("make", FUNCTIONS.values(), ids=list(FUNCTIONS))
def test_functions_of_all_kinds_are_known_again(make: Any, folder: Path) -> None:
    for _ in range(2):
        lc.plan(make(), X, checkpoint=folder, **SMALL)
    assert len(CALLS) in (0, 17)


def written(text: str, **names: Any) -> Callable[..., Any]:
    """A function as if read from a file that was changed in between."""
    space: dict[str, Any] = dict(names)
    exec(text, space)
    space["fn"].__module__ = "analysis"
    return space["fn"]


DIFFERENT: dict[str, tuple[Any, Any]] = {
    "constants": (written("def fn(x): return x + 1"), written("def fn(x): return x + 2")),
    "kinds of constants": (written("def fn(x): return x + 1"), written("def fn(x): return x + 1.0")),
    "sets": (written("def fn(x): return x in {1, 2}"), written("def fn(x): return x in {1, 3}")),
    "inner functions": (
        written("def fn(x): return [y + 1 for y in x]"),
        written("def fn(x): return [y + 2 for y in x]"),
    ),
    "names": (written("def fn(x): return x.mean()"), written("def fn(x): return x.median()")),
    "operations": (written("def fn(x): return x + 1"), written("def fn(x): return x - 1")),
    "defaults": (written("def fn(x, a=1): return a"), written("def fn(x, a=2): return a")),
    "keyword defaults": (written("def fn(x, *, a=1): return a"), written("def fn(x, *, a=2): return a")),
    "arguments": (functools.partial(with_default, factor=2.0), functools.partial(with_default, factor=3.0)),
    "methods of other objects": (Scaled(2.0).method, Scaled(3.0).method),
    "callables": (Scaled(2.0), Scaled(3.0)),
    "what was captured": (scaling(2.0), scaling(3.0)),
    "what was wrapped": (
        wrapped(written("def fn(x): return x + 1")),
        wrapped(written("def fn(x): return x + 2")),
    ),
    "functions": (np.mean, np.median),
    "what one person brings": (
        lc.additive(written("def fn(x): return x + 1")),
        lc.additive(written("def fn(x): return x + 2")),
    ),
    "what runs in blocks": (
        lc.blocks(written("def fn(x): return x + 1"), blocks=5, bounds=(0, 1)),
        lc.blocks(written("def fn(x): return x + 2"), blocks=5, bounds=(0, 1)),
    ),
    "bounds": (
        lc.blocks(np.median, blocks=5, bounds=(0, 1)),
        lc.blocks(np.median, blocks=5, bounds=(0, 2)),
    ),
    "data": (X, X + 1e-12),
    "shapes": (np.zeros((2, 3)), np.zeros((3, 2))),
    "types": (np.zeros(3), np.zeros(3, dtype=np.float32)),
    "a cell of a table": (TABLE, TABLE.assign(town=["here"] * 24)),
    "names of columns": (TABLE, TABLE.rename(columns={"a": "c"})),
    "sparse": (sp.csr_array(X), sp.csr_array(X + 1)),
    "lists": ([1.0, 2.0], [1.0, 3.0]),
    "text": (["a", "bc"], ["ab", "c"]),
    "numbers and text": ([1], ["1"]),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_fingerprints_differ_where_anything_differs(name: str) -> None:
    one, other = DIFFERENT[name]
    assert fingerprint(one) != fingerprint(other)
    assert fingerprint(one) == fingerprint(one)


def test_a_function_is_the_same_wherever_it_stands_in_its_file() -> None:
    one, other = written("def fn(x):\n  return x + 1"), written("\n\n# moved\n\ndef fn(x):\n\n  return x + 1")
    assert fingerprint(one) == fingerprint(other)


def test_a_changed_helper_is_another_function() -> None:
    one, other = (written(f"def help(x): return x + {k}\ndef fn(x): return help(x)") for k in (1, 2))
    assert fingerprint(one) != fingerprint(other)


SCRIPT = """
import functools, sys
import numpy as np, pandas as pd, scipy.sparse as sp
import leakcap as lc
from leakcap import stats
from leakcap.custody.fingerprint import fingerprint

X = np.arange(24.0).reshape(12, 2)
table = pd.DataFrame(X, columns=["a", "b"]).assign(town=[f"t{i % 3}" for i in range(12)], on=[True, False] * 6)
read = pd.read_csv(sys.argv[1])
names = {"anna", "berta", "carl", "dora"}
def fn(x, known=frozenset({"anna", "berta", "carl"})):
    return x in {"anna", "berta", "carl", "dora"} and names
def outer(captured):
    return lambda x: captured
for thing in (
    X, table, read, read[read["b"] > 3].reset_index(drop=True), sp.csr_array(X), list(map(tuple, X)), names, fn,
    outer(names), outer({"b": 1, "a": names}), functools.partial(stats.quantile, q=(0.25, 0.5)), np.mean,
    lc.membership(0.6), (lc.mutual_information(0.3), lc.any_inference(0.1, 0.3)), np.array(["x", None], dtype=object),
):
    print(fingerprint(thing))
"""


def test_fingerprints_are_the_same_in_every_process(tmp_path: Path) -> None:
    """Texts are hashed differently in each: sets and dicts of them come in another order."""
    TABLE.to_csv(tmp_path / "table.csv", index=False)
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, str(tmp_path / "script.py"), str(tmp_path / "table.csv")]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ | {"PYTHONHASHSEED": seed})
        for seed in ("1", "2")
    ]
    one, other = (process.communicate()[0].split() for process in running)
    assert len(one) == 15
    assert one == other


Nameless = make_dataclass("Nameless", ["mean"])
Nameless.__module__ = "types"  # where it cannot be found


def test_an_answer_whose_form_cannot_be_stored_is_a_clear_error(folder: Path) -> None:
    with pytest.raises(lc.InputError, match="define its classes and functions in a module"):
        lc.plan(lambda x: Nameless(x.mean()), X, checkpoint=folder, **SMALL)


def test_data_and_tasks_that_cannot_be_pickled_are_a_clear_error(folder: Path) -> None:
    records = [threading.Lock() for _ in range(24)]
    with pytest.raises(lc.InputError, match="pickled"):
        lc.plan(lambda x: 1.0, records, checkpoint=folder, **SMALL)
    task = lc.task(lambda masks: masks[:, :1], 0.9)
    with pytest.raises(lc.InputError, match=r"stored|pickled"):
        lc.plan(counted, X, checkpoint=folder, **(SMALL | {"cap": task}))


# Data are looked at once


def test_data_are_fingerprinted_once_for_the_run_and_for_the_release(monkeypatch: Any) -> None:
    looked: list[Any] = []
    contents = fingerprints._contents
    monkeypatch.setattr(fingerprints, "_contents", lambda value: looked.append(value) or contents(value))
    of = DataPrint((X, TABLE), units=np.arange(24))
    assert not looked, "not before it is asked for"
    first = of.of_run, of.of_rows, of.of_release
    assert first == (of.of_run, of.of_rows, of.of_release)
    assert sum(one is X for one in looked) == 1


def test_a_print_of_data_differs_where_they_or_their_units_do() -> None:
    one = DataPrint((X,))
    for other in (DataPrint((X + 1e-9,)), DataPrint((X, X))):
        assert one.of_run != other.of_run
    assert not one.of_release & DataPrint((X + 1e-9,)).of_release
    units = DataPrint((X,), np.arange(24))
    assert one.of_run != units.of_run
    assert one.of_release == units.of_release == DataPrint((X.copy(),)).of_release


def test_a_print_of_data_tells_whose_rows_are_whose() -> None:
    """The same rows and the same people, each with rows of another: other answers, and other worlds."""
    whose = np.arange(24) // 2
    prints = {DataPrint((X,), Units.of(24, ids).owners).of_run for ids in (whose, whose[::-1], np.roll(whose, 1))}
    assert len(prints) == 3
    assert (
        DataPrint((X,), Units.of(24, whose).owners).of_run == DataPrint((X,), Units.of(24, whose * 1.0).owners).of_run
    )
    texts = Units.of(24, whose.astype(str)).owners  # the same people, in another order
    assert DataPrint((X,), texts).of_run not in prints
    assert DataPrint((X,), Units.of(24, None).owners).of_run == DataPrint((X,)).of_run


def test_each_data_argument_that_tells_whose_it_is_has_a_print_of_its_own() -> None:
    """The same table under another target is the same people; the same few classes may be those of others."""
    kinds, numbers = np.arange(24) % 3, np.arange(240.0)
    assert DataPrint((X, kinds)).of_release == DataPrint((X, kinds == 1)).of_release
    assert not DataPrint((X, kinds)).of_release & DataPrint((X + 1, kinds)).of_release
    assert DataPrint((np.ones((240, 1)), numbers)).of_release & DataPrint((np.zeros((240, 1)), numbers)).of_release
    assert (
        DataPrint((kinds,)).of_release == DataPrint((kinds.copy(),)).of_release != DataPrint((kinds[::-1],)).of_release
    )


@pytest.mark.parametrize(
    "make",
    [np.asarray, lambda x: x.tolist(), pd.DataFrame, polars.DataFrame],
    ids=["arrays", "lists", "pandas", "polars"],
)
def test_rows_are_known_again_among_others_and_in_any_order(make: Any) -> None:
    whole = row_prints(make(X))
    assert len(whole) == len(np.unique(X, axis=0))
    assert np.isin(row_prints(make(X[::-2])), whole).all()
    assert not np.isin(row_prints(make(X + 1e-9)), whole).any()


def test_what_has_no_rows_to_look_at_has_one_print() -> None:
    known = row_prints(sp.csr_array(X))
    assert len(known) == 1 and known == row_prints(sp.csr_array(X)) != row_prints(sp.csr_array(X + 1))
    assert len(row_prints([threading.Lock()])) == 1


def test_data_that_cannot_be_pickled_are_known_as_an_object_but_by_no_checkpoint() -> None:
    lock = threading.Lock()
    one, other = DataPrint(([lock],)), DataPrint(([threading.Lock()],))
    assert one.of_release != other.of_release
    with pytest.raises(lc.InputError, match="pickled"):
        _ = one.of_run


# Code that a function is given


VERSION = """
import functools

def helper(x): return x + {0}
def given(x, g=None): return g(x)
def by_default(x, g=helper): return g(x)
def by_keyword(x, *, g=helper): return g(x)
def capturing(things): return lambda x: things

class Fitted:
    def __call__(self, x): return self.shifted(x)
    def method(self, x): return self.shifted(x)
    def shifted(self, x): return x + {0}

class Inherited(Fitted): pass

@functools.lru_cache
def cached(x): return x + {0}
def calls_cached(x): return cached(x)
"""
GIVEN = [
    "functools.partial(given, g=helper)",
    "functools.partial(map, helper)",
    "capturing([helper])",
    "capturing({'steps': (1, helper)})",
    "by_default",
    "by_keyword",
    "Fitted()",
    "Fitted().method",
    "Inherited()",
    "calls_cached",
]


@pytest.mark.parametrize("made", GIVEN)
def test_other_code_behind_the_same_name_is_seen(made: str, monkeypatch: Any) -> None:
    """Somebody mends a helper and resumes: answers of two functions would be taken for those of one."""
    prints = []
    for number in (1, 1, 2):
        module = types.ModuleType("prepared")
        monkeypatch.setitem(sys.modules, "prepared", module)
        exec(VERSION.format(number), module.__dict__)
        prints.append(fingerprint(eval(made, module.__dict__)))
    assert prints[0] == prints[1] != prints[2]
