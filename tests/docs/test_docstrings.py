"""Every public name is documented where a reader of the source, or of the reference, finds it.

Docstrings are read from the source (`ast`), not from the running objects: what a program puts together at run time is
no text to somebody who reads the file, nor to the tool that builds the reference.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

NAMESPACES = (
    "leakcap",
    "leakcap.audit",
    "leakcap.caps",
    "leakcap.convert",
    "leakcap.datasets",
    "leakcap.errors",
    "leakcap.estimators",
    "leakcap.labels",
    "leakcap.local",
    "leakcap.stats",
    "leakcap.synthetic",
    "leakcap.testing",
)
# Made by the library and never by its users, who read what they hold: arguments of `__init__` are no public matter.
MADE_BY_US = {"Plan", "TablePlan"}


@dataclass(frozen=True)
class Public:
    """A public callable: its name, where its words stand, and what it takes."""

    name: str
    words: str
    takes: tuple[str, ...]

    def __str__(self) -> str:
        return self.name


@cache
def tree_of(module: str) -> dict[str, ast.AST]:
    """Classes and functions of a module by qualified name."""
    found: dict[str, ast.AST] = {}

    def walk(body: list[ast.stmt], above: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                found.setdefault(above + node.name, node)
                walk(node.body, f"{above}{node.name}.")

    walk(ast.parse(Path(str(sys.modules[module].__file__)).read_text()).body, "")
    return found


def words_of(module: str, name: str) -> str:
    """The docstring as it stands in the source; empty where there is none."""
    node = tree_of(module).get(name)
    return "" if node is None else ast.get_docstring(node) or ""  # type: ignore[arg-type]


def lineage(thing: type) -> list[type]:
    """A class and its bases, as far as they are ours."""
    return [one for one in thing.__mro__ if one.__module__.startswith("leakcap")]


def arguments(thing: Any) -> tuple[str, ...]:
    found = inspect.signature(thing).parameters.values()
    return tuple(one.name for one in found if one.name not in ("self", "cls") and not one.name.startswith("_"))


def methods(thing: type) -> Iterator[tuple[type, str, Any]]:
    """Public methods and properties, each with the class that defines it; an override without words has its base's."""
    for name in sorted({name for one in lineage(thing) for name in vars(one) if not name.startswith("_")}):
        homes = [one for one in lineage(thing) if f"{one.__qualname__}.{name}" in tree_of(one.__module__)]
        spoken = [one for one in homes if words_of(one.__module__, f"{one.__qualname__}.{name}")]
        if homes:
            home = (spoken or homes)[0]
            yield home, name, inspect.getattr_static(home, name)


def callables() -> Iterator[Public]:
    for space in NAMESPACES:
        module = importlib.import_module(space)
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isclass(thing) and thing.__module__.startswith("leakcap"):
                yield from of_class(f"{space}.{name}", thing)
            elif inspect.isfunction(thing):
                yield Public(f"{space}.{name}", words_of(thing.__module__, thing.__qualname__), arguments(thing))


def of_class(name: str, thing: type) -> Iterator[Public]:
    where = thing.__module__, thing.__qualname__
    own = words_of(*where)
    simple = issubclass(thing, BaseException) or thing.__name__ in MADE_BY_US or inspect.isabstract(thing)
    takes = () if simple else arguments(thing)
    more = "".join(words_of(one.__module__, f"{one.__qualname__}.__init__") for one in lineage(thing)[:1])
    yield Public(name, own and f"{own}\n{more}", takes)
    for home, method, found in methods(thing):
        function = getattr(
            found, "__func__", getattr(found, "fn", found)
        )  # class methods; scikit-learn's `available_if`
        taken = arguments(function) if inspect.isfunction(function) else ()
        words = words_of(home.__module__, f"{home.__qualname__}.{method}")
        yield Public(f"{name}.{method}", words, taken)


PUBLIC = {one.name: one for one in callables()}


def section(words: str, *titles: str) -> set[str]:
    """Names that are explained under one of these titles: `name:`, or several with commas between."""
    found: set[str] = set()
    for title in titles:
        for block in re.findall(rf"^{title}:\n((?:[ ]+.*\n?|\n)+)", words + "\n", re.MULTILINE):
            for names in re.findall(r"^ {4}(\*{0,2}\w+(?:, \*{0,2}\w+)*):", block, re.MULTILINE):
                found |= {name.strip(" *") for name in names.split(",")}
    return found


def lacking(one: Public) -> set[str]:
    """The arguments that the docstring does not explain."""
    return set(one.takes) - section(one.words, "Args", "Attributes")


@pytest.mark.parametrize("one", PUBLIC.values(), ids=str)
def test_a_public_callable_says_what_it_does_and_what_it_takes(one: Public) -> None:
    assert one.words.strip(), "no docstring in the source"
    assert not lacking(one), f"not under Args: {', '.join(sorted(lacking(one)))}"


def test_estimators_list_what_a_fit_leaves() -> None:
    from leakcap import estimators, synthetic
    from leakcap.estimators.base import PrivateEstimator

    spaces: tuple[ModuleType, ...] = (estimators, synthetic)
    fitted = [getattr(space, name) for space in spaces for name in space.__all__]
    fitted = [one for one in fitted if inspect.isclass(one) and issubclass(one, PrivateEstimator)]
    assert len(fitted) == 18
    for one in fitted:
        found = section(words_of(one.__module__, one.__qualname__), "Attributes")
        assert {"certificate_", "plan_"} <= found, one.__name__


@pytest.mark.parametrize("space", NAMESPACES)
def test_a_namespace_says_what_it_is_for(space: str) -> None:
    module = importlib.import_module(space)
    assert ast.get_docstring(ast.parse(Path(str(module.__file__)).read_text()))


def test_a_missing_argument_is_noticed() -> None:
    words = "It does.\n\nArgs:\n    first: one.\n        More: more.\n    second, third: two.\n\nReturns:\n    it: x."
    assert section(words, "Args") == {"first", "second", "third"}
    assert section("Args: first, second", "Args") == set()
