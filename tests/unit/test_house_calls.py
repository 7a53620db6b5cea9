"""How rooms of the package speak to each other: by keyword past four arguments, by names without an underscore, and
with one meaning for every class name.

Compiled loops are exempt: numba and Triton take arguments by position. So are functions of any number of like values.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from tests.unit.house import modules, nodes

MAX_POSITIONAL = 4
COMPILERS = {"compiled", "intrinsic", "jit"}  # decorators of functions that are compiled
LOOPS = ("_loops.py", "_lanes.py", "_survey.py", "_fused_mlp.py", "_fused_leakage.py")
SHARED_LOOPS = {"leakcap.kernels.bits._loops", "leakcap.kernels.moments._products"}
# Users know both: `leakcap.labels.Gaussian` and `leakcap.synthetic.Gaussian`, `leakcap.labels.Ridge` and that of
# `leakcap.estimators`.
PUBLIC_TWICE = {"Gaussian", "Ridge"}
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)

Modules = Mapping[str, ast.Module]


def is_loop(module: str) -> bool:
    return f"{module}.py".endswith(LOOPS)


def definitions(trees: Modules) -> tuple[set[str], set[str]]:
    """The names of all functions and classes of ours, and of those that are compiled or take any number of values."""
    ours, compiled = set(), set()
    for tree in trees.values():
        for node in nodes(tree):
            if isinstance(node, SCOPES):
                ours.add(node.name)
                if isinstance(node, ast.FunctionDef) and node.args.vararg:
                    compiled.add(node.name)
                if {name_of(one.func if isinstance(one, ast.Call) else one) for one in node.decorator_list} & COMPILERS:
                    compiled.add(node.name)
    return ours, compiled


def name_of(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def outside(tree: ast.Module) -> set[str]:
    """The names under which a module knows others that are not ours, and what it takes from them."""
    found = set()
    for node in nodes(tree):
        if isinstance(node, ast.Import):
            found |= {
                (one.asname or one.name).split(".")[0] for one in node.names if not one.name.startswith("leakcap")
            }
        elif isinstance(node, ast.ImportFrom) and not (node.module or "").startswith("leakcap"):
            found |= {one.asname or one.name for one in node.names}
    return found


def root_of(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def long_calls(trees: Modules) -> Iterator[str]:
    """Calls of functions and classes of ours with more arguments by position than a reader can tell apart."""
    ours, exempt = definitions(trees)
    told = ours - exempt
    for module, tree in trees.items():
        if is_loop(module):
            continue
        foreign = outside(tree)
        for node in nodes(tree):
            if isinstance(node, ast.Call) and len(node.args) > MAX_POSITIONAL:
                called = name_of(node.func)
                if called in told and root_of(node.func) not in foreign:
                    yield f"{module}:{node.lineno} {called}, {len(node.args)} arguments by position"


def private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def borrowed(trees: Modules) -> Iterator[str]:
    """Names with a leading underscore that a module takes from another one of ours, or reads off its objects.

    A module with such a name serves the modules of its own folder.
    """
    hidden = {name for tree in trees.values() for name in made(tree)}
    for module, tree in trees.items():
        of_others = hidden - made(tree)
        for node in nodes(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("leakcap"):
                for one in node.names:
                    whole = f"{node.module}.{one.name}"
                    if not reachable(module, whole if whole in trees else node.module or "") or (
                        private(one.name) and whole not in trees
                    ):
                        yield f"{module}:{node.lineno} {whole}"
            elif isinstance(node, ast.Attribute) and node.attr in of_others and root_of(node) not in {"self", "cls"}:
                yield f"{module}:{node.lineno} {ast.unparse(node)}"


def made(tree: ast.Module) -> set[str]:
    """The names with a leading underscore that a module defines: functions, classes, variables and attributes."""
    found = set()
    for node in nodes(tree):
        if isinstance(node, SCOPES):
            found.add(node.name)
        elif isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(name_of(node))
    return {name for name in found if private(name)}


def reachable(module: str, other: str) -> bool:
    """A module with a leading underscore serves its own folder; two of the kernels serve all kernels."""
    folder, _, name = other.rpartition(".")
    return not private(name) or other in SHARED_LOOPS or folder in {module, module.rpartition(".")[0]}


def shared_names(trees: Modules) -> dict[str, list[str]]:
    """Class names that mean two things, and the modules that define them."""
    found: dict[str, list[str]] = {}
    for module, tree in trees.items():
        for node in nodes(tree):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(module)
    return {name: homes for name, homes in found.items() if len(homes) > 1 and name not in PUBLIC_TWICE}


def test_more_than_four_arguments_go_by_keyword() -> None:
    found = list(long_calls(modules()))
    assert not found, "\n".join(found)


def test_no_private_name_crosses_a_module_border() -> None:
    found = list(borrowed(modules()))
    assert not found, "\n".join(found)


def test_a_class_name_has_one_meaning() -> None:
    found = shared_names(modules())
    assert not found, found


def test_planted_faults_are_seen() -> None:
    loops = "leakcap.kernels.forest._loops"
    planted = {
        "leakcap.one": ast.parse("def add(a, b, c, d, e): ...\n_hidden = 1\nclass Sum: ...\n"),
        loops: ast.parse("@compiled(set())\ndef grow(a, b, c, d, e): ...\n"),
        "leakcap.two": ast.parse(
            "import numpy as np\nfrom leakcap import one\nfrom leakcap.one import _hidden, add\n"
            "add(1, 2, 3, 4, 5)\none.Sum(1, 2, 3, 4, 5)\nadd(1, 2, 3, 4, e=5)\nnp.add(1, 2, 3, 4, 5)\n"
            f"from {loops} import grow\ngrow(1, 2, 3, 4, 5)\none._hidden\n"
        ),
    }
    assert [found.split()[0] for found in long_calls(planted)] == ["leakcap.two:4", "leakcap.two:5"]
    assert [found.split()[0] for found in borrowed(planted)] == ["leakcap.two:3", "leakcap.two:8", "leakcap.two:10"]
    assert shared_names(planted) == {}
    twice = planted | {"leakcap.three": ast.parse("class Sum: ...")}
    assert shared_names(twice) == {"Sum": ["leakcap.one", "leakcap.three"]}
