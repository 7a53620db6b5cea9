"""Make docs/guarantees.md from docs/guarantees.toml: `python docs/make_guarantees.py`.

Tests are named by their functions alone; their files are looked up here, so that a test may move house.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "docs" / "guarantees.toml"
PAGE = ROOT / "docs" / "guarantees.md"
HEAD = """---
hide:
  - toc
---

<!-- Made by `python docs/make_guarantees.py` from docs/guarantees.toml. Do not edit by hand. -->

# Guarantees

Every promise of leakcap in one sentence, with its proof (or the code that keeps it, where no theorem is needed) and
tests that would fail if it were false. Who the attacker is, and what is not promised, is in the
[threat model](threat-model.md); a change of any promise is listed under *Guarantees* in the changelog.
"""


def groups() -> list[dict[str, Any]]:
    """The promises, as the file groups them."""
    return tomllib.loads(SOURCE.read_text(encoding="utf-8"))["group"]


def promises() -> list[dict[str, Any]]:
    return [promise for group in groups() for promise in group["promise"]]


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for group in groups():
        rows = [_row(promise) for promise in group["promise"]]
        head = "| promise | proof | kept by | tests |\n| --- | --- | --- | --- |"
        parts.append("\n".join([f"## {group['title']}", "", group["intro"], "", head, *rows, ""]))
    return "\n".join(parts)


def _row(promise: dict[str, Any]) -> str:
    proofs = promise.get("proof", [])
    links = ", ".join(f"[{name.replace('-', ' ')}](proofs/{name}.md)" for name in proofs) or "-"
    kept = sorted({room for name in proofs for room in rooms_that_prove()[name]} | set(promise.get("code", [])))
    tests = "<br>".join(f"`{file}::{name}`" for name in promise["tests"] for file in homes().get(name, ["?"]))
    return f"| {promise['says']} | {links} | {', '.join(f'`{room}`' for room in kept)} | {tests} |"


@cache
def homes() -> dict[str, list[str]]:
    """For every test function, the files that have one of that name."""
    found = defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for name in re.findall(r"^def (test_\w+)\(", path.read_text(encoding="utf-8"), re.MULTILINE):
            found[name].append(path.relative_to(ROOT).as_posix())
    return dict(found)


@cache
def rooms_that_prove() -> dict[str, set[str]]:
    """For every proof page, the modules with a function that wears `@proves` of it."""
    package, found = ROOT / "src" / "leakcap", defaultdict(set)
    for path in sorted(package.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "@proves" in text else ():
            for page in _pages(getattr(node, "decorator_list", [])):
                found[page].add(path.relative_to(package).as_posix())
    return found


def _pages(decorators: list[ast.expr]) -> list[str]:
    calls = [one for one in decorators if isinstance(one, ast.Call) and ast.unparse(one.func).endswith("proves")]
    return [word.value for call in calls for word in call.args if isinstance(word, ast.Constant)]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
