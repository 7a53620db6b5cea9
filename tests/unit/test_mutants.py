"""The list of faults is alive: each can be planted, its tests exist, and the runner tells what became of it."""

from __future__ import annotations

import re
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from tests.mutants import running
from tests.mutants.faults import ROOT, Mutant, all_mutants, by_commit, chosen
from tests.mutants.planted import is_of

MUTANTS = all_mutants()
ROOMS = {
    "ground",
    "worlds",
    "kernels",
    "stats",
    "tables",
    "simulate",
    "leakage",
    "noise",
    "modes",
    "planning",
    "custody",
    "sessions",
    "server",
    "estimators",
    "labels",
    "local",
    "obfuscation",
    "audit",
    "certificates",
    "cluster",
    "cli",
    "convert",
    "report",
    "sql",
}
ONE = Mutant(
    name="noise-one",
    file="noise/entropy.py",
    line="return secrets.randbelow(n)",
    becomes="return 0",
    means="A sentence.",
    tests=("tests/a.py::test_a", "tests/a.py::test_b"),
)


def missing(node: str) -> str:
    """What keeps a named test from being run; empty where nothing does."""
    file, _, name = node.partition("::")
    path = ROOT / file
    if not path.is_file():
        return f"{file} does not exist"
    found = re.search(rf"^def {re.escape(name.partition('[')[0])}\(", path.read_text(), re.MULTILINE)
    return "" if found else f"{file} has no test {name}"


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_fault_can_be_planted_and_its_tests_exist(mutant: Mutant) -> None:
    assert mutant.problem() == ""
    assert [missing(node) for node in mutant.tests] == [""] * len(mutant.tests)
    assert mutant.name.startswith(f"{mutant.room}-")
    assert mutant.means.endswith(".")


def test_there_are_enough_of_them_in_every_room() -> None:
    assert len(MUTANTS) >= 60
    assert {mutant.room for mutant in MUTANTS} == ROOMS
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    assert len({(mutant.file, mutant.line, mutant.becomes) for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize(
    "broken",
    [
        replace(ONE, file="noise/coffee.py"),
        replace(ONE, line="coffee"),
        replace(ONE, line="return"),  # stands there many times
        replace(ONE, becomes=ONE.line),
        replace(ONE, tests=()),
    ],
)
def test_a_record_that_is_out_of_date_is_seen(broken: Mutant) -> None:
    assert ONE.problem() == ""
    assert broken.problem()
    assert missing("tests/unit/test_coffee.py::test_a") and missing("tests/unit/test_mutants.py::test_coffee")


def test_a_fault_is_planted_in_the_copy_alone(tmp_path: Path) -> None:
    (tmp_path / "noise").mkdir()
    source = (ROOT / "src/leakcap" / ONE.file).read_text()
    (tmp_path / ONE.file).write_text(source)
    ONE.plant(tmp_path)
    assert (tmp_path / ONE.file).read_text() == source.replace(ONE.line, ONE.becomes) != source
    assert (ROOT / "src/leakcap" / ONE.file).read_text() == source


def test_six_are_chosen_by_the_commit() -> None:
    first, again, other = (by_commit(MUTANTS, commit) for commit in ("a1b2", "a1b2", "c3d4"))
    assert first == again != other
    assert len(set(first)) == 6
    assert {mutant.room for mutant in chosen(MUTANTS, ["noise"])} == {"noise"}
    with pytest.raises(SystemExit, match="coffee"):
        chosen(MUTANTS, ["coffee"])


@pytest.mark.parametrize(
    ("code", "failed", "survives", "status"),
    [
        (1, ("tests/a.py::test_a[0]", "tests/a.py::test_b"), "", "caught"),
        (1, ("tests/a.py::test_a",), "", "survived"),  # every named test must fail
        (1, ("tests/a.py::test_a", "tests/a.py::test_bread"), "", "survived"),
        (0, (), "", "survived"),
        (0, (), "a reason", "survived, as its reason says"),
        (1, ("tests/a.py::test_a", "tests/a.py::test_b"), "a reason", "caught, against its reason"),
        (2, (), "", "did not run"),  # the package cannot be imported
        (4, (), "", "did not run"),  # no such test
        (-signal.SIGXCPU, (), "", "too slow"),
    ],
)
def test_the_runner_tells_what_became_of_a_fault(
    code: int, failed: tuple[str, ...], survives: str, status: str
) -> None:
    finished = running.Finished(code, 1.0, "", failed=failed)
    assert running.verdict(replace(ONE, survives=survives), finished).status == status
    assert (status in running.BAD) == (status not in ("caught", "survived, as its reason says"))


def test_parameters_belong_to_their_test() -> None:
    assert is_of("a.py::test_a[1]", "a.py::test_a")
    assert not is_of("a.py::test_ab", "a.py::test_a")
