"""Whether the query server holds up: analysts who do not stop asking, while its processes are killed.

`python -m benchmarks.server_holds_up [ANALYSTS] [MINUTES] [KILLS]`; 32, 10 and 50 are asked for. The server is the
command as it is started by anybody, in a process of its own; every second kill hits it, the others hit the process that
computes somebody's answer. Each analyst asks fresh questions and, more often, old ones, also those of others, and asks
again with the same key whatever goes wrong. In the end the ledger is read without the server's code: every answer was
charged for, once, is the number that the ledger holds, and is the same bytes for everybody; nothing else was charged;
and no more was spent than there was.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.records import record
from benchmarks.session_counts import own_folder
from leakcap.custody.ledger import open_book
from leakcap.custody.ledger.accounts import TICKS
from leakcap.custody.ledger.operations import export, verify
from leakcap.server.accounts import ANALYST, CUSTODIAN
from leakcap.server.settings import ServerSettings
from leakcap.server.state import ServerState

PEOPLE, SHARE, OLD = 5_000, 2e-4, 0.6  # and how often an old question is asked
PASSWORD = "a password of the benchmark"
SERVED = 8.0  # seconds between two kills, however long the server took to start
PATIENCE = 900.0  # seconds for one answer, restarts included


@dataclass
class Seen:
    """What analysts got, and how often they had to try."""

    bodies: dict[str, set[bytes]] = field(default_factory=dict)  # by question
    milliseconds: list[float] = field(default_factory=list)  # of tries that were answered
    tries: Counter[str] = field(default_factory=Counter)  # by what came of them
    lost: list[str] = field(default_factory=list)  # never answered
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answered(self, sql: str, body: bytes, taken: float) -> None:
        with self.lock:
            self.bodies.setdefault(sql, set()).add(body)
            self.milliseconds.append(taken)
            self.tries["answered"] += 1

    def failed(self, why: str) -> None:
        with self.lock:
            self.tries[why] += 1


class ServerProcess:
    """`leakcap serve` on one port, started again after it was killed."""

    def __init__(self, home: Path, port: int) -> None:
        self.command = [sys.executable, "-m", "leakcap", "serve", "--home", str(home), "--port", str(port), "--quiet"]
        self.port, self.log = port, home.parent / "log"
        self.start()

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log)
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            with suppress(OSError, http.client.HTTPException), closing(self.connection()) as connection:
                connection.request("GET", "/login")
                if connection.getresponse().status == 200:
                    return
            time.sleep(0.2)
        raise RuntimeError(f"the server does not start: {self.log.read_text()[-2000:]}")

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def kill_worker(self) -> bool:
        """Kill a process that computes an answer, or waits to compute the next one, if there is one at the moment."""
        children = list[int]()
        for task in Path(f"/proc/{self.process.pid}/task").iterdir():
            with suppress(OSError):  # threads and processes end while we look
                children += map(int, (task / "children").read_text().split())
        with suppress(OSError, IndexError):
            os.kill(random.choice(children), signal.SIGKILL)
            return True
        return False

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(60)


def fresh_question(rng: random.Random) -> str:
    low, high = sorted(rng.sample(range(18, 90), 2))
    return f"select count(*) as n from people where age >= {low} and age < {high}"


def analyst(port: int, token: str, seed: int, over: threading.Event, seen: Seen) -> None:
    rng = random.Random(seed)
    while not over.is_set():
        with seen.lock:
            old = list(seen.bodies)
        sql = rng.choice(old) if old and rng.random() < OLD else fresh_question(rng)
        ask_until_answered(port, token, sql, seen)


def ask_until_answered(port: int, token: str, sql: str, seen: Seen) -> None:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    sent = json.dumps({"sql": sql, "share": SHARE, "request": secrets.token_hex(8)})
    begun = time.monotonic()
    while time.monotonic() < begun + PATIENCE:
        try:
            began = time.perf_counter()
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=120)) as connection:
                connection.request("POST", "/api/datasets/people/ask", sent, headers)
                answer = connection.getresponse()
                body = answer.read()
        except (OSError, http.client.HTTPException):
            seen.failed("cut off")
            time.sleep(1.0)
            continue
        if answer.status == 200:
            seen.answered(sql, body, 1000 * (time.perf_counter() - began))
            return
        seen.failed(f"refused {answer.status}")
        time.sleep(float(answer.headers.get("Retry-After", 0.3)))
    with seen.lock:
        seen.lost.append(sql)


def filled_home(home: Path, analysts: int) -> list[str]:
    """A server's folder with one data set: a token for each analyst."""
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"person": np.arange(PEOPLE), "age": rng.integers(18, 90, PEOPLE)})
    state = ServerState(ServerSettings(home=home))
    state.datasets.register("people", {"people": people}, success=0.6, unit="person", rows_per_unit=1)
    state.accounts.add("custodian", CUSTODIAN, PASSWORD)
    tokens = []
    for at in range(analysts):
        state.accounts.add(f"analyst{at}", ANALYST, PASSWORD)
        state.accounts.allow(f"analyst{at}", frozenset(["people"]))
        tokens.append(state.tokens.make(f"analyst{at}", "benchmark", days=1))
    return tokens


def faults(ledger: str, seen: Seen, name: str = "people", share: float = SHARE) -> list[str]:
    """What does not hold between the ledger and the answers that were handed out."""
    book = open_book(ledger)
    whole = verify(book)
    rows = [row for row in export(book.account(name)) if row["charge"] > 0]
    charged = Counter(" ".join(json.loads(row["text"])["sql"].split()) for row in rows)
    numbers = {" ".join(json.loads(row["text"])["sql"].split()): row["numbers"] for row in rows}
    found = [] if whole.whole else [f"the ledger is not whole: {whole.faults}"]
    found += [f"charged {count} times: {sql}" for sql, count in charged.items() if count > 1]
    found += [f"answered without a charge: {sql}" for sql in set(seen.bodies) - set(charged)]
    found += [f"charged without an answer: {sql}" for sql in set(charged) - set(seen.bodies)]
    found += [f"{len(bodies)} different answers: {sql}" for sql, bodies in seen.bodies.items() if len(bodies) > 1]
    found += [f"never answered: {sql}" for sql in seen.lost]
    for sql, bodies in seen.bodies.items():
        value = json.loads(next(iter(bodies)))["rows"][0][0]
        if sql in numbers and not np.isclose(numbers[sql], value).any():
            found.append(f"another number than the ledger's: {sql}")
    spent = sum(row["charge"] for row in rows)
    if spent > TICKS:
        found.append(f"overspent: {spent / TICKS:.3f} of the clock")
    if any(abs(row["charge"] / TICKS - share) > 0.01 * share for row in rows):
        found.append("a charge is not what the question was to take")
    return found


def held_up(analysts: int, minutes: float, kills: int) -> tuple[str, list[str]]:
    """What was seen, in words, and what was wrong."""
    with own_folder() as folder, ExitStack() as ends:
        home = Path(folder) / "server"
        tokens, seen = filled_home(home, analysts), Seen()
        server = ServerProcess(home, port := free_port())
        ends.callback(server.stop)  # whatever happens
        began = time.monotonic()
        over = threading.Event()  # of the time, and not before the last kill
        threads = [
            threading.Thread(target=analyst, args=(port, token, seed, over, seen), daemon=True)
            for seed, token in enumerate(tokens)
        ]
        for one in threads:
            one.start()
        done: Counter[str] = Counter()
        for at in range(kills):
            time.sleep(max(SERVED, began + (at + 1) * 60 * minutes / (kills + 1) - time.monotonic()))
            if at % 2 and killed_in_time(server):
                done["worker"] += 1
            else:
                server.kill()
                server.start()
                done["server"] += 1
            print(f"{sum(done.values())} kills, {dict(seen.tries)}", flush=True)
        time.sleep(max(0.0, began + 60 * minutes - time.monotonic()))
        over.set()
        for one in threads:
            one.join()
        took = (time.monotonic() - began) / 60
        server.stop()
        wrong = faults(f"sqlite:///{home / 'ledger.db'}", seen)
    half, most = np.percentile(seen.milliseconds, [50, 95])
    text = (
        f"{len(seen.milliseconds):,} answers to {len(seen.bodies):,} questions for {analysts} analysts in {took:.1f} "
        f"minutes, {done['server']} kills of the server and {done['worker']} of workers, "
        f"{seen.tries['cut off']} requests cut off: {len(wrong)} faults; "
        f"half under {half:.0f} ms, 95 % under {most:.0f} ms"
    )
    return text, wrong


def main(analysts: int = 32, minutes: float = 10.0, kills: int = 50) -> int:
    text, wrong = held_up(analysts, minutes, kills)
    print("\n".join(wrong) or "nothing lost, nothing charged twice, nothing answered without a charge", text, sep="\n")
    if not wrong:
        record(
            f"server-holds-up-{analysts}",
            text,
            topic="The server",
            claim="Answers lost, changed, charged twice or not at all while the server and its workers are killed",
            command=f"python -m benchmarks.server_holds_up {analysts} {minutes:g} {kills}",
            asked="0 faults",
        )
    return len(wrong)


def killed_in_time(server: ServerProcess) -> bool:
    """Waits a while for a worker to kill."""
    until = time.monotonic() + 5
    while time.monotonic() < until:
        if server.kill_worker():
            return True
        time.sleep(0.01)
    return False


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def from_words(words: list[str]) -> dict[str, Any]:
    kinds = {"analysts": int, "minutes": float, "kills": int}
    return {name: kinds[name](word) for name, word in zip(kinds, words, strict=False)}


PARTS: tuple[str, ...] = ()  # it is one

if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(1 if main(**from_words(sys.argv[1:])) else 0)
