"""The vault is for its owner alone: modes, owners, links, folders of others."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import leakcap as lc
from leakcap.custody import vault
from leakcap.custody.checkpoint import Checkpoint
from leakcap.custody.vault import FILE, LOCK, Vault
from tests.unit.custody.rows import SECRET, as_nobody, mode, refused, root


@pytest.mark.usefixtures("_umask")
def test_files_and_folders_open_for_their_owner_alone_whatever_the_umask(tmp_path: Path) -> None:
    made = Vault.open(tmp_path / "folder")
    made.write("one", SECRET)
    made.write("one", SECRET)
    made.write("two", SECRET, exclusive=True)
    with Checkpoint(made, 1).alone():
        assert mode(tmp_path / "folder") == 0o700
        assert {mode(path) for path in (tmp_path / "folder").iterdir()} == {0o600}
    assert mode(tmp_path / "keys") == 0o700
    assert mode(tmp_path / "keys" / "key") == 0o600


@pytest.mark.usefixtures("_umask")
def test_nothing_is_ever_open_to_others_while_it_is_written(tmp_path: Path) -> None:
    made = Vault.open(tmp_path / "folder")
    with vault._file(made.folder).writing() as database:
        database.execute("UPDATE vault SET note = 'changed'")
        names = {path.name: mode(path) for path in made.folder.iterdir()}
    assert names == {FILE: 0o600, f"{FILE}-journal": 0o600}


def test_a_folder_that_was_open_to_all_is_closed(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir(mode=0o777)
    (tmp_path / "folder").chmod(0o777)
    Vault.open(tmp_path / "folder")
    assert mode(tmp_path / "folder") == 0o700


@pytest.mark.parametrize("bits", [0o620, 0o602, 0o666])
def test_files_that_others_may_write_are_refused(bits: int, made: Vault) -> None:
    (made.folder / FILE).chmod(bits)
    with pytest.raises(lc.InputError, match="0600"):
        made.read("one")
    with pytest.raises(lc.InputError, match="0600"):
        made.write("one", b"")
    with pytest.raises(lc.InputError):
        Vault.open(made.folder)


def test_a_file_that_others_may_write_is_not_called_damaged(made: Vault) -> None:
    """Whoever removes the folder as told loses the released value, and the next run releases another."""
    (made.folder / FILE).chmod(0o666)
    with pytest.raises(lc.InputError, match="0600"):
        Vault.open(made.folder)


@root
def test_files_of_another_owner_are_refused(made: Vault) -> None:
    os.chown(made.folder / FILE, 12345, 12345)
    with pytest.raises(lc.InputError, match="somebody else"):
        made.read("one")
    with pytest.raises(lc.InputError):
        Vault.open(made.folder)


@root
@pytest.mark.parametrize("end", ["-journal", "-wal"])
def test_a_journal_that_somebody_else_has_planted_is_not_played_back(end: str, made: Vault) -> None:
    planted = made.folder / f"{FILE}{end}"
    planted.write_bytes(b"pages of their own")
    os.chown(planted, 12345, 12345)
    before = (made.folder / FILE).read_bytes()
    assert "somebody else" in refused(lambda: made.read("one"))
    assert "somebody else" in refused(lambda: made.write("one", b""))
    assert (made.folder / FILE).read_bytes() == before


def test_links_in_the_place_of_the_file_or_its_journal_are_not_followed(made: Vault, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("untouched")
    (made.folder / f"{FILE}-journal").symlink_to(elsewhere)
    refused(lambda: made.write("one", b""))
    (made.folder / f"{FILE}-journal").unlink()
    (made.folder / FILE).rename(tmp_path / "moved")
    for target in (tmp_path / "moved", elsewhere, tmp_path / "nowhere"):
        (made.folder / FILE).symlink_to(target)
        refused(lambda: made.read("one"))
        refused(lambda: Vault.open(made.folder))
        (made.folder / FILE).unlink()
    assert elsewhere.read_text() == "untouched"
    assert not (tmp_path / "nowhere").exists()


def test_forgetting_removes_no_file_of_anybody_else(tmp_path: Path) -> None:
    """A checkpoint in a folder that was there before, with the custodian's own work in it."""
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.tex").write_text("years of work")
    with suppress(lc.InputError):  # refusing such a folder is as good
        Vault.open(tmp_path / "thesis").forget()
    assert (tmp_path / "thesis" / "chapter1.tex").exists()


def test_a_folder_brought_back_open_to_all_is_closed_again(made: Vault) -> None:
    made.folder.chmod(0o755)
    assert Vault.open(made.folder).read("one") == SECRET
    assert mode(made.folder) == 0o700


def test_a_link_in_the_place_of_the_lock_is_not_followed(made: Vault, tmp_path: Path) -> None:
    (made.folder / LOCK).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(lc.InputError, match="cannot write"), Checkpoint(made).alone():
        pass
    assert not (tmp_path / "elsewhere").exists()


@root
@pytest.mark.parametrize("call", [Vault.open, Vault.existing, Checkpoint.open, Checkpoint.stored])
def test_a_folder_that_may_not_be_read_is_told_in_our_own_words(call: Callable[[Path], Any], tmp_path: Path) -> None:
    with as_nobody() as place:
        os.seteuid(0)
        (place / "plan").mkdir(mode=0o700)
        os.seteuid(65534)
        assert "Permission denied" in refused(lambda: call(place / "plan"))
        os.seteuid(0)
    assert "too long" in refused(lambda: call(tmp_path / ("n" * 300)))


def test_a_vault_stays_where_it_is_when_the_process_goes_elsewhere(
    made: Vault, tmp_path: Path, monkeypatch: Any
) -> None:
    """Where there may be another one under the same name."""
    for place in ("here", "there"):
        (tmp_path / place).mkdir()
        monkeypatch.chdir(tmp_path / place)
        Vault.open(Path("run")).write("one", place.encode())
    monkeypatch.chdir(tmp_path / "here")
    here, same = Vault.open(Path("run")), Vault.existing(Path("run"))
    monkeypatch.chdir(tmp_path / "there")
    assert here.read("one") == same.read("one") == b"here"


def test_looking_for_a_checkpoint_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "public").mkdir(mode=0o755)
    (tmp_path / "public").chmod(0o755)
    with pytest.raises(lc.InputError, match="no checkpoint"):
        Checkpoint.stored(tmp_path / "public")
    assert not list((tmp_path / "public").iterdir())
    assert mode(tmp_path / "public") == 0o755


@pytest.mark.parametrize("call", [Vault.open, Vault.existing, Checkpoint.open, Checkpoint.stored])
def test_a_folder_of_an_earlier_version_says_what_to_do_and_stays(call: Callable[[Path], Any], tmp_path: Path) -> None:
    """It had a file for every value."""
    for name in ("vault.json", "lock", "start", "worlds-0000001", "release"):
        (tmp_path / name).write_bytes(b"as it was")
    before = sorted(os.listdir(tmp_path))
    words = refused(lambda: call(tmp_path))
    assert "finish it with the version that began it" in words
    assert "another folder" in words
    assert sorted(os.listdir(tmp_path)) == before
