"""What an outsider tries: passwords by the thousand, forms from elsewhere, bodies without end, names that are paths."""

from __future__ import annotations

import io
import logging
import re
import signal
import time
import zipfile
from pathlib import Path
from threading import Thread
from typing import Any

import pandas as pd
import pytest

from leakcap.errors import InputError
from leakcap.server import accounts, serving, throttle
from leakcap.server.headers import SECURE
from leakcap.server.settings import ServerLimits
from leakcap.sql import engine as engines
from leakcap.sql.engine import EngineLimits
from tests.unit.server.running import BY_SEX, COUNT, PASSWORDS, Running, filled, form_word, started

ASK = "/api/datasets/clinic/ask"
SECRET_WORDS = "select count(*) as n from people where sex <> 'zanzibar'"


def test_every_response_carries_the_headers(running: Running) -> None:
    ann = running.browser("ann")
    clients = [
        (running.client(), "/login"),
        (ann, "/data/clinic"),
        (ann, "/nothing"),
        (running.client(), "/api/datasets"),
    ]
    for client, path in clients:
        found = client.get(path)
        assert {name: found.headers[name] for name in SECURE} == SECURE
        assert found.headers["cache-control"] == "no-store" and "server" not in found.headers
    policy = SECURE["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy


def test_pages_need_nothing_that_the_policy_forbids_and_nothing_from_elsewhere(running: Running) -> None:
    ann, carla = running.browser("ann"), running.browser("carla")
    answer = ann.post("/data/clinic/ask", data={"form_word": form_word(ann), "way": "sql", "sql": BY_SEX, "share": "1"})
    pages = [
        ann.get(path).text for path in ("/data", "/data/clinic", "/data/clinic/answers", "/data/clinic/certificate")
    ]
    pages += [ann.get("/tokens").text, ann.get(answer.headers["location"]).text]
    pages += [carla.get(f"/custody{path}").text for path in ("", "/data/clinic", "/analysts", "/released", "/events")]
    for page in pages:
        assert "<style" not in page and not re.search(r"\sstyle=|\son[a-z]+=|javascript:", page)
        assert re.findall(r"<script(?! src=\"/static/)", page) == []
        assert re.findall(r'(?:src|href|action)="(?!/|#)', page) == []
        assert len(page) < 150_000


def test_encrypted_servers_have_cookies_for_encrypted_connections_alone(tmp_path: Path) -> None:
    from dataclasses import replace

    from leakcap.server.app import create_app

    made = started(tmp_path)
    made.state.accounts.add("ann", "analyst", PASSWORDS["ann"])
    app = create_app(replace(made.state.settings, encrypted=True))
    client = Running(app).client()
    found = client.post("/login", data={"name": "ann", "password": PASSWORDS["ann"]})
    cookie = found.headers["set-cookie"]
    assert cookie.startswith("__Host-leakcap=") and all(
        word in cookie for word in ("Secure", "HttpOnly", "SameSite=strict", "Path=/")
    )
    assert "max-age" in found.headers["strict-transport-security"]


def test_a_cookie_is_out_of_reach_of_scripts_and_other_sites(running: Running) -> None:
    found = running.client().post("/login", data={"name": "ann", "password": PASSWORDS["ann"]})
    assert "HttpOnly" in found.headers["set-cookie"] and "SameSite=strict" in found.headers["set-cookie"]


def test_passwords_cannot_be_tried_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(throttle.time, "monotonic", lambda: now[0])
    made = started(tmp_path)
    made.state.accounts.add("ann", "analyst", PASSWORDS["ann"])
    client = made.client()

    def tried(name: str, password: str) -> Any:
        return client.post("/login", data={"name": name, "password": password})

    assert [tried("ann", "wrong").status_code for _ in range(5)] == [401] * 5
    kept_out = tried("ann", PASSWORDS["ann"])
    assert kept_out.status_code == 429 and int(kept_out.headers["retry-after"]) <= 60
    assert [tried("nobody", "wrong").status_code for _ in range(6)] == [401] * 5 + [429]
    now[0] += 61
    assert tried("ann", PASSWORDS["ann"]).status_code == 303
    for at in range(20):
        tried(f"somebody{at}", "wrong")
    assert tried("zoe", "wrong").status_code == 429, "an address has to wait, too, whatever names it tries"


def test_passwords_that_are_tried_at_once_count_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thirty at a time, before any of them is found to be wrong: five are looked at."""
    made = started(tmp_path)
    made.state.accounts.add("ann", "analyst", PASSWORDS["ann"])
    looked_at, honest = list[str](), accounts._matches

    def slow(hashed: str, password: str) -> bool:
        looked_at.append(password)
        time.sleep(0.1)
        return honest(hashed, password)

    monkeypatch.setattr(accounts, "_matches", slow)
    told = list[int]()

    def tried() -> None:
        told.append(made.client().post("/login", data={"name": "ann", "password": "wrong"}).status_code)

    threads = [Thread(target=tried) for _ in range(30)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(looked_at) == 5 and sorted(told) == [401] * 5 + [429] * 25


def test_right_passwords_are_not_counted(tmp_path: Path) -> None:
    """An office that signs in from one address keeps itself out by wrong passwords alone."""
    made = started(tmp_path, ServerLimits(failures_of_address=3))
    made.state.accounts.add("ann", "analyst", PASSWORDS["ann"])
    client = made.client()
    passwords = [PASSWORDS["ann"]] * 4 + ["wrong"] * 2 + [PASSWORDS["ann"]] * 2 + ["wrong", PASSWORDS["ann"]]
    found = [client.post("/login", data={"name": "ann", "password": one}).status_code for one in passwords]
    assert found == [303] * 4 + [401] * 2 + [303] * 2 + [401, 429]


def test_a_wrong_name_is_told_as_a_wrong_password_is_and_tried_as_hard(running: Running) -> None:
    hashed = []
    honest = accounts._matches

    def counted(*given: str) -> bool:
        hashed.append(given[0][:9])
        return honest(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accounts, "_matches", counted)
        pages = [
            running.client().post("/login", data={"name": name, "password": "wrong"}).text for name in ("bob", "nobody")
        ]
    assert pages[0] == pages[1] and hashed == ["$argon2id"] * 2


@pytest.mark.parametrize("then", ["//example.org", "https://example.org", "/\\example.org", "/\nx", "javascript:1"])
def test_signing_in_leads_nowhere_else(running: Running, then: str) -> None:
    found = running.client().post("/login", data={"name": "ann", "password": PASSWORDS["ann"], "then": then})
    assert found.headers["location"] == "/"


def test_forms_from_other_sites_do_nothing(running: Running) -> None:
    browser = running.browser("carla")
    word = form_word(browser)
    asked = {"name": "mallory", "role": "custodian"}
    for given, headers in (
        ({}, {}),
        ({"form_word": word[:-1] + "x"}, {}),
        ({"form_word": word}, {"sec-fetch-site": "cross-site"}),
        ({"form_word": word}, {"sec-fetch-site": "same-site"}),  # another port, or a neighbour's name
    ):
        assert browser.post("/custody/analysts", data=asked | given, headers=headers).status_code == 403
    other = form_word(running.browser("carla"))
    assert other != word and browser.post("/custody/analysts", data=asked | {"form_word": other}).status_code == 403
    assert running.state.accounts.named("mallory") is None


def test_a_cookie_is_worth_nothing_to_programs(running: Running) -> None:
    assert running.browser("carla").get("/api/releases").status_code == 401


def test_other_names_of_the_machine_are_refused(running: Running) -> None:
    assert running.client().get("/login", headers={"host": "evil.example.org"}).status_code == 400


def test_bodies_and_questions_without_end_are_cut_off(running: Running) -> None:
    ann = running.program("ann")
    assert ann.post(ASK, json={"sql": "select 1" + " " * 20_000}).status_code == 400
    assert ann.post(ASK, json={"sql": "x" * 70_000}).status_code == 413

    def without_end() -> Any:
        for _ in range(100):
            yield b" " * 4096

    read = ann.post(ASK, content=without_end(), headers={"content-type": "application/json"})
    assert read.status_code == 413 and "send less" in read.json()["error"]


def test_too_many_requests_wait(tmp_path: Path) -> None:
    made = filled(tmp_path, ServerLimits(requests_per_minute=5, questions_per_minute=1))
    ann = made.program("ann")
    found = [ann.get("/api/datasets").status_code for _ in range(7)]
    assert found[:5] == [200] * 5 and found[5:] == [429] * 2
    bob = made.program("bob")
    asked = [bob.post("/api/datasets/clinic/preview", json={"sql": COUNT}).status_code for _ in range(2)]
    assert asked == [200, 429]
    assert [made.client().get("/api/datasets").status_code for _ in range(7)][-1] == 429


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"sql": "select * from people"}, 400),
        ({"sql": "select zanzibar from people"}, 400),
        ({"sql": COUNT, "share": 7}, 422),
        ({"sql": COUNT, "share": "a lot"}, 422),
        ({"sql": COUNT, "zanzibar": 1}, 422),
        ({"question": COUNT}, 422),
        ([], 422),
        ({"sql": COUNT, "share": 0.1, "noise": 3.0}, 400),
        ({"sql": "\x00"}, 400),
        ({"sql": "select count(*) from \ud800"}, 422),
    ],
)
def test_refusals_are_one_sentence_and_repeat_nothing_that_was_sent(running: Running, body: Any, status: int) -> None:
    import json

    content = json.dumps(body).encode()
    found = running.program("ann").post(ASK, content=content, headers={"content-type": "application/json"})
    words = found.json()["error"]
    assert found.status_code == status and words.endswith(".") and "Traceback" not in words
    assert status == 400 or "zanzibar" not in words


def test_an_address_says_how_it_is_asked(running: Running) -> None:
    found = running.program("ann").request("TRACE", "/api/analysts")
    assert found.status_code == 405 and found.headers["allow"] == "GET, POST"


def test_answers_leave_at_once() -> None:
    """A body that is sent after its headers must not wait until they are acknowledged."""
    import socket

    with serving.bound_socket("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_defect_tells_nothing_of_itself(running: Running, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.MonkeyPatch.context() as patch:

        def fails(*_: Any, **__: Any) -> Any:
            raise ValueError("a row: Mrs. Miller, 41")

        patch.setattr(type(running.state.asking), "answer", fails)
        patch.setattr(type(running.state.asking), "certificate", fails)
        api = running.program("ann").post(ASK, json={"sql": SECRET_WORDS})
        page = running.browser("ann").get("/data/clinic/certificate")
    assert api.status_code == page.status_code == 500
    for told in (api.text, page.text, caplog.text):
        assert "Miller" not in told and "zanzibar" not in told
    assert "ValueError" in caplog.text, "the custodian's log says what kind of defect it was"


def test_no_question_password_or_token_is_kept_or_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    made = filled(tmp_path)
    token = made.token("ann")
    ann = made.client(headers={"Authorization": f"Bearer {token}"})
    assert ann.post(ASK, json={"sql": SECRET_WORDS, "share": 0.1, "request": "key-zanzibar"}).status_code == 200
    browser = made.browser("ann")
    browser.post("/login", data={"name": PASSWORDS["bob"], "password": PASSWORDS["ann"] + "!"})
    cookie = browser.cookies["leakcap"]
    secret = [b"zanzibar", token.encode(), cookie.split(".")[0].encode(), *(one.encode() for one in PASSWORDS.values())]
    kept = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert any(path.name.startswith("server.db") for path in kept)
    for path, content in kept.items():
        if path.suffix != ".duckdb":
            assert not [one for one in secret if one in content], path.name
        assert path.stat().st_mode & 0o077 == 0, f"{path.name} can be read by others"
    assert not [one for one in secret if one.decode() in caplog.text]
    events = made.browser("carla").get("/custody/events").text
    assert "asked a question" in events and "(unknown)" in events
    assert not [one for one in secret if one.decode() in events]


def test_a_hung_question_is_killed_at_its_limit_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its engine is stopped as a process that hangs is; meanwhile somebody else is answered."""
    made = filled(tmp_path, ServerLimits(engine=EngineLimits(seconds=6.0)))
    ann, bob = made.program("ann"), made.program("bob")
    assert bob.post(ASK, json={"sql": BY_SEX, "share": 0.01}).status_code == 200
    started_ones: list[Any] = []
    honest = engines.WorkerEngine.__init__

    def remembered(self: Any, *given: Any) -> None:
        honest(self, *given)
        if not started_ones:
            self.process.send_signal(signal.SIGSTOP)
        started_ones.append(self.process)

    monkeypatch.setattr(engines.WorkerEngine, "__init__", remembered)
    found: list[Any] = []
    hung = Thread(target=lambda: found.append(ann.post(ASK, json={"sql": COUNT, "share": 0.1})))
    hung.start()
    while not started_ones:
        time.sleep(0.01)
    began = time.monotonic()
    assert bob.post(ASK, json={"sql": BY_SEX, "share": 0.01}).headers["leakcap-stored"] == "yes"
    other = bob.post(ASK, json={"sql": BY_SEX, "share": 0.02})
    assert other.status_code == 200 and found == [], "the hung one was not waited for"
    hung.join(30)
    assert found[0].status_code == 400 and "took longer than 6 seconds" in found[0].json()["error"]
    assert time.monotonic() - began < 25 and started_ones[0].poll() is not None
    assert ann.get("/api/datasets/clinic/budget").json()["spent"]["share"] == pytest.approx(0.03), "it was not charged"


def test_one_account_cannot_fill_the_queue(tmp_path: Path) -> None:
    made = filled(tmp_path, ServerLimits(waiting=1))
    with made.state.datasets.session("clinic", "ann"):
        found = made.program("ann").post(ASK, json={"sql": COUNT})
        assert found.status_code == 429 and "retry-after" in found.headers
        assert made.program("bob").post(ASK, json={"sql": COUNT}).status_code == 200


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("../../etc/passwd.csv", b"a\n1\n", "looks like a path"),
        ("..\\x.csv", b"a\n1\n", "looks like a path"),
        (".csv", b"a\n1\n", "looks like a path"),
        ("x.exe", b"MZ", "must be CSV or Parquet"),
        ("x.csv.gz", b"\x1f\x8b", "must be CSV or Parquet"),
        ("x.csv", b"", "is empty"),
        ("x.csv", b"a,b\n\xff\xfe\x00\x00,1\n", "no CSV file of text"),
        ("x.csv", b"a,b\n\xff\xff\xff\xff\xff,1\n", "no CSV file of text"),
        ("x.parquet", b"PAR1 but no more", "no Parquet file"),
        ("x.parquet", b"person,age\n1,2\n", "no Parquet file"),
    ],
)
def test_files_that_are_not_what_they_say_are_refused(running: Running, name: str, content: bytes, words: str) -> None:
    with pytest.raises(InputError, match=words):
        running.state.uploads.keep(name, io.BytesIO(content))
    assert list(running.state.uploads.folder.glob("*")) == []


def test_a_packed_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    from leakcap.server.uploads import Uploads

    uploads = Uploads(tmp_path / "uploads", 2**16)
    packed = io.BytesIO()
    pd.DataFrame({"a": [float("nan")] * 10, "b": ["x" * 2_000_000] * 10}).to_parquet(packed, compression="zstd")
    assert packed.tell() < 2**16
    with pytest.raises(InputError, match="far more than its size says"):
        uploads.keep("bomb.parquet", io.BytesIO(packed.getvalue()))
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("x.csv", b"0" * 10_000_000)
    with pytest.raises(InputError, match="no CSV file of text"):
        uploads.keep("bomb.csv", io.BytesIO(zipped.getvalue()))
    with pytest.raises(Exception, match="too large"):
        uploads.keep("long.csv", io.BytesIO(b"1\n" * 2**16))
    assert list(uploads.folder.glob("*")) == []


def test_registering_by_pages_shows_the_loss_and_formulas_stay_text(tmp_path: Path) -> None:
    made = filled(tmp_path)
    carla = made.browser("carla")
    word = form_word(carla)
    rows = "".join(f"{at},{'=cmd()' if at % 2 else 'B'},{at}\n" for at in range(200))
    file = {"file": ("visits.csv", f"person,town,cost\n{rows}1,B,5\n".encode())}
    step = made.place(carla.post("/custody/register", files=file, data={"form_word": word}))
    assert "201 rows" in carla.get(step).text
    given = {"form_word": word, "name": "visits", "table": "visits", "unit": "person", "rows": "1", "cap": "70"}
    given |= {"design": "bits", "values1": "=cmd(), B", "low2": "0", "high2": "99"}
    checked = made.shown(carla, carla.post(step, data=given | {"what": "check"})).text
    assert "1 of 201 rows left out" in checked and "100 of 200 values cut" in checked and "49.8 %" in checked
    assert "visits" not in made.state.datasets.names()
    assert made.place(carla.post(step, data=given | {"what": "register"})) == "/custody/data/visits"
    assert carla.get(step).status_code == 404, "the file is gone"
    made.state.accounts.allow("ann", frozenset(("visits",)))
    ann = made.browser("ann")
    asked = {"form_word": form_word(ann), "way": "form", "table": "visits", "measure": "count", "group1": "town"}
    answer = ann.post("/data/visits/ask", data=asked | {"share": "10"}).headers["location"]
    assert "'=cmd()" in ann.get(answer + "/table.csv").text
    again = made.place(carla.post("/custody/register", files=file, data={"form_word": word}))  # it stays, refused
    for changed in (
        {"unit": "nothing"},
        {"low2": "x", "high2": "y"},
        {"name": "../x"},
        {"cap": "30"},
        {"name": "clinic"},
    ):
        found = carla.post(again, data=given | {"name": "more"} | changed | {"what": "register"})
        assert found.status_code == 400 and "alert" in found.text, changed
    assert made.state.datasets.names() == ["clinic", "school", "visits"]


def test_others_reach_it_through_tls_or_not_at_all(tmp_path: Path) -> None:
    for host in ("0.0.0.0", "192.168.0.1", "example.org", "::"):
        with pytest.raises(InputError, match="this machine alone"):
            serving.refuse_open(host, None, None)
    for host in ("127.0.0.1", "localhost", "::1"):
        serving.refuse_open(host, None, None)
    with pytest.raises(InputError, match="belong together"):
        serving.refuse_open("0.0.0.0", tmp_path, None)
    with pytest.raises(InputError, match="no file"):
        serving.refuse_open("0.0.0.0", tmp_path / "a.pem", tmp_path / "b.pem")


def test_a_port_in_use_and_a_strange_file_are_told_in_a_sentence(tmp_path: Path) -> None:
    import sqlite3

    taken = serving.bound_socket("127.0.0.1", 0)
    with taken, pytest.raises(InputError, match="choose another with --port"):
        serving.bound_socket("127.0.0.1", taken.getsockname()[1])
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "server.db").write_bytes(b"not a database" * 100)
    with pytest.raises(InputError, match="damaged or no file"):
        started(tmp_path / "a")
    made = started(tmp_path / "b")
    made.state.database.write("PRAGMA user_version = 7")
    with pytest.raises(InputError, match="a later version of leakcap"):
        started(tmp_path / "b")
    (tmp_path / "c").mkdir()
    strange = sqlite3.connect(tmp_path / "c" / "server.db")
    strange.execute("CREATE TABLE theirs (x)")
    strange.execute("PRAGMA application_id = 5")
    strange.close()
    with pytest.raises(InputError, match="no file of this server"):
        started(tmp_path / "c")


def test_a_file_of_an_earlier_version_is_brought_up_to_date_and_nothing_is_lost(tmp_path: Path) -> None:
    made = filled(tmp_path)
    token = made.token("ann")
    made.state.database.write("DROP TABLE work")
    made.state.database.write("PRAGMA user_version = 1")
    again = started(tmp_path)
    assert again.state.database.row("PRAGMA user_version") == (2,) and again.state.long_work.all() == []
    ann = again.client(headers={"Authorization": f"Bearer {token}"})
    assert len(ann.get("/api/datasets").json()["datasets"]) == 2
    assert again.browser("carla").get("/custody/work").status_code == 200


@pytest.mark.slow
def test_publishing_by_pages_compares_releases_once_and_shows_the_command(tmp_path: Path) -> None:
    made = started(tmp_path)
    made.state.accounts.add("carla", "custodian", PASSWORDS["carla"])
    carla = made.browser("carla")
    word = form_word(carla)
    rows = "".join(f"{at},{18 + at * 7 % 70}\n" for at in range(600))
    file = {"file": ("visits.csv", f"person,age\n{rows}".encode())}
    step = made.place(carla.post("/custody/publish", files=file, data={"form_word": word}))
    given = {"form_word": word, "unit": "person", "fn": "mean", "columns": "age", "cap": "60", "name": "ages"}
    given |= {"low1": "0", "high1": "110"}
    compared = made.shown(carla, carla.post(step, data=given | {"what": "compare"}))
    assert compared.status_code == 200
    promised = {"bits", "pool", "Laplace", "Gaussian", "What a cap costs", "leakcap release table.csv", "lc.stats.mean"}
    assert not {part for part in promised if part not in compared.text}
    assert carla.post(step, data=given | {"what": "release", "fn": "os:system"}).status_code == 400
    assert carla.post(step, data=given | {"what": "release", "name": "../ages"}).status_code == 400
    done = carla.post(step, data=given | {"what": "release"})
    assert made.place(done) == "/custody/publish/finished/ages"
    page = carla.get("/custody/publish/finished/ages/page")
    assert "60 %" in page.text and "'sha256-" in page.headers["content-security-policy"]
    packed = carla.get("/custody/publish/finished/ages/public.zip").content
    with zipfile.ZipFile(io.BytesIO(packed)) as found:
        assert {"ages/answer.csv", "ages/certificate.json"} <= set(found.namelist())
        assert not [one for one in found.namelist() if "custodian" in one]
    assert "ages" in carla.get("/custody/released").text
    assert carla.get("/custody/publish/finished/../ages").status_code in (404, 422)
    again = made.place(carla.post("/custody/publish", files=file, data={"form_word": word}))
    assert carla.post(again, data=given | {"what": "release"}).status_code == 400


def test_a_release_by_pages_is_the_command_that_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from leakcap.server import publish_pages, register_pages

    held = {"rows": 9, "columns": [{"name": "person", "kind": "int"}, {"name": "a; rm -rf", "kind": "float"}]}
    monkeypatch.setattr(register_pages, "done", lambda *_: held)
    ran: list[list[str]] = []

    def command(words: list[str], _: float, __: Any) -> None:
        ran.append(words)
        public = Path(words[words.index("--out") + 1]) / "public"
        public.mkdir(parents=True)
        (public / "certificate.html").write_text("<style>b{}</style>")

    monkeypatch.setattr(publish_pages, "command_done", command)
    made = started(tmp_path)
    made.state.accounts.add("carla", "custodian", PASSWORDS["carla"])
    carla = made.browser("carla")
    given = {"form_word": form_word(carla), "unit": "person", "columns": "a; rm -rf", "cap": "55", "what": "release"}
    step = made.place(carla.post("/custody/publish", files={"file": ("v.csv", b"a\n1\n")}, data=given))
    for wrong in ({"fn": "os:system", "name": "x"}, {"fn": "mean", "name": "../x"}, {"fn": "mean", "name": ""}):
        assert carla.post(step, data=given | wrong).status_code == 400
    assert carla.post(step, data=given | {"fn": "mean", "columns": "nothing", "name": "x"}).status_code == 400
    assert ran == []
    done = carla.post(step, data=given | {"fn": "mean", "name": "ages"})
    (words,) = ran
    assert words[:6] == ["release", words[1], "--fn", "mean", "--cap", "membership=0.55"]
    assert words[8:14] == ["--columns", "a; rm -rf", "--missing", "drop", "--unit", "person"]
    shown = carla.get(made.place(done)).text
    assert "leakcap release table.csv --fn mean --cap membership=0.55" in shown and "certificate.html" in shown
    page = carla.get("/custody/publish/finished/ages/page")
    assert "style-src &#39;self&#39;" not in page.text and "'sha256-" in page.headers["content-security-policy"]
    assert carla.get(step).status_code == 404, "the file is gone"
