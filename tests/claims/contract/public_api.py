"""The public contract: every public name with its signature and public members.

`python -m tests.claims.contract.public_api` adds new names to the stored list; it never takes one away.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
from pathlib import Path
from typing import Any

STORED = Path(__file__).with_name("public_api.json")
NAMESPACES = (
    "",
    "audit",
    "caps",
    "convert",
    "datasets",
    "errors",
    "estimators",
    "labels",
    "local",
    "obfuscation",
    "stats",
    "synthetic",
    "testing",
)
HANDED_OUT = ("leakcap.Plan",)  # made by the library alone: its constructor is no promise


def signature_of(thing: Any) -> list[str]:
    """Parameters in order: `name`, `name=default`, `*name`; after `*` by keyword only."""
    try:
        parameters = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return []
    return [_shown(parameter) for parameter in parameters]


def _shown(parameter: inspect.Parameter) -> str:
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    keyword = "by keyword: " if parameter.kind == parameter.KEYWORD_ONLY else ""
    default = parameter.default
    if default is parameter.empty:
        return f"{keyword}{stars}{parameter.name}"
    plain = default is None or isinstance(default, (bool, int, float, str, tuple))
    shown = repr(default) if plain else f"<{type(default).__name__}>"
    return f"{keyword}{parameter.name}={shown}"


def public_api() -> dict[str, Any]:
    """Every public name: what kind of thing it is, its signature, and of classes the public members with theirs."""
    api: dict[str, Any] = {}
    for namespace in NAMESPACES:
        module = importlib.import_module(f"leakcap.{namespace}".rstrip("."))
        for name in module.__all__:
            _enter(api, f"{module.__name__}.{name}", getattr(module, name))
    return api


def _enter(api: dict[str, Any], where: str, thing: Any) -> None:
    if inspect.ismodule(thing):
        api[where] = {"kind": "module"}
    elif inspect.isclass(thing):
        api[where] = {"kind": "class", "signature": [] if where in HANDED_OUT else signature_of(thing)}
        for name, member in sorted(_members(thing).items()):
            api[f"{where}.{name}"] = member
    elif callable(thing):
        api[where] = {"kind": "function", "signature": signature_of(thing)}
    else:
        api[where] = {"kind": "value"}


def _members(cls: type) -> dict[str, Any]:
    members: dict[str, Any] = {field.name: {"kind": "attribute"} for field in _fields(cls)}
    for parent in reversed(cls.__mro__):
        if not parent.__module__.startswith("leakcap"):
            continue
        for name, member in vars(parent).items():
            if name.startswith("_"):
                continue
            called = inspect.isfunction(member) or isinstance(member, (classmethod, staticmethod))
            members[name] = (
                {"kind": "method", "signature": signature_of(getattr(cls, name))} if called else {"kind": "attribute"}
            )
    return members


def _fields(cls: type) -> list[Any]:
    found = dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ()
    return [field for field in found if not field.name.startswith("_")]


def stored_api() -> dict[str, Any]:
    return json.loads(STORED.read_text())


def broken(stored: dict[str, Any], present: dict[str, Any]) -> list[str]:
    """What was promised and does not hold: names that are gone, calls that no longer work."""
    lost = [f"{where} is gone" for where in stored if where not in present]
    for where, promised in stored.items():
        found = present.get(where)
        if found is None:
            continue
        if found["kind"] != promised["kind"]:
            lost.append(f"{where} was a {promised['kind']}, is a {found['kind']}")
        elif "signature" in promised:
            lost += [f"{where}: {change}" for change in _changes(promised["signature"], found["signature"])]
    return lost


def _changes(old: list[str], new: list[str]) -> list[str]:
    """Parameters may be added at the end or by keyword, and only with a default."""
    positional = lambda names: [name for name in names if not name.startswith(("by keyword: ", "*"))]  # noqa: E731
    lost = [f"parameter {name!r} is gone or changed" for name in old if name not in new]
    if positional(new)[: len(positional(old))] != positional(old):
        lost.append("the order of its parameters has changed")
    added = [name for name in new if name not in old]
    lost += [f"new parameter {name!r} has no default" for name in added if "=" not in name and "*" not in name]
    return lost


if __name__ == "__main__":
    known = stored_api() if STORED.exists() else {}
    if problems := broken(known, public_api()):
        raise SystemExit("\n".join(["nothing stored: the contract is broken", *problems]))
    STORED.write_text(json.dumps({**public_api(), **known}, indent=0, sort_keys=True) + "\n")
