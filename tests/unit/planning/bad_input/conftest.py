"""What these tests start from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leakcap.planning import released
from leakcap.planning.released import Token


@pytest.fixture(autouse=True)
def _nothing_leaves(tmp_path: Path, monkeypatch: Any) -> Iterator[None]:
    """Around every test: no file appears, no right to release is spent, no data count as released."""
    spent: list[Token] = []
    real = Token.spend

    def watched(token: Token, seeded: bool) -> None:
        spent.append(token)
        real(token, seeded)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Token, "spend", watched)
    before = set(released._prints_of_released_data)
    yield
    assert not list(tmp_path.iterdir())
    assert not spent
    assert released._prints_of_released_data == before
