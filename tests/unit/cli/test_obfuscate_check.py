"""Keys and folders: what was altered, is foreign, open to others or lost is noticed, and said what to do about."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leakcap.certificates.signatures import list_of_files
from leakcap.obfuscation import Encoder
from leakcap.planning.released import forget_released
from tests.unit.cli.encoding import ENCODE, run, trained, write_pool
from tests.unit.obfuscation.pools import FEW, pool

SERVER, OWNER, KEY = Path("out/server"), Path("out/owner"), Path("out/owner/encoding.key")


@pytest.fixture
def encoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_key: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    write_pool(tmp_path)
    assert run(*ENCODE, "--out", "out") == 0
    return tmp_path


def said(capsys: Any) -> str:
    out, err = capsys.readouterr()
    return " ".join((out + err).split())


def flip(path: Path, place: int = -1) -> None:
    whole = bytearray(path.read_bytes())
    whole[place] ^= 1
    path.write_bytes(bytes(whole))


def altered_with_its_list() -> None:
    """By somebody who knows how the list is made, and has no key to sign it."""
    flip(SERVER / "features.npy")
    names = ("features.npy", "labels.npy", "network.txt", "certificate.json", "certificate.txt", "page.html")
    (SERVER / "SHA256SUMS").write_bytes(list_of_files({name: (SERVER / name).read_bytes() for name in names}))


def foreign_key() -> None:
    """Of another encoding, sealed by the same owner."""
    made = Encoder(12, **FEW, draws=0, noise=0.1)
    made.encode(*pool())
    KEY.unlink()
    made.save_key(KEY)


CHANGES: dict[str, tuple[Callable[[], object], str]] = {
    "encoded rows": (lambda: flip(SERVER / "features.npy"), "NO they are as they were sent"),
    "labels": (lambda: flip(SERVER / "labels.npy"), "NO they are as they were sent"),
    "rows and their list": (altered_with_its_list, "NO they are as they were sent"),
    "the words of the certificate": (lambda: flip(SERVER / "certificate.txt", 9), "NO they are as they were sent"),
    "a certificate that is none": (lambda: flip(SERVER / "certificate.json", 0), "NO the certificate can be read"),
    "a file gone": ((SERVER / "labels.npy").unlink, "NO all files for the server are there"),
    "a file more": (lambda: (SERVER / "notes.txt").write_text("of the owner"), "NO nothing else lies beside them"),
    "the page": (
        lambda: shutil.copy(OWNER / "before-and-after.html", SERVER),
        "NO nothing else lies beside them",
    ),
    "a list that is none": (lambda: (OWNER / "sent.sha256").write_text("nothing"), "NO they are as they were sent"),
    "a key that others read": (lambda: KEY.chmod(0o644), "chmod 600 it, and ask who has read it"),
    "a key that others write": (lambda: KEY.chmod(0o620), "chmod 600"),
    "a page that others read": (lambda: (OWNER / "before-and-after.html").chmod(0o604), "NO nobody else may read"),
    "an open folder": (lambda: OWNER.chmod(0o755), "NO nobody else may read"),
    "an altered key": (lambda: flip(KEY), "does not open"),
    "another salt": (lambda: flip(KEY, 30), "does not open"),
    "another start of the key": (lambda: flip(KEY, 0), "is no key of an encoding"),
    "a key of another set": (foreign_key, "NO it is the key of this encoded set"),
    "no key": (KEY.unlink, "without the key the model says nothing"),
    "no owner's folder": (lambda: shutil.rmtree(OWNER), "the owner's folder is gone"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_check_notices(encoded: Path, capsys: Any, change: str) -> None:
    assert run("check", "out") == 0, "as it was written, it holds"
    assert "NO" not in said(capsys)
    make, words = CHANGES[change]
    make()
    assert run("check", "out") == 1
    assert words in said(capsys)


def test_a_key_that_somebody_else_sealed_does_not_open(encoded: Path, capsys: Any, monkeypatch: Any) -> None:
    trained(SERVER)
    monkeypatch.setenv("LEAKCAP_KEY", str(encoded / "other.key"))
    assert run("check", "out") == 1
    assert "set LEAKCAP_KEY to the key that sealed it" in said(capsys)
    assert run("predict", "model.npz", "pool.csv", "--key", str(KEY), "--out", "found.csv") == 2
    assert not Path("found.csv").exists()


def test_folders_of_nothing_are_refused(encoded: Path, capsys: Any) -> None:
    assert run("check", "elsewhere") == 2
    assert "holds no encoded set" in said(capsys)


@pytest.mark.parametrize("change", ["a key that others read", "an altered key", "another start of the key", "no key"])
def test_nothing_is_predicted_with_such_a_key(encoded: Path, capsys: Any, change: str) -> None:
    trained(SERVER)
    make, words = CHANGES[change]
    make()
    assert run("predict", "model.npz", "pool.csv", "--key", str(KEY), "--out", "found.csv") == 2
    assert words in said(capsys) and not Path("found.csv").exists()


def test_a_lost_key_is_a_lost_model(encoded: Path, capsys: Any) -> None:
    """Neither a second encoding nor another key brings it back: another key's answers are no better than guesses."""
    trained(SERVER)
    KEY.unlink()
    assert run(*ENCODE, "--out", "again") == 4
    assert "encoded or released before" in said(capsys)
    assert not Path("again").exists()


def test_another_key_is_no_better_than_guesses(encoded: Path) -> None:
    """Mean of 40 other keys: 1/3 by luck; above .75 once in a million runs at most, by Hoeffding's inequality."""
    X, y = pool()
    forget_released()
    own = Encoder(12, **FEW, draws=0, noise=0.001)
    weights, *_ = np.linalg.lstsq(*own.encode(X, y), rcond=None)
    others = []
    for _ in range(40):
        forget_released()
        other = Encoder(12, **FEW, draws=0, noise=0.001)
        other.encode(X, y)
        others.append(np.mean(other.predict(lambda rows: rows @ weights, X) == y))
    assert np.mean(others) < 0.75 < np.mean(own.predict(lambda rows: rows @ weights, X) == y)


def test_a_lost_model_is_trained_anew(encoded: Path, capsys: Any) -> None:
    predict = ["predict", "model.npz", "pool.csv", "--key", str(KEY), "--out"]
    trained(SERVER)
    assert run(*predict, "found.csv") == 0
    Path("model.npz").unlink()
    assert run(*predict, "lost.csv") == 2
    assert "trained anew" in said(capsys) and not Path("lost.csv").exists()
    trained(SERVER)
    assert run(*predict, "again.csv") == 0
    assert Path("again.csv").read_bytes() == Path("found.csv").read_bytes()


def test_a_model_of_another_set_is_refused(encoded: Path, capsys: Any) -> None:
    np.savez("model.npz", weight_0=np.zeros((5, 3)), bias_0=np.zeros(3))
    assert run("predict", "model.npz", "pool.csv", "--key", str(KEY), "--out", "found.csv") == 2
    assert "trained on another encoded set" in said(capsys)


def test_the_owners_list_is_of_what_was_sent(encoded: Path) -> None:
    lines = (OWNER / "sent.sha256").read_text().splitlines()[1:]
    told = dict(reversed(line.split("  ")) for line in lines)
    assert told == {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in SERVER.iterdir()}
