"""One plan, one value: neither a fork, nor a copy of the checkpoint, nor a release that was taken out gives another."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import shutil
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap import modes
from leakcap.custody import checkpoint as checkpoints
from leakcap.custody import keys
from leakcap.custody.journal import journal_file
from leakcap.custody.vault import Vault
from leakcap.planning import released
from leakcap.planning.entry import stored_plan
from tests.refusals import refusal
from tests.unit.custody.rows import never_written

X = np.random.default_rng(8).normal(size=(24, 2))
SMALL: dict[str, Any] = {"cap": lc.mutual_information(0.3), "worlds": 16, "draws": 256}
forking = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # of threads that this process may have


def mean(x: Any) -> Any:
    return np.asarray(x).mean(axis=0)


@pytest.fixture(autouse=True)
def _key(own_key: Path) -> None:
    pass


@pytest.fixture(params=["sealed", "plain"])
def folder(request: Any, tmp_path: Path, monkeypatch: Any) -> Path:
    if request.param == "plain":
        monkeypatch.setattr(keys, "can_seal", lambda: False)
    return tmp_path / "plan"


def values(calls: list[Callable[[], Any]]) -> set[bytes]:
    """The different values that come out of some calls; those that are refused give none."""
    seen = set()
    for call in calls:
        with suppress(lc.LeakcapError):
            seen.add(call().value.tobytes())
    return seen


# Processes


def in_a_fork(call: Callable[[], Any]) -> bytes:
    """What a forked process gets: a released value, or the name of an error."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(writing, call().value.tobytes())
        except BaseException as error:
            os.write(writing, type(error).__name__.encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        return pipe.read()


@forking
@pytest.mark.parametrize("kept", [False, True])
def test_a_forked_process_releases_nothing(kept: bool, tmp_path: Path) -> None:
    plan = lc.plan(mean, X, checkpoint=tmp_path / "plan" if kept else None, **SMALL)
    other = plan.recap(lc.mutual_information(0.2))
    assert in_a_fork(plan.release) == in_a_fork(other.release) == b"LeakcapError"
    value = plan.release().value
    if kept:  # what was released already is the same for all
        again = lc.plan(mean, X, checkpoint=tmp_path / "plan", **SMALL)
        assert in_a_fork(again.release) == value.tobytes()


@forking
def test_a_number_of_a_process_that_comes_again_is_not_taken_for_it(monkeypatch: Any) -> None:
    plan = lc.plan(mean, X, **SMALL)
    here = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: here)
    assert in_a_fork(plan.release) == b"LeakcapError"


@forking
def test_the_check_sees_a_token_that_does_not_ask_where_it_is(monkeypatch: Any) -> None:
    """The planted twin: as it was."""
    plan = lc.plan(mean, X, **SMALL)
    monkeypatch.setattr(released.Token, "refuse_child", lambda self: None)
    assert len(in_a_fork(plan.release)) == len(plan.release().value.tobytes())  # both have a value


@forking
def test_workers_of_multiprocessing_get_no_plan_and_no_release() -> None:
    plan = lc.plan(mean, X, **SMALL)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        refusal(lambda: pool.map(lambda_free, [plan]), "not pickled")


def lambda_free(plan: Any) -> Any:
    return plan.release().value


def test_neither_a_plan_nor_its_right_to_release_is_copied() -> None:
    plan = lc.plan(mean, X, **SMALL)
    for made in (pickle.dumps, copy.copy, copy.deepcopy):
        for thing in (plan, plan.run.token):
            refusal(lambda made=made, thing=thing: made(thing))  # type: ignore[misc]
    assert copy.copy(plan.run).token is plan.run.token


# Copies of a checkpoint


@pytest.mark.filterwarnings("ignore::leakcap.RepeatedReleaseWarning")
def test_a_copy_from_before_the_release_gives_no_second_value(folder: Path, tmp_path: Path) -> None:
    plan = lc.plan(mean, X, checkpoint=folder, **SMALL)
    shutil.copytree(folder, tmp_path / "copy")
    held = stored_plan(tmp_path / "copy")  # opened while nothing was released
    first = plan.release().value.tobytes()
    calls = [
        held.release,
        lambda: stored_plan(tmp_path / "copy").release(),
        lambda: lc.release(mean, X, checkpoint=tmp_path / "copy", **SMALL),
    ]
    for call in calls:
        refusal(call, "released already", lc.AlreadyReleased)
    assert values([lambda: stored_plan(folder).release()]) == {first}


@pytest.mark.filterwarnings("ignore::leakcap.RepeatedReleaseWarning")
def test_a_copy_that_comes_first_is_the_release(folder: Path, tmp_path: Path) -> None:
    plan = lc.plan(mean, X, checkpoint=folder, **SMALL)
    shutil.copytree(folder, tmp_path / "copy")
    first = stored_plan(tmp_path / "copy").release().value.tobytes()
    refusal(plan.release, "released already", lc.AlreadyReleased)
    assert values([lambda: stored_plan(tmp_path / "copy").release()]) == {first}


@pytest.mark.filterwarnings("ignore::leakcap.RepeatedReleaseWarning")
def test_copies_that_store_at_the_same_moment_show_one_value(folder: Path, tmp_path: Path, monkeypatch: Any) -> None:
    """Each has stored a value of its own before either is written down."""
    lc.plan(mean, X, checkpoint=folder, **SMALL)
    shutil.copytree(folder, tmp_path / "copy")
    plans = [stored_plan(place) for place in (folder, tmp_path / "copy")]
    together, write, seen = threading.Barrier(2, timeout=20), Vault.write, []

    def meeting(self: Any, name: str, content: bytes, exclusive: bool = False) -> None:
        write(self, name, content, exclusive)
        if name == "release":
            together.wait()

    monkeypatch.setattr(Vault, "write", meeting)
    threads = [threading.Thread(target=lambda p=p: seen.append(values([p.release]))) for p in plans]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sorted(map(len, seen)) == [0, 1]


def test_a_release_that_was_taken_out_is_not_made_again(folder: Path) -> None:
    lc.plan(mean, X, checkpoint=folder, **SMALL).release()
    never_written(Vault.existing(folder), "release")
    refusal(lambda: stored_plan(folder).release(), "released already", lc.AlreadyReleased)
    refusal(lambda: lc.plan(mean, X, checkpoint=folder, **SMALL), "released already", lc.AlreadyReleased)


def test_a_spent_folder_is_refused_before_any_world_runs(folder: Path, tmp_path: Path) -> None:
    calls = []

    def counted(x: Any) -> Any:
        calls.append(1)
        return mean(x)

    with pytest.raises(AttributeError):
        lc.plan(lambda x: x.nothing, X, checkpoint=folder, **SMALL)  # begun, and nothing learnt
    shutil.copytree(folder, tmp_path / "copy")
    lc.release(counted, X, checkpoint=folder, **SMALL)
    calls.clear()
    for fn, data in ((counted, X), (counted, X + 1)):
        refusal(lambda fn=fn, data=data: lc.plan(fn, data, checkpoint=tmp_path / "copy", **SMALL), "released already")
    assert not calls


# The journal


def test_without_its_journal_a_run_releases_nothing_and_shows_nothing(folder: Path) -> None:
    plan = lc.plan(mean, X, checkpoint=folder, **SMALL)
    journal = journal_file()
    hidden = journal.rename(journal.with_name("hidden"))
    calls = [plan.release, lambda: stored_plan(folder).release(), lambda: lc.plan(mean, X, checkpoint=folder, **SMALL)]
    for call in calls:
        refusal(call, "journal")
    # Nor is another run begun with a journal of its own: it would not know what was answered.
    refusal(lambda: lc.plan(mean, X + 1, checkpoint=folder.with_name("another"), **SMALL), "missing")
    hidden.replace(journal)
    first = plan.release().value.tobytes()  # nothing was spent meanwhile
    journal.rename(hidden)
    for call in calls[1:]:
        refusal(call, "journal")
    hidden.replace(journal)
    assert values([calls[1]]) == {first}


def test_the_checks_see_a_checkpoint_without_a_journal(tmp_path: Path, monkeypatch: Any) -> None:
    """The planted twin: as it was."""
    monkeypatch.setattr(checkpoints.Checkpoint, "_open_journal", lambda self: None)
    plan = lc.plan(mean, X, checkpoint=tmp_path / "plan", **SMALL)
    shutil.copytree(tmp_path / "plan", tmp_path / "copy")
    copied = stored_plan(tmp_path / "copy")
    assert len(values([plan.release, copied.release])) == 2


def test_simulations_leave_the_journal_alone(folder: Path, tmp_path: Path) -> None:
    plan = lc.plan(mean, X, checkpoint=folder, seed=4, **SMALL)
    shutil.copytree(folder, tmp_path / "copy")
    assert len(values([plan.release, stored_plan(tmp_path / "copy").release])) == 1
    assert not journal_file().exists()


# Threads


def most_at_once(call: Callable[[], Any], monkeypatch: Any, certificate: Any = None) -> int:
    """How many threads are certifying at the same moment when two make a call."""
    inside, most = [0], [0]

    def slow(*_: Any, **__: Any) -> Any:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        time.sleep(0.1)
        inside[0] -= 1
        return object(), certificate

    monkeypatch.setattr(modes.exact, "certified", slow)
    threads = [threading.Thread(target=call) for _ in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    return most[0]


def test_recaps_in_threads_certify_one_after_the_other(monkeypatch: Any) -> None:
    """At once they would count one attempt for both, and certify on the same draws."""
    plan = lc.plan(mean, X, **SMALL)
    assert most_at_once(lambda: plan.recap(lc.mutual_information(0.2)), monkeypatch, plan.certificate) == 1


def _without_a_lock() -> None:
    modes.exact.certified(*())


def test_the_check_sees_two_at_once(monkeypatch: Any) -> None:
    """The planted twin: without a lock."""
    assert most_at_once(_without_a_lock, monkeypatch) == 2


def test_recaps_in_threads_share_no_attempt() -> None:
    plan, attempts = lc.plan(mean, X, **SMALL), []
    asked = [lc.mutual_information(nats) for nats in (0.2, 0.25)]
    threads = [threading.Thread(target=lambda c=c: attempts.append(plan.recap(c).certificate.attempt)) for c in asked]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len({plan.certificate.attempt, *attempts}) == 3
