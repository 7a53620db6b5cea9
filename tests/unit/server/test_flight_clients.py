"""Clients as people have them, against the command as it is started: pandas through ADBC, and `lc.connect`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import leakcap as lc

pytest.importorskip("pyarrow.flight", reason="this pyarrow has no Flight")
adbc = pytest.importorskip(
    "adbc_driver_flightsql.dbapi", reason="no ADBC driver here: pip install 'leakcap[dev]' brings it"
)

HEADER = "adbc.flight.sql.rpc.call_header."
BEARER = "adbc.flight.sql.authorization_header"
QUESTION = "select sex, avg(progression) as progression, count(*) as n from patients group by sex order by sex"


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """`leakcap serve --demo` in a process of its own: what it prints."""
    log = tmp_path_factory.mktemp("served") / "errors"
    command = [sys.executable, "-m", "leakcap", "serve", "--demo", "--port", "0", "--flight", "0", "--json"]
    with log.open("wb") as errors, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors) as process:
        try:
            assert process.stdout is not None
            printed = b"".join(iter(process.stdout.readline, b"}\n")) + b"}"
            assert printed != b"}", log.read_text()
            yield dict(json.loads(printed)) | {"log": log}
        finally:
            process.terminate()
            process.wait(30)
    said = Path(log).read_text()
    assert "leakcap_" not in said
    assert "arning" not in said  # a newcomer's first screen


def reader(started: dict[str, Any], **headers: str) -> Any:
    more = {HEADER + name: value for name, value in headers.items()}
    return adbc.connect(started["flight"], db_kwargs={BEARER: f"Bearer {started['token']}", **more}, autocommit=True)


def test_pandas_and_a_remote_session_read_the_same_answer(started: dict[str, Any]) -> None:
    import pandas as pd

    session = lc.connect(started["address"], started["token"], dataset="diabetes")
    with reader(started, database="diabetes", share="0.05") as connection:
        frame = pd.read_sql(QUESTION, connection)
        spent = session.spent.share
        assert spent == pytest.approx(0.05)
        assert pd.read_sql(QUESTION, connection).equals(frame)
    remote = session.sql(QUESTION, share=0.05)
    assert remote.again and session.spent.share == spent
    pd.testing.assert_frame_equal(remote.frame, frame, check_dtype=False, check_column_type=False)


def test_a_token_is_a_password_and_tables_name_their_data_set(started: dict[str, Any]) -> None:
    login = {"username": "ann", "password": started["token"]}
    with adbc.connect(started["flight"], db_kwargs=login, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute('select count(*) as n from "tumours"."tumours"')
        assert [one[0] for one in cursor.description] == ["n", "n low", "n high"]
        assert 100 < cursor.fetchone()[0] < 1100
        objects = connection.adbc_get_objects(depth="all").read_all().to_pylist()
    schemas = objects[0]["catalog_db_schemas"]
    assert [one["db_schema_name"] for one in schemas] == ["diabetes", "tumours"]


@pytest.mark.parametrize("sent", [{}, {BEARER: "Bearer leakcap_x"}, {"username": "ann", "password": "leakcap_x"}])
def test_others_are_refused(started: dict[str, Any], sent: dict[str, str]) -> None:
    def asks() -> None:
        with adbc.connect(started["flight"], db_kwargs=sent, autocommit=True) as connection:
            connection.cursor().execute(QUESTION)

    with pytest.raises(adbc.Error, match="Send a token"):
        asks()


@pytest.mark.parametrize(
    ("sql", "words"), [("select * from patients", "Rows of people"), ("delete from patients", "is a SELECT")]
)
def test_refusals_arrive_in_words(started: dict[str, Any], sql: str, words: str) -> None:
    with reader(started, database="diabetes") as connection, connection.cursor() as cursor:
        with pytest.raises(adbc.Error, match=words) as found:
            cursor.execute(sql)
        assert "Traceback" not in str(found.value)


def test_parameters_and_writes_are_refused(started: dict[str, Any]) -> None:
    import pyarrow as pa

    with reader(started, database="diabetes") as connection, connection.cursor() as cursor:
        with pytest.raises(adbc.Error):
            cursor.execute("select count(*) from patients where age > ?", (40,))
        with pytest.raises(adbc.Error):
            cursor.executemany("insert into patients values (?)", [(1,)])
        with pytest.raises(adbc.Error):
            cursor.adbc_ingest("new", pa.table({"a": [1]}))
    with reader(started, database="diabetes") as connection, connection.cursor() as cursor:
        cursor.execute("select count(*) as n from patients")
        assert cursor.fetchone()[0] > 0


def token_of_a_dashboard(started: dict[str, Any]) -> str:
    """Made as an analyst makes it, on the page of tokens."""
    import re
    from http.client import HTTPConnection
    from urllib.parse import urlencode, urlsplit

    connection = HTTPConnection(urlsplit(started["address"]).netloc, timeout=60)
    kind = {"Content-Type": "application/x-www-form-urlencoded"}

    def asked(method: str, path: str, head: dict[str, str], **fields: str) -> tuple[Any, str]:
        connection.request(method, path, urlencode(fields) if fields else None, head)
        answer = connection.getresponse()
        return answer, answer.read().decode()

    name, password = started["analyst"]
    cookie = asked("POST", "/login", kind, name=name, password=password)[0].headers["Set-Cookie"].split(";")[0]
    word = re.search(r'name="form_word" value="([0-9a-f]+)"', asked("GET", "/tokens", {"Cookie": cookie})[1])
    assert word is not None
    given = {"form_word": word[1], "label": "dashboard", "days": "1", "stored": "yes"}
    found = re.search(r"leakcap_[\w-]{43}", asked("POST", "/tokens", kind | {"Cookie": cookie}, **given)[1])
    connection.close()
    assert found is not None
    return found[0]


def rows_of(cursor: Any, sql: str) -> list[Any]:
    cursor.execute(sql)
    return list(cursor.fetchall())


def test_a_dashboard_that_asks_for_everything_again_and_again_charges_nothing(started: dict[str, Any]) -> None:
    """An analyst asks once; what refreshes afterwards has a token that never pays, and connects anew each time."""
    board = [
        f"select count(*) as n, avg(progression) as p from patients where age > {age} group by sex" for age in (30, 50)
    ]
    session = lc.connect(started["address"], started["token"], dataset="diabetes")
    with reader(started, database="diabetes", share="0.02") as connection, connection.cursor() as cursor:
        first = [rows_of(cursor, sql) for sql in board]
    before, kept = session.spent.share, dict(started) | {"token": token_of_a_dashboard(started)}
    for _ in range(10):
        with reader(kept, database="diabetes", share="0.02") as connection, connection.cursor() as cursor:
            assert [rows_of(cursor, sql) for sql in board] == first
            connection.adbc_get_objects(depth="all").read_all()
            with pytest.raises(adbc.Error, match="stored answers alone"):
                rows_of(cursor, "select count(*) as n from patients where age > 77")
    assert session.spent.share == before and len(session.history) >= 2
