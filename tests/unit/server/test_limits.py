"""Limits that nobody meets by day: how long a browser stays signed in, how long others wait, how far a token goes."""

from __future__ import annotations

import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

import leakcap as lc
from leakcap.server import throttle
from leakcap.server.refusals import Refusal
from leakcap.server.remote import ServerError
from leakcap.server.settings import ServerLimits
from leakcap.server.throttle import Failures, Rate
from tests.unit.server.running import PASSWORDS, Running, started

ASK = "/api/datasets/clinic/ask"


def test_a_browser_that_was_left_alone_is_signed_out_and_one_that_is_used_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = started(tmp_path, ServerLimits(signed_in=8 * 3600.0, idle=3600.0))
    for name in ("ann", "bob"):
        made.state.accounts.add(name, "analyst", PASSWORDS[name])
    left, used, now = made.browser("ann"), made.browser("bob"), time.time()
    for minutes in range(10, 90, 10):
        monkeypatch.setattr(time, "time", lambda at=now + 60 * minutes: at)
        assert used.get("/data").status_code == 200
    assert left.get("/data").headers["location"].startswith("/login")
    monkeypatch.setattr(time, "time", lambda: now + 60)
    assert left.get("/data").status_code == 303, "it ended for good"


def test_every_further_failure_waits_twice_as_long_up_to_a_quarter_of_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(throttle.time, "monotonic", lambda: now[0])
    failures, waits = Failures(2, 60.0), list[float]()
    failures.count("ann")
    failures.refuse("ann")
    for _ in range(7):
        failures.count("ann")
        with pytest.raises(Refusal) as refused:
            failures.refuse("ann")
        waits.append(refused.value.wait or 0.0)
        now[0] += waits[-1]
    assert waits == [60, 120, 240, 480, 960, 960, 960]
    failures.forget("ann")
    failures.count("ann")
    failures.refuse("ann")


def test_names_that_are_tried_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle, "MOST_NAMES", 50)
    rate, failures = Rate(10, "wait"), Failures(2, 60.0)
    for at in range(200):
        rate.take(str(at))
        failures.count(str(at))
    assert len(rate._left) == len(failures._failed) == 50


def test_a_bucket_fills_up_again_with_time_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(throttle.time, "monotonic", lambda: now[0])
    rate = Rate(60, "wait")
    for _ in range(60):
        rate.take("ann")
    with pytest.raises(Refusal):
        rate.take("ann")
    rate.take("bob")
    now[0] += 2.0
    for _ in range(2):
        rate.take("ann")
    with pytest.raises(Refusal):
        rate.take("ann")


def test_a_question_that_is_too_long_is_told_so_and_is_not_looked_at(running: Running) -> None:
    found = running.program("ann").post(ASK, json={"sql": "select count(*) as n from people" + " " * 20_000})
    assert found.status_code == 400 and "has 16,384 characters at most" in found.json()["error"]
    found = running.program("ann").post(
        "/api/datasets/clinic/preview", json={"sql": "select count(*) as n from people" + " " * 20_000}
    )
    assert found.status_code == 400 and "has 16,384 characters at most" in found.json()["error"]


def test_a_token_is_not_carried_on_to_another_server() -> None:
    seen: list[str | None] = []

    class Moved(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers["Authorization"])
            self.send_response(302)
            self.send_header("Location", f"http://127.0.0.1:{self.server.server_address[1]}/elsewhere")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Moved) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            with pytest.raises(ServerError, match="status 302"):
                lc.connect(f"http://127.0.0.1:{server.server_address[1]}", "leakcap_secret")
        finally:
            server.shutdown()
            thread.join()
    assert seen == ["Bearer leakcap_secret"], "it went where nobody sent it"


def test_a_password_is_for_one_account_and_a_token_no_password(running: Running) -> None:
    for name, password in (("ann", PASSWORDS["bob"]), ("ann", running.token("ann")), ("ann", "")):
        assert running.client().post("/login", data={"name": name, "password": password}).status_code == 401
    running.state.failures.forget("ann")


def test_passwords_are_long_and_kept_as_argon2_alone(running: Running) -> None:
    for short in ("", "eleven char", "x" * 201):
        with pytest.raises(lc.InputError, match="12 to 200 characters"):
            running.state.accounts.add("short", "analyst", short)
    hashes = [row[0] for row in running.state.database.rows("SELECT hash FROM accounts")]
    assert hashes and all(one.startswith("$argon2id$") for one in hashes)


def test_a_token_ends_with_its_days_and_names_no_data_set_that_is_not_the_accounts(running: Running) -> None:
    for days in (0, 91, -1):
        with pytest.raises(lc.InputError, match="at most 90 days"):
            running.state.tokens.make("ann", "x", days=days)
    assert not running.state.tokens.revoke(
        "bob", running.state.tokens.of("ann")[-1].number if running.token("ann") else 0
    )
