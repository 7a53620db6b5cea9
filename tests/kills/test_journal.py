"""A release that is killed between storing and showing: whoever resumes it gets that value, and copies get none."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.custody.checkpoint import Checkpoint
from leakcap.custody.journal import Journal
from leakcap.custody.vault import Vault
from leakcap.noise import OperatingSystem
from tests.refusals import refusal

X = np.random.default_rng(5).normal(size=(24, 2))
forking = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # of threads that this process may have


def planned(folder: Path) -> lc.Plan:
    return lc.plan(np.mean, X, cap=lc.mutual_information(0.3), worlds=16, draws=256, checkpoint=folder)


def killed(folder: Path, place: str, moment: str) -> None:
    """Release what is stored in a process that is killed before or after it stores the value, or writes it down."""
    child = os.fork()
    if not child:
        if place == "vault":
            Vault.write = _dying(Vault.write, moment, "release")  # type: ignore[method-assign]
        else:
            Journal.enter = _dying(Journal.enter, moment)  # type: ignore[method-assign]
        try:
            OperatingSystem().below(2)  # tests draw from streams with a seed: the copies must not draw alike
            planned(folder).release()
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def _dying(step: Any, moment: str, name: str | None = None) -> Any:
    def die(self: Any, first: Any, *given: Any, **named: Any) -> Any:
        if name in (None, first) and moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        step(self, first, *given, **named)
        if name in (None, first):
            os.kill(os.getpid(), signal.SIGKILL)

    return die


MOMENTS = [("vault", "before"), ("vault", "after"), ("journal", "after")]  # before the journal is after the vault


@pytest.mark.parametrize(("place", "moment"), MOMENTS)
@forking
@pytest.mark.filterwarnings("ignore::leakcap.RepeatedReleaseWarning")
def test_a_release_killed_at_any_step_goes_on_to_one_value(place: str, moment: str, tmp_path: Path) -> None:
    folder = tmp_path / "plan"
    planned(folder)
    shutil.copytree(folder, tmp_path / "copy")
    killed(folder, place, moment)
    stored, entered = Vault.existing(folder).read("release"), Journal.open().entry(Vault.existing(folder).run)
    assert ((stored is not None), (entered is not None)) == {
        ("vault", "before"): (False, False),
        ("vault", "after"): (True, False),
        ("journal", "after"): (True, True),
    }[place, moment]
    committed = Checkpoint.stored(folder).committed()
    first = planned(folder).release()
    if committed is not None:
        assert (committed["vector"] == first.outputs).all(), "what was stored, nothing else"
    assert planned(folder).release().outputs.tobytes() == first.outputs.tobytes()
    refusal(lambda: planned(tmp_path / "copy").release(), "released already", lc.AlreadyReleased)


@forking
@pytest.mark.filterwarnings("ignore::leakcap.RepeatedReleaseWarning")
def test_a_copy_may_go_on_where_a_release_was_killed_before_it_counted(tmp_path: Path) -> None:
    """Then that is the release, and the value that was stored and never seen stays unseen."""
    folder = tmp_path / "plan"
    planned(folder)
    shutil.copytree(folder, tmp_path / "copy")
    killed(folder, "vault", "after")
    planned(tmp_path / "copy").release()
    refusal(lambda: planned(folder).release(), "released already", lc.AlreadyReleased)
