"""A key of its own for every test, and a vault with two values."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leakcap.custody import keys
from leakcap.custody.vault import Vault
from leakcap.planning.released import forget_released
from tests.unit.custody.rows import SECRET
from tests.unit.custody.runs import CALLS


@pytest.fixture(autouse=True)
def _own_key(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("LEAKCAP_KEY", str(tmp_path / "keys" / "key"))


@pytest.fixture(params=["sealed", "plain"])
def made(request: Any, tmp_path: Path, monkeypatch: Any) -> Vault:
    """A vault with two values, with and without the extra."""
    if request.param == "plain":
        monkeypatch.setattr(keys, "can_seal", lambda: False)
    found = Vault.open(tmp_path / "folder")
    assert found.sealed == (request.param == "sealed")
    found.write("one", SECRET)
    found.write("two", SECRET[::-1])
    return found


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=oct)
def _umask(request: Any) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.fixture(autouse=True)
def _own_place(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("CHECKPOINT_LOG", str(tmp_path / "log"))
    monkeypatch.setenv("CHECKPOINT_STOP", str(tmp_path / "stop"))
    forget_released()
    CALLS.clear()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "plan"
