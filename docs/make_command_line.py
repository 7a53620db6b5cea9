"""Make docs/reference/command-line.md from the commands themselves: `python docs/make_command_line.py`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_type_hints

from typer.models import ArgumentInfo, OptionInfo, ParameterInfo

from leakcap.cli import app

PAGE = Path(__file__).parent / "reference" / "command-line.md"
HEAD = """<!-- Made by `python docs/make_command_line.py`. Do not edit by hand. -->

# The command line

`leakcap COMMAND --help` says the same in the terminal. `python -m leakcap` works as well, and
`leakcap --install-completion` lets the shell complete commands and options.
"""
EXIT_CODES = """## Exit codes

| code | means |
| ---: | --- |
| 0 | done |
| 1 | a check failed, or an audit refuted a certificate |
| 2 | a wrong command or wrong input |
| 3 | this cannot be released as asked |
| 4 | released already |
| 70 | a defect of leakcap |
| 130 | stopped by the user |
"""
KINDS = {Path: "PATH", float: "NUMBER", int: "NUMBER", str: "TEXT"}


@dataclass(frozen=True)
class Parameter:
    """An argument or an option, as a reader types it."""

    named: str
    words: str
    default: str
    is_argument: bool


def commands() -> dict[str, Callable[..., Any]]:
    """The commands by name, in the order of `leakcap --help`."""
    own = {str(one.name): one.callback for one in app.registered_commands if one.callback is not None}
    for group in app.registered_groups:
        assert group.typer_instance is not None
        inner = group.typer_instance.registered_commands
        own |= {f"{group.name} {one.name}": one.callback for one in inner if one.callback is not None}
    return own


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(_command(name, one) for name, one in commands().items()), EXIT_CODES])


def parameters(command: Callable[..., Any]) -> Iterator[Parameter]:
    """Arguments and options of a command, from its signature."""
    hints = get_type_hints(command, include_extras=True)
    for name, given in inspect.signature(command).parameters.items():
        for info in getattr(hints[name], "__metadata__", ()):
            if isinstance(info, ParameterInfo) and not info.hidden:
                kind = _kind(get_args(hints[name])[0])
                named = _argument(name, info) if isinstance(info, ArgumentInfo) else _option(name, info, kind)
                default = _default(given.default, kind)
                yield Parameter(named, info.help or "", default, isinstance(info, ArgumentInfo))


def _command(name: str, command: Callable[..., Any]) -> str:
    known = sorted(parameters(command), key=lambda one: not one.is_argument)
    usage = " ".join(["leakcap", name, *(one.named for one in known if one.is_argument), "[OPTIONS]"])
    rows = [f"| `{one.named}` | {one.words} | {one.default} |" for one in known]
    table = ["| argument or option | meaning | if left out |", "| --- | --- | --- |", *rows]
    return "\n".join([f"## leakcap {name}", "", _words(command), "", "```text", usage, "```", "", *table, ""])


def _words(command: Callable[..., Any]) -> str:
    return inspect.cleandoc(command.__doc__ or "")


def _argument(name: str, info: ParameterInfo) -> str:
    return str(info.metavar or name).upper()


def _option(name: str, info: ParameterInfo, kind: type) -> str:
    spelt = info.param_decls if isinstance(info, OptionInfo) and info.param_decls else [f"--{name.replace('_', '-')}"]
    takes = "" if kind is bool else f" {info.metavar or KINDS.get(kind, 'VALUE')}"
    return f"{', '.join(spelt)}{takes}"


def _kind(annotation: Any) -> type:
    """`list[str] | None` holds texts."""
    inner = [one for one in get_args(annotation) if one is not NoneType]
    return _kind(inner[0]) if inner else annotation


def _default(default: Any, kind: type) -> str:
    if default is inspect.Parameter.empty:
        return "needed"
    return "-" if kind is bool or default in (None, "") else f"`{default}`"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
