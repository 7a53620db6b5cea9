"""What these tests start from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def _own_place(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
