"""One release for ever, whoever asks for it and when; and who may work on a checkpoint."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.custody import keys, vault
from leakcap.custody.checkpoint import Checkpoint
from leakcap.custody.vault import Vault
from leakcap.modes.exact import OneOfTheWorlds
from leakcap.planning.entry import stored_plan
from leakcap.planning.released import forget_released
from leakcap.simulate import worker as task
from tests.unit.custody.rows import failing
from tests.unit.custody.runs import (
    SMALL,
    X,
    counted,
    stopping,
)

# One release


def test_two_plans_of_one_checkpoint_release_the_same_value(folder: Path) -> None:
    one, two = (lc.plan(counted, X, checkpoint=folder, **SMALL) for _ in range(2))
    first, second = one.release(), two.release()
    assert first.value.tobytes() == second.value.tobytes()
    for plan in (one, two):
        with pytest.raises(lc.AlreadyReleased):
            plan.release()


@pytest.mark.filterwarnings("ignore::leakcap.RepeatedReleaseWarning")
def test_plans_that_release_at_the_same_moment_release_the_same_value(folder: Path, monkeypatch: Any) -> None:
    """Both have drawn a secret and noise of their own before either has stored anything."""
    plans = [lc.plan(counted, X, checkpoint=folder, **SMALL) for _ in range(4)]
    start, drawn, found = threading.Barrier(4), [], []
    vector = OneOfTheWorlds.vector

    def together(self: Any, randomness: Any) -> Any:
        own = vector(self, randomness)
        drawn.append(own)
        start.wait()
        return own

    monkeypatch.setattr(OneOfTheWorlds, "vector", together)
    threads = [threading.Thread(target=lambda one=one: found.append(one.release().value)) for one in plans]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len({one.tobytes() for one in drawn}) == 4
    assert len(found) == 4
    assert len({one.tobytes() for one in found}) == 1


@pytest.mark.slow
def test_processes_that_release_at_the_same_moment_release_the_same_value(folder: Path) -> None:
    lc.plan(counted, X, checkpoint=folder, **SMALL)
    code = (
        "import sys, time; from leakcap.planning.entry import stored_plan\n"
        "plan = stored_plan(sys.argv[1]); print('ready', flush=True); sys.stdin.readline()\n"
        "print(plan.release().value.tobytes().hex())"
    )
    command = [sys.executable, "-c", code, str(folder)]
    running = []
    for _ in range(4):  # one after the other: opening a plan takes the lock for a moment, and does not wait for it
        running.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        assert running[-1].stdout.readline() == "ready\n"
    for one in running:
        one.stdin.write("\n")
        one.stdin.flush()
    answers = {one.communicate()[0] for one in running}
    assert len(answers) == 1
    assert len(answers.pop()) == 2 * 2 * 8 + 1  # two floats in hexadecimal, and a line end


def test_a_release_that_could_not_be_stored_is_not_seen(folder: Path, monkeypatch: Any) -> None:
    plan = lc.plan(counted, X, checkpoint=folder, **SMALL)

    with monkeypatch.context() as patch:
        failing(patch, "COMMIT")
        with pytest.raises((OSError, lc.LeakcapError)):
            plan.release()
    with pytest.raises(lc.AlreadyReleased):
        plan.release()  # spent: a secret was drawn
    assert stored_plan(folder).released_certificate is None
    forget_released()
    assert lc.release(counted, X, checkpoint=folder, **SMALL).value.shape == (2,)


def test_a_run_that_starts_does_not_sweep_away_the_release_another_is_storing(folder: Path, monkeypatch: Any) -> None:
    plan = lc.plan(counted, X, checkpoint=folder, **SMALL)
    write, swept = Vault.write, []

    def meanwhile(self: Vault, name: str, content: bytes, exclusive: bool = False) -> None:
        if name == "release":
            with vault._file(folder).writing() as database:
                database.execute("UPDATE vault SET titles = titles")  # the other is in the middle of storing it
                with Checkpoint.stored(folder).alone():
                    swept.append(name)
        write(self, name, content, exclusive)

    monkeypatch.setattr(Vault, "write", meanwhile)
    plan.release()
    assert swept == ["release"]


# Without data


def test_an_unfinished_run_is_no_stored_plan(folder: Path, tmp_path: Path, monkeypatch: Any) -> None:
    for place in (tmp_path / "nowhere", tmp_path / "log"):
        with pytest.raises(lc.InputError, match="no checkpoint"):
            stored_plan(place)
    monkeypatch.setattr(task, "SAVED", -1.0)
    (tmp_path / "stop").write_text("ValueError 5")
    with pytest.raises(ValueError, match=r"^$"):
        lc.plan(stopping, X, checkpoint=folder, **SMALL)
    with pytest.raises(lc.InputError, match="has not finished"):
        stored_plan(folder)


def test_a_fresh_world_needs_the_data_unless_it_was_released(folder: Path) -> None:
    options = SMALL | {"mode": "confidence", "worlds": 64, "confidence": 0.9}
    plan = lc.plan(counted, X, checkpoint=folder, **options)
    with pytest.raises(lc.InputError, match="with the data"):
        stored_plan(folder).release()
    assert stored_plan(folder).released_certificate is None
    value = plan.release().value
    assert (stored_plan(folder).release().value == value).all()


def test_forgetting_a_plan_removes_its_folder(folder: Path) -> None:
    plan = lc.plan(counted, X, checkpoint=folder, **SMALL)
    plan.release()
    plan.forget()
    assert not folder.exists()
    lc.plan(counted, X, **SMALL).forget()  # nothing to forget is no error


@pytest.mark.filterwarnings("ignore::leakcap.RepeatedReleaseWarning")
def test_a_plan_that_was_forgotten_by_another_releases_nothing_new(folder: Path) -> None:
    """What was released is not known any more: a second value, with a secret of its own, must not come out."""
    one, two = (lc.plan(counted, X, checkpoint=folder, **SMALL) for _ in range(2))
    one.release()
    one.forget()
    with pytest.raises((OSError, lc.LeakcapError)):
        two.release()


REMOVED: list[Callable[[], Any]] = []  # done while `removed_meanwhile` runs for the fifth time


def removed_meanwhile(x: Any) -> Any:
    if len(REMOVED) < 5:
        REMOVED.append(REMOVED[0])
        if len(REMOVED) == 5:
            REMOVED[0]()
    return counted(x)


@pytest.mark.parametrize("sealed", [True, False])
def test_a_run_whose_folder_was_removed_and_begun_anew_writes_nothing_into_the_new_one(
    sealed: bool, folder: Path, monkeypatch: Any
) -> None:
    """Else the other's plan holds answers on other people in other worlds, under a certificate."""
    monkeypatch.setattr(task, "SAVED", -1.0)
    if not sealed:
        monkeypatch.setattr(keys, "can_seal", lambda: False)

    def anew() -> None:
        shutil.rmtree(folder)
        lc.plan(counted, X + 1, checkpoint=folder, **SMALL)

    REMOVED[:] = [anew]
    with pytest.raises(lc.InputError):
        lc.plan(removed_meanwhile, X, checkpoint=folder, **SMALL)
    plan = lc.plan(counted, X + 1, checkpoint=folder, **SMALL)
    for world, found in enumerate(plan.outputs):
        assert np.allclose(found, (X + 1)[plan.worlds.mask(world), 1:3].mean(axis=0))


# Alone


def test_a_second_run_in_the_same_folder_is_told_to_wait(folder: Path) -> None:
    lc.plan(counted, X, checkpoint=folder, **SMALL)
    with Checkpoint.stored(folder).alone(), pytest.raises(lc.InputError, match="another process"):
        lc.plan(counted, X, checkpoint=folder, **SMALL)
    lc.plan(counted, X, checkpoint=folder, **SMALL)


def test_the_lock_falls_with_the_process_that_holds_it(folder: Path) -> None:
    lc.plan(counted, X, checkpoint=folder, **SMALL)
    code = (
        "import sys, time; from pathlib import Path; from leakcap.custody.checkpoint import Checkpoint\n"
        "with Checkpoint.stored(Path(sys.argv[1])).alone(): print('held', flush=True); time.sleep(100)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None and other.stdout.readline() == "held\n"
        with pytest.raises(lc.InputError, match="another process"):
            lc.plan(counted, X, checkpoint=folder, **SMALL)
        other.send_signal(signal.SIGKILL)
    lc.plan(counted, X, checkpoint=folder, **SMALL)


def test_the_lock_is_free_after_a_function_that_failed(folder: Path) -> None:
    with pytest.raises(AttributeError):
        lc.plan(lambda x: x.nothing, X, checkpoint=folder, **SMALL)
    with Checkpoint.stored(folder).alone():
        pass
