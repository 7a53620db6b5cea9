"""What these tests start from."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from leakcap.custody.journal import Journal
from leakcap.custody.signing import own_signer
from leakcap.custody.vault import Vault
from leakcap.simulate import run
from tests.leaks.command_line.runs import ACT, MARKED_TOWN, MEAN, SECRETS, UNIT, Seen, order_of, seen


@pytest.fixture(scope="session")
def signing_key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all runs, which differ in nothing but their secrets."""
    return tmp_path_factory.mktemp("signing") / "signing.key"


@pytest.fixture(autouse=True)
def _own_place(tmp_path: Path, own_key: Path, signing_key: Path, monkeypatch: Any) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    Vault.open(tmp_path / "keys" / "first")  # makes the key: else the first run would write one more file
    with monkeypatch.context() as patch:
        patch.setattr(secrets, "token_bytes", bytes)  # runs remember the journal's name: the same in all tests
        Journal.open()
    monkeypatch.setenv("LEAKCAP_SIGNING_KEY", str(signing_key))
    own_signer()
    yield
    ACT.clear()


@pytest.fixture
def people(tmp_path: Path) -> Path:
    rng = np.random.default_rng(7)
    age = rng.normal(40, 9, size=40)
    table = pd.DataFrame(
        {
            "who": [UNIT, UNIT, *(f"p{i // 2}" for i in range(2, 40))],
            "age": age - age.mean() + MEAN,
            "hours": rng.normal(35, 5, size=40),
            "town": np.where(np.arange(40) == 3, MARKED_TOWN, np.where(rng.random(40) < 0.5, "here", "there")),
            "group": np.repeat(["x", "y"], 20),
        }
    )
    path = tmp_path / "people.csv"
    table.to_csv(path, index=False)
    return path


# Two runs, everything that can be seen of them


_ledgers = count()


@pytest.fixture
def watch(people: Path, tmp_path: Path, monkeypatch: Any, capfd: Any, caplog: Any) -> Callable[..., list[Seen]]:
    """A command run once for every secret, each time in an equal folder of its own."""

    def runs(options: list[str], before: list[list[str]] | None = None, secrets_: Any = SECRETS) -> list[Seen]:
        found = []
        for number, secret in enumerate(secrets_):
            place = tmp_path / f"try{number}"
            place.mkdir(exist_ok=True)
            monkeypatch.chdir(place)  # --out is the same word everywhere
            monkeypatch.setenv("LEAKCAP_LEDGER", f"sqlite:///{tmp_path / str(next(_ledgers))}.db")
            for first in before or []:
                seen(order_of(people, first), place / "out", secret, monkeypatch, capfd, caplog)
            found.append(seen(order_of(people, options), place / "out", secret, monkeypatch, capfd, caplog))
        return found

    return runs


# Errors hold no cells


@pytest.fixture
def _processes(monkeypatch: Any) -> Iterator[None]:
    """Worker processes even for fast functions, started within the test so that their words are heard."""
    from leakcap.simulate.executors import end_workers

    end_workers()
    monkeypatch.setattr(run, "SHORT", -1.0)
    yield
    end_workers()
