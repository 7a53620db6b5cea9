"""A user's own function, named `module:function`."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from leakcap.errors import InputError, LeakcapError, OutputError
from leakcap.kernels.additive import Additive
from leakcap.kernels.blocks import Blocks
from leakcap.simulate.silence import hushed

__all__ = ["Silent", "load", "silent"]


@dataclass(frozen=True)
class Silent:
    """A function whose prints and warnings are not heard: they may quote the data, and end in some log."""

    __wrapped__: Callable[..., Any]

    def __call__(self, *rows: Any) -> Any:
        with hushed():
            return self.__wrapped__(*rows)


@dataclass(frozen=True)
class _SilentPart(Silent):
    """A part of a function that is asked about single people, or some: its errors lose their text, too."""

    part: str

    def __call__(self, *rows: Any) -> Any:
        try:
            return super().__call__(*rows)
        except LeakcapError:
            raise
        except Exception as error:
            kind = type(error).__name__
        raise OutputError(
            f"{self.part} of your function raised {kind} (its text is withheld: it may quote the data). Try it on the "
            "rows of single people, and make it return a fixed value where it cannot answer"
        )


def silent(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function without its prints and warnings; one that adds up what people bring still says so."""
    if isinstance(function, Additive):
        finish = None if function.finish is None else _SilentPart(function.finish, "finish")
        return replace(function, contributions=_SilentPart(function.contributions, "contributions"), finish=finish)
    if isinstance(function, Blocks):
        return replace(function, fn=_SilentPart(function.fn, "fn"))
    return function if _of_stats(function) else Silent(function)


def _of_stats(function: Any) -> bool:
    """Whether it is one of `leakcap.stats`, which print nothing, also with something bound to it."""
    while isinstance(function, partial) and not function.args:
        function = function.func
    named = function if hasattr(function, "__qualname__") else type(function)
    return str(getattr(named, "__module__", "")).startswith("leakcap.stats.")


def load(name: str) -> Callable[..., Any]:
    """The function that `module:function` names; modules are looked up in the current folder first."""
    module_name, _, attributes = name.partition(":")
    if module_name.endswith(".py"):
        raise InputError(f"name the module without .py and its folder: --fn {Path(module_name).stem}:{attributes}")
    if not attributes or not all(part.isidentifier() for part in f"{module_name}.{attributes}".split(".")):
        raise InputError(
            f"--fn {name} does not read as module:function, such as analysis:fit for the function fit in analysis.py"
        )
    target: Any = _module(module_name)
    for part in attributes.split("."):
        if not hasattr(target, part):
            raise InputError(f"module {module_name} has no {attributes!r}: check its spelling. {_functions(target)}")
        target = getattr(target, part)
    if not callable(target):
        raise InputError(
            f"{name} is of type {type(target).__name__}, not a function. {_functions(_module(module_name))}"
        )
    return target  # type: ignore[no-any-return]


def _module(name: str) -> Any:
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)  # worker processes inherit the path, and find the module too
    importlib.invalidate_caches()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        absent = error.name is not None and (name == error.name or name.startswith(f"{error.name}."))
        why = f"it needs {error.name}, which is not installed" if error.name else _where(error)
    except (Exception, SystemExit) as error:
        absent, why = False, _where(error)
    if absent:
        raise InputError(
            f"there is no module {name}: go to the folder that holds {name.split('.', maxsplit=1)[0]}.py, or install it"
        )
    raise InputError(
        f"module {name} cannot be imported: {why}. The text of the error is withheld, it may quote data; to see it, "
        f"run python -c 'import {name}'"
    )


def _where(error: BaseException) -> str:
    """Kind and place of an error, without its text."""
    kind = type(error).__name__
    if isinstance(error, SyntaxError) and error.filename:
        return f"{kind} in line {error.lineno} of {Path(error.filename).name}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__)[1:] if "importlib" not in frame.filename]
    near = [frame for frame in frames if Path(frame.filename).is_relative_to(os.getcwd())] or frames
    return f"{kind} in line {near[-1].lineno} of {Path(near[-1].filename).name}" if near else kind


def _functions(module: Any) -> str:
    own = getattr(module, "__name__", None)
    names = [
        name
        for name, value in vars(module).items()
        if callable(value) and not name.startswith("_") and getattr(value, "__module__", None) == own
    ]
    return f"Its functions are: {', '.join(names[:12])}" if names else "It has no functions of its own"
