"""A run in one file: what it shows, and what happens when it is damaged or the disk is full."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.custody import checkpoint as checkpoints
from leakcap.custody.checkpoint import Checkpoint
from leakcap.custody.vault import FILE, Vault
from leakcap.planning import entry as planning
from leakcap.planning.entry import stored_plan
from leakcap.simulate import Progress
from leakcap.simulate import worker as task
from tests.unit.custody.rows import failing, never_written, put, take_away
from tests.unit.custody.rows import stored as stored_content
from tests.unit.custody.runs import (
    CALLS,
    SEEDED,
    SMALL,
    X,
    contents,
    counted,
    same_as_undisturbed,
    undisturbed,
)

# Damage


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a released, seeded run, and the key they were sealed with."""
    place = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEAKCAP_KEY", str(place / "keys" / "key"))
        lc.plan(counted, X, checkpoint=place / "plan", **SEEDED).release()
    return contents(place / "plan") | {"key": (place / "keys" / "key").read_bytes()}


def restored(finished: dict[str, bytes], folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    (folder.parent / "keys").mkdir(exist_ok=True)
    for name, content in finished.items():
        path = folder.parent / "keys" / "key" if name == "key" else folder / name
        path.write_bytes(content)
        path.chmod(0o600)


NAMES = ["start", "request", "form", "whole pool", "caps", "noise-0", "worlds-0000001", "release"]


@pytest.mark.parametrize("name", NAMES)
def test_a_damaged_value_is_a_clear_error_and_never_another_result(
    name: str, finished: dict[str, bytes], folder: Path
) -> None:
    restored(finished, folder)
    made = Vault.existing(folder)
    content, start = stored_content(made, name), stored_content(made, "start")
    for damaged in (content[:-1], content[:-20] + b"x" * 20, b"", b"x" * len(content), start + b"x"):
        put(made, name, damaged)
        if name != "noise-0":  # computed anew
            with pytest.raises(lc.InputError, match="damaged"):
                stored_plan(folder).release()
        if name != "request":  # written anew
            with pytest.raises(lc.InputError, match="damaged"):
                lc.plan(counted, X, checkpoint=folder, **SEEDED).release()
    restored(finished, folder)
    assert same_as_undisturbed(stored_plan(folder))


@pytest.mark.parametrize("name", [name for name in NAMES if name != "release"])
def test_a_value_that_is_not_there_is_a_clear_error_or_made_again_the_same(
    name: str, finished: dict[str, bytes], folder: Path
) -> None:
    restored(finished, folder)
    never_written(Vault.existing(folder), name)
    try:
        again = stored_plan(folder)
    except lc.InputError:
        again = lc.plan(counted, X, checkpoint=folder, **SEEDED)
    assert same_as_undisturbed(again)


@pytest.mark.parametrize("name", NAMES)
def test_a_value_that_was_taken_away_is_missed_and_nothing_is_released_again(
    name: str, finished: dict[str, bytes], folder: Path
) -> None:
    restored(finished, folder)
    take_away(Vault.existing(folder), name)
    if name not in ("noise-0", "caps"):
        with pytest.raises(lc.InputError, match="damaged"):
            stored_plan(folder).release()
    with pytest.raises(lc.InputError, match="damaged"):
        lc.plan(counted, X, checkpoint=folder, **SEEDED).release()


def test_two_values_of_a_run_cannot_be_exchanged(finished: dict[str, bytes], folder: Path) -> None:
    restored(finished, folder)
    made = Vault.existing(folder)
    form, release = stored_content(made, "form"), stored_content(made, "release")
    put(made, "form", release)
    put(made, "release", form)
    for call in (lambda: stored_plan(folder), lambda: lc.release(counted, X, checkpoint=folder, **SEEDED)):
        with pytest.raises(lc.InputError, match="damaged"):
            call()


def test_what_a_killed_process_left_half_written_is_swept(finished: dict[str, bytes], folder: Path) -> None:
    restored(finished, folder)
    part = folder / ".worlds-0000003.99999999.abcd.part"
    part.write_bytes(b"half")
    lc.plan(counted, X, checkpoint=folder, **SEEDED)
    assert not part.exists()


def test_a_plan_stored_by_another_version_is_a_clear_error(folder: Path) -> None:
    lc.plan(counted, X, checkpoint=folder, **SEEDED)
    stored = Checkpoint.stored(folder)
    stored._vault.write(
        "request", b"cleakcap.planning.request\nFormerFrame\n."
    )  # a pickle that names a class of the past
    with pytest.raises(lc.InputError):
        stored_plan(folder)


# A full disk


@pytest.mark.parametrize("after", [2, 4, 6, 9])
def test_a_disk_that_fills_up_stops_the_run_which_then_goes_on(after: int, folder: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(task, "SAVED", -1.0)
    with monkeypatch.context() as patch:
        failing(patch, "COMMIT", after=after)
        with pytest.raises((OSError, lc.LeakcapError)):
            lc.plan(counted, X, checkpoint=folder, **SEEDED)
    assert not list(folder.glob(".*"))
    assert not list(folder.glob("*-journal"))
    assert same_as_undisturbed(lc.plan(counted, X, checkpoint=folder, **SEEDED))


def test_a_certificate_is_the_same_with_and_without_a_checkpoint(folder: Path) -> None:
    assert same_as_undisturbed(lc.plan(counted, X, checkpoint=folder, **SEEDED))
    assert planning.release(counted, X, checkpoint=folder, **SEEDED).value.tobytes() == undisturbed()[2]


# One file


def small(x: Any) -> Any:
    return {"mean of a column": float(x[:, 1].mean()), "largest": float(x[:, 2].max())}


def test_a_thousand_worlds_are_one_file_that_shows_nothing(folder: Path) -> None:
    """Neither what was asked, nor the answers, nor the seed, nor which rows took part.

    Names of four letters are not searched for: they are in the file by chance once in 50,000 runs.
    """
    seed = 77_123_456_789
    options = SMALL | {"worlds": 1024, "seed": seed, "workers": 4, "backend": "threads"}
    plan = lc.plan(small, X, checkpoint=folder, **options)
    plan.release()
    assert sorted(os.listdir(folder)) == [FILE, "lock"]
    assert (folder / "lock").read_bytes() == b""
    content = (folder / FILE).read_bytes()
    assert sum(len(worlds) for worlds, _ in Checkpoint.stored(folder).rows()) >= 1022
    rows = [row.tobytes() for row in plan.outputs]
    numbers = [value for row in plan.outputs for value in (row[:1].tobytes(), row[1:].tobytes())]
    masks = [bytes(one) for one in plan.worlds.packed.view(np.uint8).reshape(plan.worlds.m, -1)]
    for secret in (str(seed).encode(), seed.to_bytes(8, "little"), *rows, *numbers, *(m for m in masks if len(m) > 4)):
        assert secret not in content
    for name in (*NAMES, "worlds-", "mean of a column", "largest", "numpy", "NUMPY", "leakcap.modes", "small"):
        assert len(name) < 5 or name.encode() not in content
    opened = b"".join(Vault.existing(folder).contents(Vault.existing(folder).names()))
    assert all(secret in opened for secret in (str(seed).encode(), b"mean of a column", b"NUMPY"))
    assert any(row in opened for row in rows), "the search was for the right things"


@pytest.mark.parametrize("workers", [1, 16])
def test_short_worlds_are_stored_together(workers: int, folder: Path) -> None:
    def stops(state: Progress) -> None:  # once all worlds have run: noise for them is not the point
        if state.stage != "worlds":
            raise KeyboardInterrupt

    options = SEEDED | {"worlds": 1024, "workers": workers, "backend": "threads", "progress": stops}
    with pytest.raises(KeyboardInterrupt):
        lc.plan(small, X, checkpoint=folder, **options)
    parcels = list(Checkpoint.stored(folder).rows())
    assert len(parcels) <= 40
    worlds = np.concatenate([worlds for worlds, _ in parcels])
    assert len(worlds) == len(set(worlds.tolist())) == 1022  # the first pair is in the form of the answer


def test_answers_that_are_too_large_for_one_value_are_stored_in_several(folder: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(checkpoints, "PARCEL", 3 * 2 * 8)  # three worlds with two outputs
    made = Checkpoint.open(folder)
    worlds, rows = np.arange(10, 20), np.arange(20.0).reshape(10, 2)
    made.keep_rows(worlds, rows)
    assert [len(some) for some, _ in made.rows()] == [3, 3, 3, 1]
    assert (np.concatenate([some for some, _ in made.rows()]) == worlds).all()
    assert (np.concatenate([some for _, some in made.rows()]) == rows).all()
    assert [len(some) for some, _ in made.rows(range(13, 16))] == [3]


def test_a_run_that_was_stored_by_an_earlier_version_is_refused_and_stays(folder: Path) -> None:
    folder.mkdir()
    (folder / "vault.json").write_text("{}")
    (folder / "release").write_bytes(b"leakcap sealed 1")
    for call in (lambda: lc.plan(counted, X, checkpoint=folder, **SMALL), lambda: stored_plan(folder)):
        with pytest.raises(lc.InputError, match="the version that began it"):
            call()
    assert sorted(os.listdir(folder)) == ["release", "vault.json"]
    assert not CALLS
