"""The user's key: made once, theirs alone, never beside what it opens, and in nothing that leaves."""

from __future__ import annotations

import os
import pickle
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.custody import keys
from leakcap.custody.vault import Vault
from tests.unit.custody.rows import SECRET, mode, not_root, refused, root


def test_making_a_key_leaves_a_folder_that_was_there_as_it_was(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o755)
    monkeypatch.setenv("LEAKCAP_KEY", str(tmp_path / "shared" / "key"))
    Vault.open(tmp_path / "folder")
    assert mode(tmp_path / "shared") == 0o755


def test_the_key_lies_where_the_user_says_or_in_the_users_own_folder(tmp_path: Path, monkeypatch: Any) -> None:
    assert keys.key_file() == tmp_path / "keys" / "key"
    monkeypatch.delenv("LEAKCAP_KEY")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert keys.key_file() == tmp_path / "config" / "leakcap" / "vault.key"
    Vault.open(tmp_path / "folder").write("one", SECRET)
    assert mode(tmp_path / "config" / "leakcap") == 0o700
    assert mode(tmp_path / "config" / "leakcap" / "vault.key") == 0o600
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert keys.key_file() == tmp_path / "home" / ".config" / "leakcap" / "vault.key"


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


def test_the_key_of_a_checkpoint_is_derived_by_the_standard(tmp_path: Path) -> None:
    """HKDF of RFC 5869, as the library for sealing computes it."""
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    Vault.open(tmp_path / "folder")
    own = bytes.fromhex((tmp_path / "keys" / "key").read_text())
    for salt in (b"s" * 32, b"t" * 20):
        expected = HKDF(SHA256(), length=32, salt=salt, info=b"leakcap custodian folder").derive(own)
        assert keys.derived_key(salt, True) == keys.derived_key(salt, False) == expected


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
    secret = [bytes.fromhex(own), plan._checkpoint._vault.key]  # type: ignore[union-attr]
    assert plan._checkpoint is not None
    texts = [repr(plan), repr(plan._checkpoint), repr(plan._checkpoint._vault), repr(release), str(plan.summary())]
    texts += [str(plan.certificate), os.environ["LEAKCAP_KEY"]]
    left = pickle.dumps(release) + pickle.dumps(plan.certificate) + "".join(texts).encode()
    for key in secret:
        assert key not in left
        assert key.hex().encode() not in left
        assert repr(key).encode() not in left
    with pytest.raises(lc.LeakcapError):
        pickle.dumps(plan)
    assert "key=" not in repr(plan._checkpoint._vault)
    assert secret[1] == asdict(plan._checkpoint._vault)["key"], "the search was for the right thing"
