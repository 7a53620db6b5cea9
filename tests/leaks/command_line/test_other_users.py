"""While it runs: other people's view of the machine."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.custody.vault import Vault
from leakcap.simulate import shared_memory
from tests.leaks.command_line.runs import MARK
from tests.unit.custody.rows import edit


@pytest.mark.usefixtures("_processes")
def test_workers_show_neither_key_nor_data_and_their_shared_memory_goes(tmp_path: Path, shared_places: Any) -> None:
    """Command lines and environments of all children, names in shared memory."""
    shown, modes = _while_workers_run(tmp_path, shared_places)
    key = (tmp_path / "keys" / "key").read_bytes()[:64]  # what follows is no secret
    ((salt,),) = edit(Vault.existing(tmp_path / "plan"), "SELECT salt FROM vault")
    assert len(shown) >= 2
    assert modes
    everything = b"\n".join(shown) + "\n".join(modes).encode()
    for secret in (key, bytes.fromhex(key.decode()), MARK.encode(), salt, salt.hex().encode()):
        assert secret not in everything
    assert not [path for path in modes if Path(path).is_file()], "the pool's data are gone from shared memory"


@pytest.mark.usefixtures("_processes")
def test_nobody_else_can_open_the_pool_in_shared_memory(tmp_path: Path, shared_places: Any) -> None:
    _, modes = _while_workers_run(tmp_path, shared_places)
    assert all(mode & 0o077 == 0 for mode in modes.values()), modes


@pytest.fixture
def shared_places(tmp_path: Path, monkeypatch: Any) -> Iterator[list[Path]]:
    """Shared memory and a temporary folder where only this test writes.

    Another run beside it has left an open folder of the same name in both: no affair of ours.
    """
    with contextlib.ExitStack() as folders:
        for place in (shared_memory.SHARED, tempfile.gettempdir()):
            foreign = Path(folders.enter_context(tempfile.TemporaryDirectory(prefix="leakcap-", dir=place)))
            (foreign / "data").write_text(MARK)
            foreign.chmod(0o755)
        own = [
            folders.enter_context(tempfile.TemporaryDirectory(dir=place))
            for place in (shared_memory.SHARED, tempfile.gettempdir())
        ]
        monkeypatch.setattr(shared_memory, "SHARED", own[0])
        monkeypatch.setattr(tempfile, "tempdir", own[1])
        yield [Path(place) for place in own]


def _while_workers_run(tmp_path: Path, places: list[Path]) -> tuple[list[bytes], dict[str, int]]:
    """What others can see of a run on a pool that travels to its workers as a memory map."""
    X = np.full((70_000, 2), 777123.25)
    X[:, 0] += np.random.default_rng(0).random(70_000)
    shown: list[bytes] = []
    modes: dict[str, int] = {}
    me = os.getpid()

    def look(_: Any) -> None:
        for child in Path("/proc").glob("[0-9]*"):
            try:
                if f"PPid:\t{me}\n" in (child / "status").read_text():
                    shown.extend([(child / "cmdline").read_bytes(), (child / "environ").read_bytes()])
            except OSError:
                continue  # gone
        for place in places:
            for top in place.iterdir():
                assert top.name.startswith("leakcap-") and top.is_dir(), "everything lies in a folder of ours"
                closed = stat.S_IMODE(top.stat().st_mode)  # what lies in a closed folder is closed
                modes.update({str(path): closed & path.stat().st_mode for path in (top, *top.rglob("*"))})
        assert not list(Path("/dev/shm").glob(f"*joblib*{me}*")), "everything lies in a folder of ours"

    lc.plan(
        np.ndarray.mean,
        X,
        unit=np.arange(len(X)) % 50,
        cap=lc.mutual_information(0.3),
        worlds=8,
        draws=256,
        backend="processes",
        workers=2,
        progress=look,
        checkpoint=tmp_path / "plan",
    )
    return shown, modes
