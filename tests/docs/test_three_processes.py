"""The guide's three processes, each for real: the owner, the server without key or leakcap, and the owner again.

The server works in a folder of its own, with a copy of `server/` and nothing else.
"""

from __future__ import annotations

import csv
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.docs.pages import ROOT, Block, blocks

GUIDE = (ROOT / "docs" / "guides" / "encode-for-a-server.md").read_text()
BLOCKS = blocks(GUIDE)
NEEDS = {"server.py": "sklearn", "server_torch.py": "torch"}


def script(name: str) -> str:
    (found,) = [block.body for block in BLOCKS if block.file == name]
    return found


def command(start: str) -> list[str]:
    """The first command of the guide that begins so."""
    found = re.findall(rf"^\$ ({re.escape(start)}.*)$", GUIDE, flags=re.MULTILINE)
    return [*([sys.executable, "-m"] if start.startswith("leakcap") else []), *shlex.split(found[0])]


def owner(folder: Path, *words: str) -> None:
    subprocess.run(words, cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first process: what the owner has when the set is encoded."""
    folder = tmp_path_factory.mktemp("owner")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEAKCAP_KEY", str(folder / "vault.key"))
        patch.setenv("LEAKCAP_LEDGER", f"sqlite:///{folder}/ledger.db")
        first: Block = next(block for block in BLOCKS if block.kind == "python")
        owner(folder, sys.executable, "-c", first.body)
        owner(folder, *command("leakcap obfuscate encode patients.csv"))
    return folder


@pytest.fixture(scope="module")
def trained(desk: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Where the server's model lies, of each of the server's scripts: trained once, and never changed."""
    return cache(lambda name: at_the_server(desk, tmp_path_factory.mktemp("server"), name))


def at_the_server(desk: Path, folder: Path, name: str) -> Path:
    """The second process. No leakcap can be imported in it, and no key of the owner's be found."""
    shutil.copytree(desk / "encoded" / "server", folder / "got")
    (folder / name).write_text(script(name))
    (folder / "hidden").mkdir()
    (folder / "hidden" / "leakcap.py").write_text("raise ImportError('the server has no leakcap')")
    kept = {one: os.environ[one] for one in ("PATH", "OMP_NUM_THREADS") if one in os.environ}
    there = {**kept, "HOME": str(folder), "PYTHONPATH": str(folder / "hidden")}
    how = {"cwd": folder, "env": there, "capture_output": True}
    refused = subprocess.run([sys.executable, "-c", "import leakcap"], check=False, **how)
    assert refused.returncode and b"the server has no leakcap" in refused.stderr, "it is hidden"
    before = set(folder.rglob("*"))
    subprocess.run([sys.executable, name, "got"], check=True, **how)
    (made,) = {one for one in set(folder.rglob("*")) - before if "__pycache__" not in one.parts}
    return made


@pytest.mark.parametrize("name", NEEDS)
def test_owner_server_owner(
    name: str, desk: Path, trained: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    if importlib.util.find_spec(NEEDS[name]) is None:
        pytest.skip(f"{NEEDS[name]} is not here")
    model = trained(name)
    monkeypatch.setenv("LEAKCAP_KEY", str(desk / "vault.key"))
    shutil.copy(model, desk)
    words = command("leakcap obfuscate predict model.npz")
    told = [f"{name}.csv" if word == "found.csv" else model.name if word == "model.npz" else word for word in words]
    owner(desk, *told)
    with (desk / "new-patients.csv").open() as file:
        wanted = [row["diagnosis"] for row in csv.DictReader(file)]
    found = (desk / f"{name}.csv").read_text().split()[1:]
    assert np.mean(np.array(found) == wanted) > 0.8


def test_without_the_key_the_third_process_says_nothing(desk: Path, trained: Callable[[str], Path]) -> None:
    """The server has its model and all that it was sent, and is refused."""
    model = trained("server.py")
    folder = model.parent
    assert model.name == "model.npz"
    words = [word.replace("encoded/owner", "got") for word in command("leakcap obfuscate predict model.npz")]
    shutil.copy(desk / "new-patients.csv", folder)
    done = subprocess.run(words, cwd=folder, check=False, capture_output=True, text=True)
    assert done.returncode == 2 and "without the key the model says nothing" in " ".join(done.stderr.split())
    assert not (folder / "found.csv").exists()
