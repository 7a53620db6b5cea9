"""Ledgers in files and in databases."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.custody.ledger.places import Place


@pytest.fixture
def file(tmp_path: Path) -> Place:
    return Place(f"sqlite:///{tmp_path}/ledger.db")


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, file: Place) -> Place:
    return file if request.param == "sqlite" else Place(request.getfixturevalue("database"))
