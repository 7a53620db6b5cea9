"""kill -9 at random moments of a process-pool run: the same answer, nothing half-written, nothing released twice."""

from __future__ import annotations

import csv
import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.custody.checkpoint import Checkpoint
from leakcap.custody.vault import FILE, Vault
from leakcap.planning.entry import stored_plan
from tests.kills import jobs
from tests.kills.killing import PYTHON, Moment, log, moments, names, run, stored_worlds
from tests.unit.custody.rows import row

PUBLIC = {
    "README.txt",
    "answer.csv",
    "answer.json",
    "certificate.html",
    "certificate.json",
    "release.json",
    "SHA256SUMS",
    "SHA256SUMS.sig",
}
# Anywhere from the start of Python to the last file: signs in the folder, and seconds after them.
IN_A_PLAN = {"": 6.0, ":start": 1.0, ":form": 0.5, ":worlds-": 3.0, ":whole pool": 0.5, ":caps": 1.0, ":release": 0.05}
IN_A_RELEASE = {f"custodian/plan{sign}" if sign else "": wait for sign, wait in IN_A_PLAN.items()} | {
    f"custodian/plan/{FILE}-journal": 0.003,  # a transaction is under way
    "custodian/report.html": 0.02,
    ".public.*": 0.005,
}
IN_A_PLAN |= {f"{FILE}-journal": 0.003}
AT_ONCE = 3  # kills in a row before a run may come to its end


def kills(many: int) -> Any:
    few = pytest.param(2, id="few")
    return pytest.mark.parametrize("number", [few, pytest.param(many, id=f"{many} kills", marks=pytest.mark.slow)])


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What a seeded run gives when nobody disturbs it."""
    plan = lc.plan(
        lambda x: x[:, 1:].mean(axis=0), jobs.table(), cap=lc.mutual_information(0.3), worlds=64, draws=256, seed=11
    )
    return plan.release().value.tobytes()


@kills(40)
def test_a_killed_plan_resumes_to_the_same_answer(number: int, tmp_path: Path, answer: bytes) -> None:
    rng = np.random.default_rng(number)
    done = 0
    for chain in range(number):
        folder = tmp_path / f"run{chain}" / "plan"
        folder.parent.mkdir()
        command = [PYTHON, str(Path(jobs.__file__)), str(folder)]
        for _ in range(AT_ONCE):
            before, stored = len(log(folder)), stored_worlds(folder, _names(folder))
            ended = run(command, folder, moments(rng, IN_A_PLAN))
            _not_run_again(log(folder)[before:], stored)
            done += not ended
            if ended or done >= number:
                break
        run(command, folder)
        assert folder.with_suffix(".answer").read_bytes() == answer
        assert sorted(path.name for path in folder.iterdir()) == [FILE, "lock"]
        assert _twice(log(folder)) <= 2 * AT_ONCE, "only worlds that were under way are run again"
        if done >= number:
            return
    raise AssertionError(f"only {done} of {number} kills")


@kills(60)
def test_a_killed_release_is_made_once_and_whole(number: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(number)
    data = tmp_path / "people.csv"
    with data.open("w", newline="") as file:
        csv.writer(file).writerows([["id", "a", "b"], *jobs.table().tolist()])
    done = 0
    for chain in range(number):
        folder = tmp_path / f"run{chain}" / "out"
        folder.parent.mkdir()
        command = [PYTHON, "-m", "leakcap", "release", str(data), "--fn", "jobs:slow_mean", "--cap", "mi=0.3"]
        command += ["--worlds", "64", "--draws", "256", "--workers", "2", "--out", str(folder), "--quiet"]
        command += ["--ledger", f"sqlite:///{folder.parent / 'ledger.db'}"]
        plan, committed = folder / "custodian" / "plan", None
        for _ in range(AT_ONCE):
            before, stored = len(log(folder)), stored_worlds(plan, _names(plan))
            ended = run(command, folder, moments(rng, IN_A_RELEASE))
            _not_run_again(log(folder)[before:], stored)
            committed = _same_release(plan, committed)
            assert not (folder / "public").exists() or {p.name for p in (folder / "public").iterdir()} == PUBLIC
            done += not ended
            if (folder / "public").exists() or done >= number:
                break
        if not (folder / "public").exists():
            run(command, folder)
        _same_release(plan, committed)
        _whole(folder)
        if done >= number:
            return
    raise AssertionError(f"only {done} of {number} kills")


def test_the_checks_see_a_world_that_is_run_again_and_a_second_release(tmp_path: Path) -> None:
    """The planted twin."""
    with pytest.raises(AssertionError):
        _not_run_again([3, 5], {5, 7})
    plan = tmp_path / "plan"
    Vault.open(plan).write("release", b"one")
    first = _same_release(plan, None)
    assert first is not None
    for again in (b"two", b"one"):
        Vault.open(plan).write("release", again)
        with pytest.raises(AssertionError):
            _same_release(plan, first)


def test_a_transaction_can_be_killed_in_its_middle(tmp_path: Path) -> None:
    """The journal is the sign of it."""
    code = (
        "import sys; from pathlib import Path; from leakcap.custody.vault import Vault\n"
        "made = Vault.open(Path(sys.argv[1]))\n"
        "for i in range(10**6): made.write(f'value {i % 7}', b'x' * 100_000)"
    )
    folder, left, whole = tmp_path / "run" / "plan", 0, 0
    folder.parent.mkdir()
    for kill in range(8):  # the first while the file is made, the others among the writes
        assert not run([PYTHON, "-c", code, str(folder)], folder, Moment(f"{FILE}-journal", 0.01 * kill))
        left += (folder / f"{FILE}-journal").exists()
        made = Vault.existing(folder)
        assert all(made.read(name) == b"x" * 100_000 for name in made.names())
        whole += len(made.names("value"))
        made.write("between", b"x" * 100_000)
        assert not (folder / f"{FILE}-journal").exists(), "what is left of it would be a sign to kill the next at once"
    assert left
    assert whole


def test_a_moment_is_met(tmp_path: Path) -> None:
    assert not run([PYTHON, "-c", "import time; time.sleep(3600)"], tmp_path / "run", Moment("", 0.2))
    assert run([PYTHON, "-c", "pass"], tmp_path / "run", Moment("never", 60))


def _not_run_again(later: list[int], stored: set[int]) -> None:
    assert not stored & set(later), "a world whose answer was stored ran again"


def _same_release(plan: Path, committed: str | None) -> str | None:
    """Sealing draws a fresh nonce, so a value that is the same was not written again."""
    stored = row(Vault.existing(plan), "release") if names(plan) else None
    found = hashlib.sha256(b"".join(stored)).hexdigest() if stored else None
    assert committed is None or found == committed
    return found


def _whole(folder: Path) -> None:
    """Everything is there, says the same, and nothing else is."""
    assert {path.name for path in folder.iterdir()} == {"public", "custodian"}
    assert {path.name for path in (folder / "public").iterdir()} == PUBLIC
    kept = {path.name for path in (folder / "custodian").iterdir()}
    assert kept == {"README.txt", "exposure.csv", "plan", "report.html"}
    assert not list(folder.rglob("*.part"))
    assert {path.name for path in (folder / "custodian" / "plan").iterdir()} == {FILE, "lock"}
    plan = stored_plan(folder / "custodian" / "plan")
    table = jobs.table()
    for world, found in enumerate(plan.outputs):
        assert np.allclose(found, table[plan.worlds.mask(world), 1:].mean(axis=0), rtol=1e-13, atol=1e-15)
    assert plan.released_certificate == plan.certificate
    assert (folder / "public" / "certificate.json").read_text() == plan.certificate.to_json()
    shown = json.loads((folder / "public" / "answer.json").read_text())["answer"]
    released = plan.release().value  # what was stored: the same again, not another
    assert np.allclose([row["released"] for row in shown], released, atol=2e-3, rtol=0)


def _twice(worlds: list[int]) -> int:
    return sum(times - 1 for times in Counter(worlds).values())


def _names(plan: Path) -> Any:
    """A world's number as the signature of the rows in it."""
    if "request" not in names(plan):
        return lambda world: -1
    stored = Checkpoint.stored(plan)
    request, _ = stored.kept("request")
    worlds = request.possible(stored.entropy)
    return lambda world: jobs.signature(jobs.table()[worlds.mask(world)])
