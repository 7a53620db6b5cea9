"""Requests that nobody would write by hand: the whole API, by its own description, in every role.

`python -m benchmarks.server_fuzz [MINUTES] [more]`; 60 are asked for, and `more` adds to what is recorded. The server
is the command as it is started by anybody. Schemathesis reads what the API says of itself, and sends what fits and what
does not, with the tokens of a custodian, of an analyst, of an analyst without data, of a dashboard, and with one that
is made up. A fault is whatever Schemathesis calls one (a status of 500, an answer that is not as described, somebody
who gets in without a token), a defect in the server's log, a password, a token or a word of the rows in an answer or
in the log, and in the end a ledger that is not whole or overspent.
"""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.records import FOLDER, record
from benchmarks.server_holds_up import PASSWORD, ServerProcess, free_port
from benchmarks.session_counts import own_folder
from leakcap.custody.ledger import open_book
from leakcap.custody.ledger.accounts import TICKS
from leakcap.custody.ledger.operations import export, verify
from leakcap.server.accounts import ANALYST, CUSTODIAN
from leakcap.server.settings import ServerSettings
from leakcap.server.state import ServerState

NAME = "server-fuzz"
PIECE = 2.0  # minutes with one token
WORD = "zanzibar"  # in every row, and in nothing that is sent
SECRET = re.compile(f"{WORD}|{PASSWORD}|argon2|Traceback|leakcap_[A-Za-z0-9_-]{{43}}".encode())
# A question may have the right form and no answer; and whether there is something after it was made depends on names
# that are drawn.
UNASKED = "positive_data_acceptance,ensure_resource_availability"
SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
SEEN = re.compile(r"([\d.]+) minutes, ([\d,]+) requests")
REFUSED = 'checks.negative_data_rejection.expected-statuses = ["4xx"]\n'  # 413, too
NAMED = 'parameters = { name = "clinic" }\n'  # otherwise hardly a request is about data that are there


@dataclass
class Found:
    """What was sent, and what was wrong."""

    minutes: float = 0.0
    requests: int = 0
    faults: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        sent = f"{self.minutes:.1f} minutes, {self.requests:,} requests"
        return f"{sent} with five kinds of tokens: {len(self.faults)} faults"


def filled(home: Path) -> dict[str, str]:
    """A server's folder with one data set, and tokens of every kind."""
    rng = np.random.default_rng(0)
    people = {"patient": [f"{WORD} {at}" for at in range(2000)], "age": rng.integers(18, 90, 2000)}
    state = ServerState(ServerSettings(home=home))
    patients = pd.DataFrame(people | {"ward": rng.choice(["A", "B"], 2000)})
    declared = {"unit": "patient", "rows_per_unit": 1, "bounds": {"age": (0, 110)}, "keys": {"ward": ["A", "B"]}}
    state.datasets.register("clinic", {"patients": patients}, success=0.6, **declared)
    for name, role in (("carla", CUSTODIAN), ("ann", ANALYST), ("eve", ANALYST)):
        state.accounts.add(name, role, PASSWORD)
    state.accounts.allow("ann", frozenset(["clinic"]))
    tokens = {name: state.tokens.make(name, "fuzz", days=1) for name in ("ann", "carla", "eve")}
    return tokens | {
        "a dashboard": state.tokens.make("ann", "fuzz", days=1, stored_only=True),
        "nobody": "leakcap_" + "a" * 43,
    }


def piece(port: int, token: str, minutes: float, seed: int, folder: Path) -> tuple[int, list[str]]:
    """Requests with one token for some minutes: how many, and the faults."""
    settings, report, seen = (folder / name for name in ("settings.toml", "report.json", "seen.ndjson"))
    settings.write_text(REFUSED + (NAMED if seed % 2 else ""))
    for path in (report, seen):
        path.unlink(missing_ok=True)
    command = [
        *(str(SCHEMATHESIS), "--config-file", str(settings), "run", f"http://127.0.0.1:{port}/api/openapi.json"),
        *("--header", f"Authorization: Bearer {token}", "--exclude-checks", UNASKED, "--seed", str(seed)),
        *("--max-time", f"{60 * minutes:.0f}", "--suppress-health-check", "all", "--continue-on-failure"),
        *("--report", "json,ndjson", "--report-json-path", str(report), "--report-ndjson-path", str(seen)),
        *("--generation-database", "none", "--no-color", "--request-timeout", "120", "--warnings", "off"),
    ]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if not report.is_file():
        return 0, [f"schemathesis did not run: {ran.stdout[-1000:]}{ran.stderr[-1000:]}"]
    told = json.loads(report.read_text())
    faults = [f"{one['title']}: {', '.join(one['operations'])}" for one in told["failures"]]
    faults += [f"schemathesis: {one}" for one in told["errors"]]
    if ran.returncode and not faults:
        faults = [f"schemathesis ended with {ran.returncode}: {ran.stdout[-1000:]}"]
    return int(told["test_cases"]["generated"]), faults + told_secrets(seen)


def told_secrets(seen: Path) -> list[str]:
    """Answers that hold what no answer may hold."""
    contents = re.findall(rb'"content":\{"\$base64":"([^"]*)"\}', seen.read_bytes())
    return [f"in an answer: {found[0]!r}" for one in contents if (found := SECRET.search(base64.b64decode(one)))]


def left_behind(home: Path, log: Path) -> list[str]:
    """What is wrong with the log and the ledger."""
    said = log.read_bytes()
    faults = [f"in the log: {said[-1000:]!r}"] if SECRET.search(said) or b"failed" in said else []
    book = open_book(f"sqlite:///{home / 'ledger.db'}")
    whole = verify(book)
    faults += [] if whole.whole else [f"the ledger is not whole: {whole.faults}"]
    by_group = sum(row["charge"] for row in export(book.account("clinic")) if row["charge"] > 0) / TICKS
    return faults + ([f"overspent: {by_group}"] if by_group > 1 else [])


def before() -> Found:
    """What is recorded so far."""
    path = FOLDER / f"{NAME}.json"
    seen = SEEN.match(json.loads(path.read_text())["seen"]) if path.is_file() else None
    return Found(float(seen[1]), int(seen[2].replace(",", ""))) if seen else Found()


def main(minutes: float = 60.0, *, more: bool = False) -> int:
    found = before() if more else Found()
    with own_folder() as folder, ExitStack() as ends:
        home = Path(folder) / "server"
        tokens = filled(home)
        server = ServerProcess(home, free_port())
        ends.callback(server.stop)
        until = time.monotonic() + 60 * minutes
        for seed, (who, token) in enumerate(cycle(tokens.items()), start=int(found.minutes)):
            began = time.monotonic()
            left = (until - began) / 60
            if left < 0.2:
                break
            requests, faults = piece(server.port, token, min(PIECE, left), seed, folder)
            found.requests += requests
            found.minutes += (time.monotonic() - began) / 60
            found.faults += [f"{who}: {one}" for one in (*faults, *left_behind(home, server.log))]
            print(found.text, *found.faults, sep="\n", flush=True)
            if found.faults:
                return 1
            record(
                NAME,
                found.text,
                topic="The server",
                claim="Faults that Schemathesis finds, sending what the API describes and what not, in every role",
                command="python -m benchmarks.server_fuzz 60",
                asked="60 minutes, 0 faults",
            )
    return 0


PARTS: tuple[str, ...] = ()  # it is one

if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    given = [word for word in sys.argv[1:] if word != "more"]
    sys.exit(main(*map(float, given), more="more" in sys.argv))
