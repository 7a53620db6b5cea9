"""An encoding that is killed at any step: nothing half-written is for the server, and the pool is encoded once at most.

Killed after the ledger knows of it, it is spent, and what was not written is lost: a second set would be worse.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from leakcap.cli import main, obfuscate
from leakcap.custody import folders, private_files
from leakcap.custody.encodings import PoolAccount
from leakcap.noise import OperatingSystem
from leakcap.obfuscation import Key
from leakcap.obfuscation import encoder as encoding
from tests.kills.killing import PYTHON, Moment, run
from tests.unit.cli.encoding import ENCODE, write_pool

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
SERVER = {
    "SHA256SUMS",
    "SHA256SUMS.sig",
    "certificate.json",
    "certificate.txt",
    "features.npy",
    "labels.npy",
    "network.txt",
    "page.html",
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_key: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LEAKCAP_LEDGER", f"sqlite:///{tmp_path}/ledger.db")
    write_pool(tmp_path)
    return tmp_path


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def before(holder: Any, name: str) -> Callable[[], None]:
    """Dies where this would be called."""
    return lambda: setattr(holder, name, lambda *given, **more: die())


def after(holder: Any, name: str) -> Callable[[], None]:
    """Dies when this has been done."""

    def prepare() -> None:
        plain = getattr(holder, name)

        def dying(*given: Any, **more: Any) -> None:
            plain(*given, **more)
            die()

        setattr(holder, name, dying)

    return prepare


def amid(holder: Any, name: str, calls: int, ending: str = "") -> Callable[[], None]:
    """Dies at one call of many, of a function of the system: of `holder` alone, and for such a file alone."""

    def prepare() -> None:
        plain, left = getattr(os, name), [calls]

        def dying(*given: Any, **more: Any) -> Any:
            left[0] -= str(given[-1]).endswith(ending)
            if not left[0]:
                die()
            return plain(*given, **more)

        holder.os = SimpleNamespace(**{**vars(os), name: dying})

    return prepare


# At which step; whether the pool is spent then, and whether the server has its set.
STEPS: dict[str, tuple[Callable[[], None], bool, bool]] = {
    "before the ledger": (before(PoolAccount, "take"), False, False),
    "after the ledger": (after(PoolAccount, "take"), True, False),
    "after the drawing": (after(encoding, "draw_encoded"), True, False),
    "before the key": (before(Key, "save"), True, False),
    "amid the key": (amid(private_files, "link", 1, "encoding.key"), True, False),
    "after the key": (after(Key, "save"), True, False),
    "before the server's files": (before(folders.Folders, "publish"), True, False),
    "amid the server's files": (amid(folders, "fsync", 3), True, False),
    "all written, none shown": (amid(folders, "rename", 1), True, False),
    "after the server's files": (after(folders.Folders, "publish"), True, True),
    "before the page": (before(obfuscate, "owner_page"), True, True),
}


def killed(prepare: Callable[[], None], out: str = "out") -> None:
    """A process of its own that encodes, and kills itself on the way."""
    child = os.fork()
    if not child:
        try:
            OperatingSystem().below(2)  # tests draw from streams with a seed: processes must not draw alike
            prepare()
            encode(out)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def encode(out: str) -> int:
    return ended(*ENCODE, "--out", out, "--quiet")


def ended(*words: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(["obfuscate", *words])
    return int(end.value.code or 0)


def check_whole(out: Path) -> bool:
    """The server's folder is complete, with a key that fits, or not there at all; whether it is there."""
    named = {one.name for one in out.iterdir() if not one.name.startswith(".")} if out.exists() else set()
    assert named <= {"server", "owner"}
    if "server" not in named:
        return False
    assert {one.name for one in (out / "server").iterdir()} == SERVER, "half-written"
    assert (out / "owner" / "encoding.key").exists(), "an encoded set without its key"
    assert ended("check", str(out), "--quiet") == 0
    return True


@pytest.mark.parametrize("step", STEPS)
def test_an_encoding_that_is_killed_shows_the_server_all_or_nothing(step: str, here: Path) -> None:
    prepare, spent, shown = STEPS[step]
    killed(prepare)
    assert check_whole(Path("out")) == shown
    kept = {one: one.read_bytes() for one in sorted(Path("out").rglob("*")) if one.is_file()}
    for out in ("out", "other"):
        assert encode(out) == (4 if spent or (out == "other") else 0), "of two sets of one pool one is refused"
        assert check_whole(Path(out)) == (out == "out" and (shown or not spent))
    if spent:
        assert {one: one.read_bytes() for one in sorted(Path("out").rglob("*")) if one.is_file()} == kept
    assert not Path("other").exists()


@pytest.mark.parametrize("number", [2, pytest.param(40, marks=pytest.mark.slow)])
def test_an_encoding_killed_at_random(number: int, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command as it is typed, from the start of Python to the last file."""
    rng = np.random.default_rng(number)
    signs = [("", 3.0), ("owner", 0.02), ("owner/encoding.key", 0.02), (".public.*", 0.005), ("server", 0.01)]
    for kill in range(number):
        monkeypatch.setenv("LEAKCAP_LEDGER", f"sqlite:///{here}/ledger{kill}.db")
        sign, seconds = signs[-1 - kill % len(signs)]
        out = here / f"out{kill}"
        command = [PYTHON, "-m", "leakcap", "obfuscate", *ENCODE, "--out", str(out), "--quiet"]
        run(command, out, Moment(sign, float(rng.uniform(0, seconds))))
        shown, key = check_whole(out), (out / "owner" / "encoding.key").exists()
        again = encode(str(out) if not out.exists() else f"again{kill}")
        assert again == 4 if shown or key else again in (0, 4)


def test_the_check_sees_files_that_are_written_one_by_one(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted twin: a folder that does not appear in one step."""

    def one_by_one(self: folders.Folders, files: dict[str, str | bytes]) -> None:
        self.public.mkdir()
        for place, (name, content) in enumerate(files.items()):
            (self.public / name).write_bytes(content.encode() if isinstance(content, str) else content)
            if place == 2:
                die()

    killed(lambda: setattr(folders.Folders, "publish", one_by_one))
    with pytest.raises(AssertionError, match="half-written"):
        check_whole(Path("out"))


def test_the_check_sees_a_set_that_is_shown_before_its_key(here: Path) -> None:
    """The planted twin: the server has its set, and the owner has nothing."""
    killed(lambda: (setattr(Key, "save", lambda *given: None), after(folders.Folders, "publish")()))
    with pytest.raises(AssertionError, match="without its key"):
        check_whole(Path("out"))
