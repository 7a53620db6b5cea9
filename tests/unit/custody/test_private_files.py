"""Single files of the custodian's: for their owner alone, whole or not there."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Any

import pytest

import leakcap as lc
from leakcap.custody import private_files
from leakcap.custody.private_files import private_folder, read_private, sweep_parts, write_private
from tests.unit.custody.rows import SECRET, mode, refused, root


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file that was written before, alone in its folder."""
    path = private_folder(tmp_path / "folder") / "one"
    write_private(path, SECRET)
    return path


@pytest.mark.usefixtures("_umask")
def test_a_file_is_never_open_to_others_while_it_is_written(tmp_path: Path, monkeypatch: Any) -> None:
    seen: list[int] = []
    real = os.fsync

    def look(handle: int) -> None:
        seen.append(stat.S_IMODE(os.fstat(handle).st_mode))
        real(handle)

    monkeypatch.setattr(os, "fsync", look)
    write_private(tmp_path / "file", SECRET)
    assert seen[0] == 0o600


@pytest.mark.parametrize("bits", [0o620, 0o602, 0o666])
def test_files_that_others_may_write_are_refused(bits: int, file: Path) -> None:
    file.chmod(bits)
    with pytest.raises(lc.InputError, match="0600"):
        read_private(file)


@root
def test_files_of_another_owner_are_refused(file: Path) -> None:
    os.chown(file, 12345, 12345)
    with pytest.raises(lc.InputError, match="somebody else"):
        read_private(file)


# Whole or not there


def full(*_: Any, **__: Any) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("step", ["replace", "fsync", "fdopen"])
def test_a_write_that_fails_leaves_the_old_file_whole_and_nothing_else(step: str, file: Path, monkeypatch: Any) -> None:
    before = sorted(os.listdir(file.parent))
    with monkeypatch.context() as patch:
        patch.setattr(os, step, full)
        with pytest.raises((OSError, lc.LeakcapError)):
            write_private(file, b"something else")
    assert read_private(file) == SECRET
    assert sorted(os.listdir(file.parent)) == before


@pytest.mark.parametrize("step", ["link", "fsync", "fdopen"])
def test_an_exclusive_write_that_fails_leaves_nothing(step: str, file: Path, monkeypatch: Any) -> None:
    before = sorted(os.listdir(file.parent))
    with monkeypatch.context() as patch:
        patch.setattr(os, step, full)
        with pytest.raises((OSError, lc.LeakcapError)):
            write_private(file.with_name("three"), SECRET, exclusive=True)
    assert not file.with_name("three").exists()
    assert sorted(os.listdir(file.parent)) == before


def test_a_full_disk_is_told_in_our_own_words(file: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(lc.LeakcapError, match="No space left"):
        write_private(file, SECRET)


class Killed(BaseException):
    """Nothing after it runs, as after kill -9: not even what is to be done finally."""


@pytest.mark.parametrize(("step", "exclusive"), [("replace", False), ("link", True), ("fsync", False)])
def test_a_process_killed_while_it_writes_leaves_a_part_that_is_no_file_and_is_swept(
    step: str, exclusive: bool, file: Path, monkeypatch: Any
) -> None:
    def kill(*_: Any, **__: Any) -> Any:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(os, step, kill)
        patch.setattr(os, "unlink", kill)
        with pytest.raises(Killed):
            write_private(file.with_name("three"), SECRET, exclusive=exclusive)
    (part,) = file.parent.glob(".*.part")
    assert mode(part) == 0o600
    assert not file.with_name("three").exists()
    sweep_parts(file.parent)
    assert part.exists(), "the process lives: it may still be writing"
    dead = part.rename(part.with_name(part.name.replace(str(os.getpid()), "99999999")))
    sweep_parts(file.parent)
    assert not dead.exists()
    assert os.listdir(file.parent) == ["one"]


def test_what_was_written_exclusively_survives_a_power_cut(tmp_path: Path, monkeypatch: Any) -> None:
    """The file is flushed before it gets its name, and its folder after it."""
    steps: list[str] = []
    for name in ("fsync", "link"):
        real = getattr(os, name)

        def noted(*given: Any, name: str = name, real: Any = real) -> None:
            folder = name == "fsync" and stat.S_ISDIR(os.fstat(given[0]).st_mode)
            steps.append("folder" if folder else name)
            real(*given)

        monkeypatch.setattr(os, name, noted)
    write_private(tmp_path / "release", SECRET, exclusive=True)
    assert steps == ["fsync", "link", "folder"]


def test_an_exclusive_write_never_replaces(file: Path) -> None:
    with pytest.raises(FileExistsError):
        write_private(file, b"something else", exclusive=True)
    assert read_private(file) == SECRET


# Links


def test_a_link_under_the_name_to_be_written_is_replaced_not_followed(file: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("untouched")
    three = file.with_name("three")
    three.symlink_to(elsewhere)
    with pytest.raises(FileExistsError):
        write_private(three, SECRET, exclusive=True)
    write_private(three, SECRET)
    assert elsewhere.read_text() == "untouched"
    assert not three.is_symlink()
    assert read_private(three) == SECRET


def test_links_under_the_names_of_parts_cannot_be_planted(file: Path, tmp_path: Path, monkeypatch: Any) -> None:
    """Even somebody who guessed the name of the part could only stop the write."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("untouched")
    monkeypatch.setattr(private_files.secrets, "token_hex", lambda _: "guessed")
    file.with_name(f".three.{os.getpid()}.guessed.part").symlink_to(elsewhere)
    with pytest.raises((FileExistsError, lc.LeakcapError)):
        write_private(file.with_name("three"), SECRET)
    assert elsewhere.read_text() == "untouched"


@root
def test_a_link_to_a_file_of_another_owner_is_not_read(file: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(file.read_bytes())
    os.chown(elsewhere, 12345, 12345)
    file.unlink()
    file.symlink_to(elsewhere)
    refused(lambda: read_private(file))


def test_a_file_in_place_of_the_folder_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    for place in (tmp_path / "taken", tmp_path / "taken" / "below"):
        with pytest.raises(lc.InputError, match="choose another place"):
            private_folder(place)
