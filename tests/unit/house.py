"""The package as a house: its modules, and who imports whom, lazy and type-only imports included."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import leakcap

PACKAGE = Path(leakcap.__file__).parent

# From the ground up: each room imports only from those before it.
ORDER = (
    "errors",
    "version",
    "ground",
    "caps",
    "datasets",
    "convert",
    "certificates",
    "worlds",
    "kernels",
    "stats",
    "custody",
    "cluster",
    "simulate",
    "leakage",
    "noise",
    "modes",
    "planning",
    "sessions",
    "estimators",
    "synthetic",
    "labels",
    "obfuscation",
    "local",
    "audit",
    "tables",
    "sql",
    "report",
    "testing",
    "server",
    "cli",
)
DOORS = {  # the arrows against the order: a record asks for its page, a session for its answers in SQL
    "leakcap.certificates.display": "leakcap.report.pages",
    "leakcap.sessions.asked": "leakcap.sql.asking",
}


@cache
def modules() -> dict[str, ast.Module]:
    """Every module of the package by its dotted name, parsed."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(("leakcap", *path.relative_to(PACKAGE).with_suffix("").parts))
        found[name.removesuffix(".__init__")] = ast.parse(path.read_text())
    return found


@cache
def nodes(tree: ast.Module) -> tuple[ast.AST, ...]:
    """Everything in a module: many tests walk through it."""
    return tuple(ast.walk(tree))


@cache
def packages() -> frozenset[str]:
    folders = (path.parent.relative_to(PACKAGE) for path in PACKAGE.rglob("__init__.py"))
    return frozenset(".".join(("leakcap", *folder.parts)) for folder in folders)


def room_of(module: str) -> str:
    """The folder or file directly under the package."""
    return module.split(".")[1] if "." in module else ""


def imports_of(tree: ast.Module) -> Iterator[tuple[str, str | None]]:
    """`(module, name)` of everything imported from the package, wherever it stands; name None for `import x.y`."""
    for node in nodes(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "leakcap":
            assert not node.level
            for alias in node.names:
                yield node.module, alias.name
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] == "leakcap":
                    yield alias.name, None


@cache
def arrows() -> frozenset[tuple[str, str]]:
    """`(importer, imported)` modules; the facade and the entry point import from everywhere and are left out."""
    found = set()
    for importer, tree in modules().items():
        if importer in ("leakcap", "leakcap.__main__"):
            continue
        for module, name in imports_of(tree):
            inner = f"{module}.{name}"
            imported = inner if inner in modules() else module
            if imported != importer:
                found.add((importer, imported))
    return frozenset(found)


def circles(edges: frozenset[tuple[str, str]]) -> list[set[str]]:
    """Sets of modules that can reach each other, by repeatedly taking away what imports nothing, or is not imported."""
    left = set(edges)
    while True:
        importers, imported = {a for a, _ in left}, {b for _, b in left}
        kept = {(a, b) for a, b in left if a in imported and b in importers}
        if kept == left:
            break
        left = kept
    found: list[set[str]] = []
    for start in sorted({a for a, _ in left}):
        if not any(start in circle for circle in found):
            circle = _reached(start, left) & _reached(start, {(b, a) for a, b in left})
            if circle:
                found.append(circle)
    return found


def _reached(start: str, edges: set[tuple[str, str]]) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        here = waiting.pop()
        for a, b in edges:
            if a == here and b not in seen:
                seen.add(b)
                waiting.append(b)
    return seen
