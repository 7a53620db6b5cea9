"""Custodian files: for their owner alone, whole or not there, and never taken for something they are not."""

from __future__ import annotations

import errno
import json
import os
import pickle
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap import vault
from leakcap.errors import MissingExtra
from leakcap.simulate.checkpoint import Checkpoint
from leakcap.vault import HEADER, Vault, private_folder, read_private, write_private

SECRET = b"who took part: 0110100110010110"
root = pytest.mark.skipif(os.geteuid() != 0, reason="needs the right to change owners")
not_root = pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")


@pytest.fixture(autouse=True)
def _own_key(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("LEAKCAP_KEY", str(tmp_path / "keys" / "key"))


@pytest.fixture(params=["sealed", "plain"])
def made(request: Any, tmp_path: Path, monkeypatch: Any) -> Vault:
    """A vault with two files, with and without the extra."""
    if request.param == "plain":
        monkeypatch.setattr(vault, "_can_seal", lambda: False)
    found = Vault.open(tmp_path / "folder")
    assert (found.key is None) == (request.param == "plain")
    found.write("one", SECRET)
    found.write("two", SECRET[::-1])
    return found


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=oct)
def _umask(request: Any) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


# For their owner alone


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
def test_a_file_is_never_open_to_others_while_it_is_written(tmp_path: Path, monkeypatch: Any) -> None:
    seen: list[int] = []
    real = os.fsync

    def look(handle: int) -> None:
        seen.append(stat.S_IMODE(os.fstat(handle).st_mode))
        real(handle)

    monkeypatch.setattr(os, "fsync", look)
    write_private(tmp_path / "file", SECRET)
    assert seen[0] == 0o600


def test_a_folder_that_was_open_to_all_is_closed(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir(mode=0o777)
    (tmp_path / "folder").chmod(0o777)
    Vault.open(tmp_path / "folder")
    assert mode(tmp_path / "folder") == 0o700


@pytest.mark.parametrize("bits", [0o620, 0o602, 0o666])
def test_files_that_others_may_write_are_refused(bits: int, made: Vault) -> None:
    (made.folder / "one").chmod(bits)
    with pytest.raises(lc.InputError, match="0600"):
        made.read("one")
    (made.folder / HEADER).chmod(bits)
    with pytest.raises(lc.InputError):
        Vault.open(made.folder)


def test_a_header_that_others_may_write_is_not_called_damaged(made: Vault) -> None:
    """Whoever removes the folder as told loses the released value, and the next run releases another."""
    (made.folder / HEADER).chmod(0o666)
    with pytest.raises(lc.InputError, match="0600"):
        Vault.open(made.folder)


@root
def test_files_of_another_owner_are_refused(made: Vault) -> None:
    os.chown(made.folder / "one", 12345, 12345)
    with pytest.raises(lc.InputError, match="somebody else"):
        made.read("one")
    os.chown(made.folder / HEADER, 12345, 12345)
    with pytest.raises(lc.InputError):
        Vault.open(made.folder)


def test_forgetting_removes_no_file_of_anybody_else(tmp_path: Path) -> None:
    """A checkpoint in a folder that was there before, with the custodian's own work in it."""
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.tex").write_text("years of work")
    with suppress(lc.InputError):  # refusing such a folder is as good
        Vault.open(tmp_path / "thesis").forget()
    assert (tmp_path / "thesis" / "chapter1.tex").exists()


def test_looking_for_a_checkpoint_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "public").mkdir(mode=0o755)
    (tmp_path / "public").chmod(0o755)
    with pytest.raises(lc.InputError, match="no checkpoint"):
        Checkpoint.stored(tmp_path / "public")
    assert not list((tmp_path / "public").iterdir())
    assert mode(tmp_path / "public") == 0o755


def test_making_a_key_leaves_a_folder_that_was_there_as_it_was(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o755)
    monkeypatch.setenv("LEAKCAP_KEY", str(tmp_path / "shared" / "key"))
    Vault.open(tmp_path / "folder")
    assert mode(tmp_path / "shared") == 0o755


# Whole or not there


def full(*_: Any, **__: Any) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("step", ["replace", "fsync", "fdopen"])
def test_a_write_that_fails_leaves_the_old_file_whole_and_nothing_else(
    step: str, made: Vault, monkeypatch: Any
) -> None:
    before = sorted(os.listdir(made.folder))
    with monkeypatch.context() as patch:
        patch.setattr(os, step, full)
        with pytest.raises((OSError, lc.LeakcapError)):
            made.write("one", b"something else")
    assert made.read("one") == SECRET
    assert sorted(os.listdir(made.folder)) == before


@pytest.mark.parametrize("step", ["link", "fsync", "fdopen"])
def test_an_exclusive_write_that_fails_leaves_nothing(step: str, made: Vault, monkeypatch: Any) -> None:
    before = sorted(os.listdir(made.folder))
    with monkeypatch.context() as patch:
        patch.setattr(os, step, full)
        with pytest.raises((OSError, lc.LeakcapError)):
            made.write("three", SECRET, exclusive=True)
    assert made.read("three") is None
    assert sorted(os.listdir(made.folder)) == before


def test_a_full_disk_is_told_in_our_own_words(made: Vault, monkeypatch: Any) -> None:
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(lc.LeakcapError, match="No space left"):
        made.write("one", SECRET)


class Killed(BaseException):
    """Nothing after it runs, as after kill -9: not even what is to be done finally."""


@pytest.mark.parametrize(("step", "exclusive"), [("replace", False), ("link", True), ("fsync", False)])
def test_a_process_killed_while_it_writes_leaves_a_part_that_is_no_file_and_is_swept(
    step: str, exclusive: bool, made: Vault, monkeypatch: Any
) -> None:
    def kill(*_: Any, **__: Any) -> Any:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(os, step, kill)
        patch.setattr(os, "unlink", kill)
        with pytest.raises(Killed):
            made.write("three", SECRET, exclusive=exclusive)
    (part,) = made.folder.glob(".*.part")
    assert mode(part) == 0o600
    assert made.read("three") is None
    assert made.names("th") == []
    made.sweep()
    assert part.exists(), "the process lives: it may still be writing"
    dead = part.rename(part.with_name(part.name.replace(str(os.getpid()), "99999999")))
    made.sweep()
    assert not dead.exists()
    assert made.names() == ["one", "two"]


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


# Exclusive


def test_an_exclusive_write_never_replaces(made: Vault) -> None:
    with pytest.raises(FileExistsError):
        made.write("one", b"something else", exclusive=True)
    assert made.read("one") == SECRET


def test_of_many_threads_exactly_one_writes(made: Vault) -> None:
    start = threading.Barrier(8)
    won: list[int] = []

    def race(number: int) -> None:
        start.wait()
        try:
            made.write("release", str(number).encode() * 1000, exclusive=True)
            won.append(number)
        except FileExistsError:
            pass

    racers = [threading.Thread(target=race, args=(number,)) for number in range(8)]
    for one in racers:
        one.start()
    for one in racers:
        one.join()
    assert len(won) == 1
    assert made.read("release") == str(won[0]).encode() * 1000
    assert not list(made.folder.glob(".*.part"))


def test_of_many_processes_one_makes_key_and_folder_and_all_can_read(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from leakcap.vault import Vault\n"
        "time.sleep(max(0, float(sys.argv[2]) - time.time()))\n"
        "Vault.open(Path(sys.argv[1])).write(sys.argv[3], b'mine')"
    )
    import time

    at = str(time.time() + 2.0)
    running = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "folder"), at, f"file{i}"]) for i in range(4)
    ]
    assert [one.wait(60) for one in running] == [0] * 4
    again = Vault.open(tmp_path / "folder")
    assert [again.read(f"file{i}") for i in range(4)] == [b"mine"] * 4
    assert sorted(os.listdir(tmp_path / "keys")) == ["key"]


# Tampering


def refused(call: Callable[[], Any]) -> str:
    with pytest.raises(lc.InputError) as caught:
        call()
    assert SECRET.decode() not in str(caught.value)
    assert caught.value.__cause__ is None
    return str(caught.value)


def test_no_byte_of_a_file_can_be_changed(made: Vault) -> None:
    path = made.folder / "one"
    stored = path.read_bytes()
    for place in range(len(stored)):
        for bit in (0x01, 0x80):
            path.write_bytes(stored[:place] + bytes([stored[place] ^ bit]) + stored[place + 1 :])
            refused(lambda: made.read("one"))
    path.write_bytes(stored)
    assert made.read("one") == SECRET


def test_a_file_can_be_neither_cut_nor_lengthened(made: Vault) -> None:
    path = made.folder / "one"
    stored = path.read_bytes()
    for length in range(len(stored)):
        if made.key is None or not NONCE[0] <= length < NONCE[1]:
            path.write_bytes(stored[:length])
            refused(lambda: made.read("one"))
    for more in (b"\0", b"\n", stored):
        path.write_bytes(stored + more)
        refused(lambda: made.read("one"))


NONCE = len(vault.SEALED), len(vault.SEALED) + 8


@pytest.mark.parametrize("length", NONCE)
def test_a_sealed_file_cut_inside_its_nonce_is_a_clear_error(length: int, tmp_path: Path) -> None:
    made = Vault.open(tmp_path / "folder")
    made.write("one", SECRET)
    path = made.folder / "one"
    path.write_bytes(path.read_bytes()[: min(length, NONCE[1] - 1)])
    refused(lambda: made.read("one"))


def test_two_files_cannot_be_exchanged(made: Vault) -> None:
    one, two = made.folder / "one", made.folder / "two"
    first, second = one.read_bytes(), two.read_bytes()
    one.write_bytes(second)
    two.write_bytes(first)
    refused(lambda: made.read("one"))
    refused(lambda: made.read("two"))


def test_a_sealed_file_of_another_folder_does_not_open(tmp_path: Path) -> None:
    here, there = Vault.open(tmp_path / "here"), Vault.open(tmp_path / "there")
    assert here.key != there.key
    here.write("one", SECRET)
    there.write("one", b"other")
    (here.folder / "one").write_bytes((there.folder / "one").read_bytes())
    refused(lambda: here.read("one"))


def test_a_sealed_file_does_not_open_with_another_key(tmp_path: Path, monkeypatch: Any) -> None:
    Vault.open(tmp_path / "folder").write("one", SECRET)
    monkeypatch.setenv("LEAKCAP_KEY", str(tmp_path / "other" / "key"))
    refused(lambda: Vault.open(tmp_path / "folder").read("one"))


def test_sealed_files_do_not_show_what_they_hold(tmp_path: Path) -> None:
    made = Vault.open(tmp_path / "folder")
    made.write("one", SECRET * 100)
    assert SECRET not in (made.folder / "one").read_bytes()


def test_a_plain_file_is_no_sealed_one_and_a_sealed_no_plain_one(tmp_path: Path, monkeypatch: Any) -> None:
    sealed = Vault.open(tmp_path / "sealed")
    sealed.write("one", SECRET)
    with monkeypatch.context() as patch:
        patch.setattr(vault, "_can_seal", lambda: False)
        plain = Vault.open(tmp_path / "plain")
        plain.write("one", SECRET)
        patch.undo()
    swapped = (plain.folder / "one").read_bytes(), (sealed.folder / "one").read_bytes()
    (sealed.folder / "one").write_bytes(swapped[0])
    (plain.folder / "one").write_bytes(swapped[1])
    refused(lambda: Vault.open(tmp_path / "sealed").read("one"))
    refused(lambda: Vault.open(tmp_path / "plain").read("one"))


def test_a_folder_begun_without_the_extra_stays_readable_with_it(tmp_path: Path, monkeypatch: Any) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(vault, "_can_seal", lambda: False)
        Vault.open(tmp_path / "folder").write("one", SECRET)
    assert Vault.open(tmp_path / "folder").read("one") == SECRET


def test_sealed_files_without_the_extra_name_it(tmp_path: Path, monkeypatch: Any) -> None:
    Vault.open(tmp_path / "folder").write("one", SECRET)
    monkeypatch.setattr(vault, "_can_seal", lambda: False)
    with pytest.raises(MissingExtra, match=r"leakcap\[vault\]"):
        Vault.open(tmp_path / "folder")


HEADERS: dict[str, Any] = {
    "cut": lambda text: text[:20],
    "empty": lambda text: "",
    "a list": lambda text: "[]",
    "a number": lambda text: "5",
    "no salt": lambda text: json.dumps({"note": "", "format": 1}),
    "another salt": lambda text: json.dumps(json.loads(text) | {"salt": "ab" * 32}),
    "an empty salt": lambda text: json.dumps(json.loads(text) | {"salt": ""}),
    "no bytes": pytest.param(
        lambda text: json.dumps(json.loads(text) | {"salt": "zz" * 32}),
    ),
    "a number for salt": pytest.param(
        lambda text: json.dumps(json.loads(text) | {"salt": 5}),
    ),
}


@pytest.mark.parametrize("damage", HEADERS.values(), ids=list(HEADERS))
def test_a_damaged_header_is_a_clear_error(damage: Any, tmp_path: Path) -> None:
    Vault.open(tmp_path / "folder").write("one", SECRET)
    header = tmp_path / "folder" / HEADER
    header.write_text(damage(header.read_text()))
    refused(lambda: Vault.open(tmp_path / "folder").read("one"))


def test_a_header_that_says_plain_does_not_open_sealed_files(tmp_path: Path) -> None:
    Vault.open(tmp_path / "folder").write("one", SECRET)
    header = tmp_path / "folder" / HEADER
    header.write_text(json.dumps(json.loads(header.read_text()) | {"salt": None}))
    refused(lambda: Vault.open(tmp_path / "folder").read("one"))


def test_no_nonce_is_used_twice(tmp_path: Path) -> None:
    made = Vault.open(tmp_path / "folder")
    start = len(vault.SEALED)
    nonces = {made._closed("one", b"")[start : start + 12] for _ in range(20_000)}
    assert len(nonces) == 20_000


def test_missing_files_are_none_and_names_are_in_order(made: Vault) -> None:
    assert made.read("three") is None
    made.write("worlds-0000010", b"")
    made.write("worlds-0000002", b"")
    assert made.names("worlds-") == ["worlds-0000002", "worlds-0000010"]
    assert HEADER not in made.names()


# Links


def test_a_link_under_the_name_to_be_written_is_replaced_not_followed(made: Vault, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("untouched")
    (made.folder / "three").symlink_to(elsewhere)
    with pytest.raises(FileExistsError):
        made.write("three", SECRET, exclusive=True)
    made.write("three", SECRET)
    assert elsewhere.read_text() == "untouched"
    assert not (made.folder / "three").is_symlink()
    assert made.read("three") == SECRET


def test_links_under_the_names_of_parts_cannot_be_planted(made: Vault, tmp_path: Path, monkeypatch: Any) -> None:
    """Even somebody who guessed the name of the part could only stop the write."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("untouched")
    monkeypatch.setattr(vault.secrets, "token_hex", lambda _: "guessed")
    (made.folder / f".three.{os.getpid()}.guessed.part").symlink_to(elsewhere)
    with pytest.raises((FileExistsError, lc.LeakcapError)):
        made.write("three", SECRET)
    assert elsewhere.read_text() == "untouched"


@root
def test_a_link_to_a_file_of_another_owner_is_not_read(made: Vault, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes((made.folder / "one").read_bytes())
    os.chown(elsewhere, 12345, 12345)
    (made.folder / "one").unlink()
    (made.folder / "one").symlink_to(elsewhere)
    refused(lambda: made.read("one"))


def test_a_file_in_place_of_the_folder_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    for place in (tmp_path / "taken", tmp_path / "taken" / "below"):
        with pytest.raises(lc.InputError, match="choose another place"):
            private_folder(place)


# The key


def test_the_key_lies_where_the_user_says_or_in_the_users_own_folder(tmp_path: Path, monkeypatch: Any) -> None:
    assert vault._key_file() == tmp_path / "keys" / "key"
    monkeypatch.delenv("LEAKCAP_KEY")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert vault._key_file() == tmp_path / "config" / "leakcap" / "vault.key"
    Vault.open(tmp_path / "folder").write("one", SECRET)
    assert mode(tmp_path / "config" / "leakcap") == 0o700
    assert mode(tmp_path / "config" / "leakcap" / "vault.key") == 0o600
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert vault._key_file() == tmp_path / "home" / ".config" / "leakcap" / "vault.key"


def test_the_key_is_made_once_and_lies_outside_of_the_folder(tmp_path: Path) -> None:
    Vault.open(tmp_path / "folder").write("one", SECRET)
    key = (tmp_path / "keys" / "key").read_bytes()
    assert Vault.open(tmp_path / "folder").read("one") == SECRET
    Vault.open(tmp_path / "other")
    assert (tmp_path / "keys" / "key").read_bytes() == key
    assert len(bytes.fromhex(key.decode())) == 32
    for path in (tmp_path / "folder").iterdir():
        assert key not in path.read_bytes()
        assert bytes.fromhex(key.decode()) not in path.read_bytes()


WRONG_KEYS = {"short": "ab" * 31, "long": "ab" * 33, "empty": "", "no hex": "zz" * 32, "not text": "\u00ff" * 64}


@pytest.mark.parametrize("name", WRONG_KEYS)
def test_a_key_file_that_is_no_key_is_a_clear_error_and_stays(name: str, tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir()
    key = tmp_path / "keys" / "key"
    key.write_text(WRONG_KEYS[name])
    key.chmod(0o600)
    message = refused(lambda: Vault.open(tmp_path / "folder"))
    assert "LEAKCAP_KEY" in message
    assert not WRONG_KEYS[name] or WRONG_KEYS[name] not in message
    assert key.read_text() == WRONG_KEYS[name]


def test_a_key_with_a_line_end_is_a_key(tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "key").write_text("ab" * 32 + "\n")
    (tmp_path / "keys" / "key").chmod(0o600)
    assert Vault.open(tmp_path / "folder").key is not None


def test_a_key_that_cannot_be_read_or_made_is_a_clear_error(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path, tmp_path / "file" / "key"):  # a folder; below a file
        monkeypatch.setenv("LEAKCAP_KEY", str(place))
        assert "LEAKCAP_KEY" in refused(lambda: Vault.open(tmp_path / "folder"))
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    monkeypatch.setenv("LEAKCAP_KEY", str(tmp_path / "dangling"))
    assert "LEAKCAP_KEY" in refused(lambda: Vault.open(tmp_path / "folder"))


@not_root
def test_an_unreadable_key_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "key").write_text("ab" * 32)
    (tmp_path / "keys" / "key").chmod(0o000)
    assert "LEAKCAP_KEY" in refused(lambda: Vault.open(tmp_path / "folder"))


@pytest.mark.parametrize(
    "bits",
    [
        0o620,
        0o606,
        0o644,
        0o640,
    ],
    ids=oct,
)
def test_a_key_that_others_may_read_or_write_is_refused(bits: int, tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "key").write_text("ab" * 32)
    (tmp_path / "keys" / "key").chmod(bits)
    refused(lambda: Vault.open(tmp_path / "folder"))


@root
def test_a_key_of_another_owner_is_refused_also_behind_a_link(tmp_path: Path, monkeypatch: Any) -> None:
    planted = tmp_path / "planted"
    planted.write_text("ab" * 32)
    planted.chmod(0o600)
    os.chown(planted, 12345, 12345)
    (tmp_path / "link").symlink_to(planted)
    for place in (planted, tmp_path / "link"):
        monkeypatch.setenv("LEAKCAP_KEY", str(place))
        refused(lambda: Vault.open(tmp_path / "folder"))


def test_the_key_is_in_no_text_and_in_no_pickle_that_leaves(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(24, 2))
    options: dict[str, Any] = {"cap": lc.mutual_information(0.3), "worlds": 16, "draws": 256, "seed": 1}
    plan = lc.plan(np.mean, X, checkpoint=tmp_path / "plan", **options)
    release = plan.release()
    own = (tmp_path / "keys" / "key").read_text()
    keys = [bytes.fromhex(own), plan._checkpoint._vault.key]  # type: ignore[union-attr]
    assert plan._checkpoint is not None
    texts = [repr(plan), repr(plan._checkpoint), repr(plan._checkpoint._vault), repr(release), str(plan.summary())]
    texts += [str(plan.certificate), os.environ["LEAKCAP_KEY"]]
    left = pickle.dumps(release) + pickle.dumps(plan.certificate) + "".join(texts).encode()
    for key in keys:
        assert key not in left
        assert key.hex().encode() not in left
        assert repr(key).encode() not in left
    with pytest.raises(lc.LeakcapError):
        pickle.dumps(plan)
    assert "key=" not in repr(plan._checkpoint._vault)
    assert keys[1] == asdict(plan._checkpoint._vault)["key"], "the search was for the right thing"


# Forgetting


def test_forgetting_removes_everything_the_salt_first(made: Vault, monkeypatch: Any) -> None:
    (made.folder / ".one.1.ab.part").write_bytes(b"half")
    order: list[str] = []
    real = Path.unlink

    def noted(path: Path, missing_ok: bool = False) -> None:
        order.append(path.name)
        real(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", noted)
    made.forget()
    assert order[0] == HEADER
    assert not made.folder.exists()


def test_a_forgotten_folder_that_was_left_half_way_opens_nothing(tmp_path: Path) -> None:
    """Killed after the first step: what is left is noise."""
    made = Vault.open(tmp_path / "folder")
    made.write("one", SECRET)
    (tmp_path / "folder" / HEADER).unlink()
    refused(lambda: Vault.open(tmp_path / "folder").read("one"))


def test_forgetting_twice_is_no_error(made: Vault) -> None:
    made.forget()
    made.forget()


def test_reading_gives_back_exactly_what_was_written(made: Vault) -> None:
    for content in (b"", b"\0", os.urandom(100_000)):
        made.write("three", content)
        assert made.read("three") == content
    assert read_private(made.folder / "three") != content
