"""A small server for tests: 300 made-up people in two data sets, a custodian and two analysts."""

from __future__ import annotations

import gc
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from starlette.testclient import TestClient

from leakcap.server.accounts import ANALYST, CUSTODIAN
from leakcap.server.app import create_app
from leakcap.server.settings import ServerLimits, ServerSettings
from leakcap.server.state import ServerState

PASSWORDS = {name: f"correct horse {name}" for name in ("carla", "ann", "bob", "eve")}
ADDRESS = "http://localhost"
COUNT = "select count(*) as n from people"
STARTED: list[Running] = []  # servers that are not closed
BY_SEX = "select sex, avg(age) as age, count(*) as n from people group by sex order by sex"


def people(seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "person": np.arange(300) + 90_000,
            "sex": rng.choice(["f", "m"], 300),
            "age": rng.integers(0, 100, 300),
            "vip": rng.random(300) < 0.3,
        }
    )


@dataclass
class Running:
    """A server, and clients of all kinds."""

    app: Any

    @property
    def state(self) -> ServerState:
        return self.app.state.leakcap

    def client(self, **more: Any) -> TestClient:
        return TestClient(self.app, base_url=ADDRESS, follow_redirects=False, **more)

    def place(self, answer: Any) -> str:
        """Where an answer leads; where that is at long work, where this leads when it is done."""
        place = str(answer.headers["location"])
        while place.startswith("/custody/work/"):
            piece = self.state.long_work.numbered(place.rsplit("/", 1)[1])
            assert piece.outcome in ("waiting", "running", "done"), piece.words
            time.sleep(0.05)
            place = piece.place if piece.over else place
        return place

    def shown(self, browser: TestClient, answer: Any) -> Any:
        """The page that an answer leads to; itself where it leads nowhere."""
        return browser.get(self.place(answer)) if answer.status_code == 303 else answer

    def browser(self, name: str) -> TestClient:
        """A browser that is signed in."""
        made = self.client()
        answer = made.post("/login", data={"name": name, "password": PASSWORDS[name]})
        assert answer.status_code == 303, answer.text
        return made

    def token(self, name: str, **scope: Any) -> str:
        return self.state.tokens.make(name, "a test", days=1, **scope)

    def program(self, name: str, **scope: Any) -> TestClient:
        return self.client(headers={"Authorization": f"Bearer {self.token(name, **scope)}"})


def form_word(browser: TestClient) -> str:
    """What the forms of a browser bring back."""
    found = re.search(r'name="form_word" value="([0-9a-f]+)"', browser.get("/tokens").text)
    assert found
    return found[1]


def started(
    home: Path, limits: ServerLimits | None = None, ledger: str | None = None, database: str | None = None
) -> Running:
    """A server without data or accounts."""
    settings = ServerSettings(
        home=home, hosts=("localhost",), ledger=ledger, database=database, limits=limits or ServerLimits()
    )
    STARTED.append(made := Running(create_app(settings)))
    return made


def close_since(count: int) -> None:
    """Close all but the first so many servers: their files and processes would stay open until too many are."""
    if len(STARTED) > count:
        while len(STARTED) > count:
            STARTED.pop().state.close()
        gc.collect()  # sessions and their ledgers know each other


def filled(
    home: Path, limits: ServerLimits | None = None, ledger: str | None = None, database: str | None = None
) -> Running:
    """A server with data sets `clinic` and `school`, which ann may ask, and bob the clinic alone."""
    made = started(home, limits, ledger, database)
    state = made.state
    for name, seed in (("clinic", 0), ("school", 1)):
        state.datasets.register(
            name,
            {"people": people(seed)},
            success=0.7,
            about="Made up.",
            unit="person",
            bounds={"age": (0, 110)},
            rows_per_unit=1,
            keys={"sex": ["f", "m"]},
        )
    for name, password in PASSWORDS.items():
        state.accounts.add(name, CUSTODIAN if name == "carla" else ANALYST, password)
    state.accounts.allow("ann", frozenset(("clinic", "school")))
    state.accounts.allow("bob", frozenset(("clinic",)))
    return made
