"""The house stands as planned: few rooms, arrows in one direction, no circles, one meaning a name."""

from __future__ import annotations

import ast

import leakcap
from tests.unit import house

MAX_ROOMS = 30  # each later wing adds one
MAX_ROOT_FILES = 8


def rooms():
    return {house.room_of(name) for name in house.modules()} - {"", "__main__"}


def test_rooms_are_few_and_all_of_them_are_in_the_plan():
    assert rooms() == set(house.ORDER)
    assert len(rooms()) <= MAX_ROOMS


def test_a_file_at_the_root_is_a_name_that_users_type():
    files = {path.stem for path in house.PACKAGE.glob("*.py")} - {"__init__", "__main__"}
    assert len(files) <= MAX_ROOT_FILES
    assert all(hasattr(leakcap, name) for name in files - {"version"})
    assert files == {"datasets", "errors", "synthetic", "version"}


def test_no_circle_of_imports():
    assert house.circles(house.arrows()) == []


def test_a_planted_circle_is_found():
    edges = frozenset({("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("e", "a")})
    assert house.circles(edges) == [{"a", "b", "c"}]


def against_the_order(edges):
    place = {room: number for number, room in enumerate(house.ORDER)}
    return {(a, b) for a, b in edges if place[house.room_of(b)] > place[house.room_of(a)]}


def test_no_arrow_runs_against_the_order():
    assert against_the_order((a, b) for a, b in house.arrows() if b != "leakcap") == set()


# Modules that load others by name: facades, which load their own names on first use; the doors upstairs; and what
# loads the user's own function.
BY_NAME = {"leakcap", "leakcap.labels", *house.DOORS, "leakcap.tables.functions"}


def test_there_are_two_doors_upstairs_and_no_third():
    loading = {
        name
        for name, tree in house.modules().items()
        for node in house.nodes(tree)
        if isinstance(node, (ast.Name, ast.Attribute)) and getattr(node, "id", getattr(node, "attr", "")) in LOADERS
    }
    assert loading - BY_NAME == set()
    assert len(house.DOORS) == 2
    for here, upstairs in house.DOORS.items():
        named = [node.value for node in ast.walk(house.modules()[here]) if isinstance(node, ast.Constant)]
        said = [words for words in named if str(words).startswith("leakcap.") and words in house.modules()]
        assert said == [upstairs]


LOADERS = {"import_module", "__import__"}


def test_a_planted_arrow_against_the_order_is_found():
    planted = ("leakcap.leakage.certify", "leakcap.planning.entry")
    assert against_the_order([planted]) == {planted}


def test_only_skins_use_the_facade():
    users = {a for a, b in house.arrows() if b == "leakcap"}
    assert {house.room_of(user) for user in users} <= {"cli"}


def test_nothing_in_the_command_line_proves_anything():
    proving = [
        (name, node.lineno)
        for name, tree in house.modules().items()
        if house.room_of(name) == "cli"
        for node in house.nodes(tree)
        if isinstance(node, ast.Name) and node.id == "proves"
    ]
    assert proving == []


def test_the_certificate_is_written_out_once():
    writing = [
        name
        for name, tree in house.modules().items()
        for node in house.nodes(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Certificate"
    ]
    assert writing == ["leakcap.modes.interface"]


def test_no_module_of_planning_hides_a_public_function():
    planning = {name.rpartition(".")[2] for name in house.modules() if name.startswith("leakcap.planning.")}
    assert planning.isdisjoint({"plan", "release"})
