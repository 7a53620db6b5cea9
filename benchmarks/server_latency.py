"""How long the query server takes for an answer, at one analyst and at 16.

`python -m benchmarks.server_latency [stored] [count] [pages] [usable]`. Wall milliseconds on loopback, over 100,000
people with a coin each: a stored answer, a count that is computed (less the time of its engine, a process for each
question), how large pages are, and how soon a browser has them ready to be used. The server runs in this process, the
analysts and the browser in others.
"""

from __future__ import annotations

import http.client
import json
import math
import multiprocessing
import os
import resource
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.browser import Browser, browser
from benchmarks.records import record
from benchmarks.session_counts import own_folder
from leakcap.server.accounts import ANALYST, CUSTODIAN
from leakcap.server.app import create_app
from leakcap.server.asking import Asking
from leakcap.server.serving import bound_socket, made_server
from leakcap.server.settings import ServerLimits, ServerSettings
from leakcap.sql import asking as sql_asking
from leakcap.sql.engine import WorkerEngine

PEOPLE, ANALYSTS, WARM = 100_000, (1, 16), 3
COUNT_PAUSE = 10.0  # seconds: what two cores can compute for 16
STORED_ROUNDS, COUNT_ROUNDS = 200, 10  # for each analyst; fewer where each waits in between, and fewer counts of 16
TOPIC = "The server"
PAST, VISITS = 60, 7  # answers on the pages that are visited, and visits of each page
PAGES = {
    "analyst0": ("/data", "/data/people", "/data/people/answers", "/data/people/certificate", "/tokens"),
    "custodian": ("/custody", "/custody/data/people", "/custody/analysts", "/custody/released", "/custody/events"),
}
# When a page was painted, and its style and script were there and had run: milliseconds after the visit began.
USABLE = """(() => {
  const [visit] = performance.getEntriesByType("navigation");
  const [painted] = performance.getEntriesByName("first-contentful-paint");
  return painted && visit.loadEventEnd ? Math.max(painted.startTime, visit.loadEventEnd) : null;
})()"""
BROAD = ServerLimits(requests_per_minute=10**6, questions_per_minute=10**6)
PASSWORD = "a password of the benchmark"
Asked = tuple[str, float]  # a key, and milliseconds


class Engines:
    """What engines take of each request."""

    def __init__(self) -> None:
        self.milliseconds: dict[str, float] = {}
        self._now = threading.local()

    def watch(self) -> None:
        """Put a clock around every engine, and around every answer."""
        engines, honest = self, Asking.answer

        class Watched(WorkerEngine):
            def __init__(self, *given: Any) -> None:
                with engines.counting():
                    super().__init__(*given)

            def run(self, *given: Any) -> Any:
                with engines.counting():
                    return super().run(*given)

            def close(self) -> None:
                with engines.counting():
                    super().close()

        def answer(self: Asking, dataset: str, account: str, question: Any, request: str | None = None) -> Any:
            engines._now.sum = 0.0
            found = honest(self, dataset, account, question, request)
            engines.milliseconds[request or ""] = engines._now.sum
            return found

        sql_asking.WorkerEngine = Watched  # type: ignore[misc]
        Asking.answer = answer  # type: ignore[method-assign]

    @contextmanager
    def counting(self) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self._now.sum = getattr(self._now, "sum", 0.0) + 1000 * (time.perf_counter() - began)


@contextmanager
def running() -> Iterator[tuple[int, list[str]]]:
    """A server over 100,000 people: its port, and a token for each of 16 analysts."""
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"person": np.arange(PEOPLE), "age": rng.integers(18, 90, PEOPLE)})
    with own_folder() as folder:
        app = create_app(ServerSettings(home=Path(folder) / "server", limits=BROAD))
        state = app.state.leakcap
        state.datasets.register(
            "people", {"people": people}, success=0.6, unit="person", bounds={"age": (0, 110)}, rows_per_unit=1
        )
        state.accounts.add("custodian", CUSTODIAN, PASSWORD)
        tokens = []
        for at in range(max(ANALYSTS)):
            state.accounts.add(f"analyst{at}", ANALYST, PASSWORD)
            state.accounts.allow(f"analyst{at}", frozenset(["people"]))
            tokens.append(state.tokens.make(f"analyst{at}", "benchmark", days=1))
        listening = bound_socket("127.0.0.1", 0)
        server = made_server(app)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            yield listening.getsockname()[1], tokens
        finally:
            server.should_exit = True
            thread.join(30)


class Wire:
    """A connection that costs its process next to nothing, since all analysts share one: requests are bytes already."""

    def __init__(self, port: int, token: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=600)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._head = (
            "POST /api/datasets/people/ask HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            f"Authorization: Bearer {token}\r\nContent-Length: "
        )

    def ask(self, body: str) -> tuple[int, bool]:
        """The status of the response, all of which has come; and whether its answer was stored."""
        self._socket.sendall(f"{self._head}{len(body)}\r\n\r\n{body}".encode())
        found = b""
        while b"\r\n\r\n" not in found:
            found += self._more()
        head, _, rest = found.lower().partition(b"\r\n\r\n")
        missing = int(head.split(b"content-length: ")[1].split(b"\r\n")[0]) - len(rest)
        while missing > 0:
            missing -= len(self._more())
        return int(head.split(b" ", 2)[1]), b"leakcap-stored: yes" in head

    def _more(self) -> bytes:
        part = self._socket.recv(65536)
        assert part, "the server has closed the connection"
        return part


def analyst(port: int, token: str, at: int, *, rounds: int, fresh: str, pause: float) -> list[Asked]:
    """One who asks again after each pause: the same question, or with `fresh` a new one each time."""
    wire, found = Wire(port, token), []
    for turn in range(WARM + rounds):
        key = f"{token[-8:]} {fresh} {turn}"
        apart = 1e-4 * turn + 1e-2 * at + len(fresh)  # nobody asks what was asked before
        share = 1e-5 * (1 + apart) if fresh else 1e-4
        body = json.dumps({"sql": "select count(*) as n from people where age > 40", "share": share, "request": key})
        began = time.perf_counter()
        status, was_stored = wire.ask(body)
        taken = 1000 * (time.perf_counter() - began)
        assert status == 200, status
        assert was_stored == (not fresh) or not turn
        if turn >= WARM:
            found.append((key, taken))
        time.sleep(pause)
    return found


def asked(port: int, tokens: list[str], rounds: int, fresh: str = "", pause: float = 0.0) -> list[Asked]:
    """What all of them saw, in a process of their own."""
    with ThreadPoolExecutor(len(tokens)) as pool:
        parts = [
            pool.submit(analyst, port, token, at, rounds=rounds, fresh=fresh, pause=pause)
            for at, token in enumerate(tokens)
        ]
        return [one for part in parts for one in part.result()]


def from_elsewhere(work: Callable[..., Any], *given: Any) -> Any:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, given)


def with_its_time(work: Callable[..., Any], *given: Any) -> tuple[Any, float]:
    """What work gives, and the CPU seconds of the process that did it and nothing else."""
    return work(*given), time.process_time()


def of_engines() -> float:
    """CPU seconds of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def words(milliseconds: list[float]) -> str:
    half, most = np.percentile(milliseconds, [50, 95])
    return f"{half:.0f} ms (95 % under {most:.0f} ms)"


def stored(port: int, tokens: list[str], _: Engines) -> None:
    seen = []
    for count, pause in ((1, 0.0), (16, 1.0), (16, 0.0)):
        began = time.process_time()
        found = from_elsewhere(asked, port, tokens[:count], 20 if pause else STORED_ROUNDS, "", pause)
        each = 1000 * (time.process_time() - began) / len(found)
        who = f"{count} analyst{'s' if count > 1 else ''}{', a second apart,' if pause else ''}"
        seen.append(f"{who} {words([taken for _, taken in found])}, {each:.1f} CPU ms of the server")
        print(f"stored: {seen[-1]}", flush=True)
    record(
        "server-stored",
        "; ".join(seen),
        topic=TOPIC,
        claim=f"A stored answer about {PEOPLE:,} people as JSON, asked without a pause or with one",
        command="python -m benchmarks.server_latency stored",
        asked="under 20 ms",
    )


def count(port: int, tokens: list[str], engines: Engines) -> None:
    engines.watch()
    seen, cost = [], ""
    for at, (number, pause) in enumerate(((1, 0.0), (16, COUNT_PAUSE), (16, 0.0)), start=1):
        began, ended = time.process_time(), of_engines()
        given = asked, port, tokens[:number], max(2, COUNT_ROUNDS // number * 2), "x" * at, pause
        found, of_analysts = from_elsewhere(with_its_time, *given)
        questions = len(found) + WARM * number
        own, theirs = time.process_time() - began, of_engines() - ended - of_analysts
        beyond = [taken - engines.milliseconds[key] for key, taken in found]
        alone = [engines.milliseconds[key] for key, _ in found]
        who = f"{number} analyst{'s' if number > 1 else ''}{f', {pause:.0f} s apart,' if pause else ''}"
        seen.append(f"{who} {words(beyond)} beyond an engine's {np.median(alone):.0f}")
        if number == 1:
            each, wall = (own + theirs) / questions, float(np.median([taken for _, taken in found])) / 1000
            cost = (
                f"a question takes {1000 * own / questions:.0f} CPU ms of the server and "
                f"{1000 * theirs / questions:.0f} of its engine: for {max(ANALYSTS)} analysts without a pause not to "
                f"wait for each other takes {math.ceil(max(ANALYSTS) * each / wall)} cores"
            )
        print(f"count: {seen[-1]}", flush=True)
    record(
        "server-count",
        "; ".join([*seen, cost]),
        topic=TOPIC,
        claim=f"A count over {PEOPLE:,} people, computed and charged, asked without a pause or with one",
        command="python -m benchmarks.server_latency count",
        asked="under 150 ms beyond the engine",
    )


def pages(port: int, _: list[str], __: Engines) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    sizes: dict[str, int] = {}

    def got(path: str, headers: dict[str, str]) -> str:
        connection.request("GET", path, headers=headers)
        text = connection.getresponse().read().decode()
        assets = [part.split('"')[0] for part in text.split('"/static/')[1:]]
        for one in assets:
            connection.request("GET", f"/static/{one}")
            sizes.setdefault(one, len(connection.getresponse().read()))
        sizes[path] = len(text.encode()) + sum(sizes[one] for one in set(assets))
        return text

    for name, paths in PAGES.items():
        connection.request("POST", "/login", f"name={name}&password={PASSWORD.replace(' ', '+')}", kind)
        answer = connection.getresponse()
        answer.read()
        cookie = {"Cookie": answer.headers["Set-Cookie"].split(";")[0]}
        for path in paths:
            got(path, cookie)
    largest = max(
        (path for path in sizes if path.startswith(("/data", "/custody", "/tokens"))), key=lambda one: sizes[one]
    )
    print(f"pages: {largest} {sizes[largest]}", flush=True)
    record(
        "server-pages",
        f"{sizes[largest] / 1000:.0f} kB ({largest})",
        topic=TOPIC,
        claim="The largest page of the server with its style sheet, script and icon, uncompressed",
        command="python -m benchmarks.server_latency pages",
        asked="under 150 kB",
    )


def usable(port: int, tokens: list[str], _: Engines) -> None:
    from_elsewhere(asked, port, tokens[:1], PAST, "answers that the pages list", 0.0)
    here, times = f"http://localhost:{port}", {}
    with browser() as tab:
        tab.ask("Network.enable")
        tab.ask("Network.setCacheDisabled", cacheDisabled=True)
        for name, paths in PAGES.items():
            sign_in(tab, here, name)
            for path in paths:
                times[path] = sorted(until_usable(tab, here + path) for _ in range(VISITS))
                print(f"usable: {path} {words(times[path])}, at most {times[path][-1]:.0f} ms", flush=True)
            tab.ask("Network.clearBrowserCookies")
    slowest = max(times, key=lambda one: times[one][-1])
    half = np.median(times[slowest])
    record(
        "server-usable",
        f"{times[slowest][-1]:.0f} ms at most ({slowest}; {half:.0f} ms in the median of {VISITS})",
        topic=TOPIC,
        claim=f"From the beginning of a visit until a page that nothing is cached of is painted, loaded and its script "
        f"has run, in Chromium on loopback; the slowest of {len(times)} pages, with {WARM + PAST} answers on them",
        command="python -m benchmarks.server_latency usable",
        asked="within a second",
    )


def sign_in(tab: Browser, here: str, name: str) -> None:
    tab.visit(f"{here}/login")
    tab.value(
        f"document.querySelector('#name').value = {name!r}; document.querySelector('#password').value = {PASSWORD!r}; "
        "document.querySelector('main form').submit()"
    )
    while tab.value("location.pathname + document.readyState") not in ("/datacomplete", "/custodycomplete"):
        time.sleep(0.05)


def until_usable(tab: Browser, address: str) -> float:
    """Milliseconds of a visit."""
    tab.visit("about:blank")
    tab.visit(address)
    while (found := tab.value(USABLE)) is None:
        time.sleep(0.02)
    return float(found)


PARTS = {"stored": stored, "count": count, "pages": pages, "usable": usable}


def main(names: list[str]) -> None:
    engines = Engines()
    with running() as (port, tokens):
        for name in names or PARTS:
            PARTS[name](port, tokens, engines)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main(sys.argv[1:])
