"""Arrow Flight SQL: pandas and dashboards get what everybody gets, from the same tokens and for the same charge."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

pytest.importorskip("pyarrow.flight", reason="this pyarrow has no Flight")

from pyarrow import flight

import leakcap as lc
from leakcap.server import flight_catalog
from leakcap.server.flight import address_of, flight_server
from leakcap.server.flight_messages import LONGEST, packed
from leakcap.server.serving import flight_beside
from leakcap.server.settings import ServerLimits
from leakcap.server.wire import frame_of
from tests.unit.server.running import BY_SEX, COUNT, Running, filled

ASK, BUDGET = "/api/datasets/clinic/ask", "/api/datasets/clinic/budget"
MANY = ServerLimits(requests_per_minute=100_000, questions_per_minute=10_000)
QUESTIONS = [
    COUNT,
    BY_SEX,
    "select avg(age) from people group by sex",
    "select count(*) as n, count(*) as n, count(*) + 1 as more, count(*) > 3 as some from people",
    "select cast(avg(age) as int) as i, round(avg(age)) as r from people",
    "select vip, count(*) as n from people group by vip",
    "select floor(age / 20) * 20 as decade, count(*) as n from people group by decade",
    "select median(age) as m, upper('x') as u from people",
    "select sex, upper(sex) as u, count(*) * 2 as d from people group by sex",
    "select vip and true as late, date '2020-01-02' as d, 1.5e0 as x, count(*) as n from people group by late",
]


class Listening:
    """A server that listens for Flight."""

    def __init__(self, running: Running) -> None:
        self.running = running
        self.server = flight_server(running.state, "127.0.0.1", 0)
        self.uri = f"grpc://127.0.0.1:{self.server.port}"
        self._tokens: dict[str, str] = {}

    def headers(self, name: str, dataset: str | None = "clinic", share: float | None = 0.01, **scope: Any) -> Any:
        kind = repr((name, scope))
        token = self._tokens[kind] = self._tokens.get(kind) or self.running.token(name, **scope)
        found = {"authorization": f"Bearer {token}"}
        if dataset is not None:
            found["database"] = dataset
        if share is not None:
            found["share"] = str(share)
        return found

    def client(self, headers: dict[str, str]) -> RawClient:
        return RawClient(self.uri, headers)

    def spent(self) -> float:
        return self.program().get(BUDGET).json()["spent"]["share"]

    def program(self) -> Any:
        """The same account through JSON."""
        return self.running.client(headers={"Authorization": self.headers("ann")["authorization"]})


class RawClient:
    """A program that sends whatever it likes."""

    def __init__(self, uri: str, headers: dict[str, str]) -> None:
        self.client = flight.connect(uri)
        self.options = flight.FlightCallOptions(headers=[(k.encode(), v.encode()) for k, v in headers.items()])

    def info(self, command: bytes) -> Any:
        return self.client.get_flight_info(flight.FlightDescriptor.for_command(command), self.options)

    def got(self, ticket: Any) -> Any:
        made = ticket if isinstance(ticket, flight.Ticket) else flight.Ticket(ticket)
        return self.client.do_get(made, self.options).read_all()

    def asked(self, sql: str) -> Any:
        return self.got(self.info(statement(sql)).endpoints[0].ticket)

    def told(self, name: str, **fields: bytes) -> Any:
        return self.got(
            self.info(packed(name, {int(at[1:]): value for at, value in fields.items()})).endpoints[0].ticket
        )

    def action(self, name: str, body: bytes) -> list[Any]:
        return list(self.client.do_action(flight.Action(name, body), self.options))


def statement(sql: str) -> bytes:
    return packed("CommandStatementQuery", {1: sql.encode()})


@pytest.fixture(scope="module")
def listening(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listening]:
    home = tmp_path_factory.mktemp("flight")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEAKCAP_KEY", str(home / "key"))
        made = Listening(filled(home, MANY))
        yield made
        made.server.shutdown()


@pytest.mark.parametrize("sql", QUESTIONS)
def test_the_columns_that_are_announced_come_and_hold_the_stored_answer(listening: Listening, sql: str) -> None:
    raw = listening.client(listening.headers("ann", share=0.001))
    info = raw.info(statement(sql))
    table = raw.got(info.endpoints[0].ticket)
    assert table.schema == info.schema
    body = listening.program().post(ASK, json={"sql": sql, "share": 0.001})
    assert body.headers["leakcap-stored"] == "yes"
    assert list(table.column_names) == body.json()["columns"], "columns were announced that the answer does not have"
    ours = table.to_pandas().map(lambda one: str(one) if isinstance(one, date) else one)
    pd.testing.assert_frame_equal(ours, frame_of(body.json()), check_dtype=False, check_column_type=False)


def test_planning_costs_nothing_and_answers_are_charged_once(listening: Listening) -> None:
    raw, before = listening.client(listening.headers("ann", share=0.013)), listening.spent()
    infos = [raw.info(statement(COUNT)) for _ in range(3)]
    raw.action("CreatePreparedStatement", packed("ActionCreatePreparedStatementRequest", {1: COUNT.encode()}))
    raw.client.get_schema(flight.FlightDescriptor.for_command(statement(COUNT)), raw.options)
    assert listening.spent() == before
    tables = [raw.got(one.endpoints[0].ticket) for one in infos for _ in range(2)]
    assert listening.spent() == pytest.approx(before + 0.013)
    assert len({_bytes(one) for one in tables}) == 1


def test_a_dashboard_that_asks_everything_again_fifty_times_at_once_charges_once(tmp_path: Path) -> None:
    made = Listening(filled(tmp_path, MANY))
    try:
        headers = made.headers("ann", share=0.02)

        def refresh(_: int) -> bytes:
            client = made.client(headers)
            return b"".join(_bytes(client.asked(sql)) for sql in (COUNT, BY_SEX))

        made.client(headers).asked(COUNT)
        made.client(headers).asked(BY_SEX)
        before = made.spent()
        with ThreadPoolExecutor(16) as pool:
            assert len(set(pool.map(refresh, range(50)))) == 1
        assert made.spent() == before == pytest.approx(0.04)
    finally:
        made.server.shutdown()


def test_asked_at_once_before_anybody_has_the_answer_it_is_charged_once(tmp_path: Path) -> None:
    made = Listening(filled(tmp_path, MANY))
    try:
        headers = made.headers("ann", share=0.02)
        with ThreadPoolExecutor(4) as pool:
            found = set(pool.map(lambda _: _bytes(made.client(headers).asked(COUNT)), range(4)))
        assert len(found) == 1 and made.spent() == pytest.approx(0.02)
    finally:
        made.server.shutdown()


def test_a_prepared_question_tells_its_columns_and_is_asked_by_its_handle(listening: Listening) -> None:
    from leakcap.server.flight_messages import unpacked

    raw, before = listening.client(listening.headers("ann", share=0.014)), listening.spent()
    (made,) = raw.action(
        "CreatePreparedStatement", packed("ActionCreatePreparedStatementRequest", {1: BY_SEX.encode()})
    )
    told = unpacked(made.body.to_pybytes())
    import pyarrow as pa

    assert told.name == "ActionCreatePreparedStatementResult" and listening.spent() == before
    columns = pa.ipc.read_schema(pa.py_buffer(told.bytes(2)))
    info = raw.info(packed("CommandPreparedStatementQuery", {1: told.bytes(1) or b""}))
    assert info.schema == columns == raw.got(info.endpoints[0].ticket).schema
    assert raw.action("ClosePreparedStatement", b"anything") == []
    assert listening.spent() == pytest.approx(before + 0.014)


@pytest.mark.parametrize(
    ("sql", "same"),
    [
        ('select count(*) as n from "clinic"."people"', 'select count(*) as n from "people"'),
        ("select count(*) as n from leakcap.clinic.people where clinic.people.age > 3", None),
        ("select count(*) as n from people clinic where clinic.age > 3", None),
        ("select count(*) as n from Clinic . people", None),
    ],
)
def test_tables_may_be_called_by_their_data_set(listening: Listening, sql: str, same: str | None) -> None:
    headers = listening.headers("ann", dataset="clinic" if "people clinic" in sql else None, share=0.0011)
    assert listening.client(headers).asked(sql).num_rows == 1
    if same:
        body = {"sql": same, "share": 0.0011}
        assert listening.program().post(ASK, json=body).headers["leakcap-stored"] == "yes"


@pytest.mark.parametrize(
    ("dataset", "sql", "words"),
    [
        (None, COUNT, "Say which data set"),
        ("school", "select count(*) from clinic.people", "about one data set"),
        (None, "select count(*) from clinic.people, school.people", "about one data set"),
        ("nothing", COUNT, "nothing of this name"),
        ("clinic", "select count(*) from nothing.people", "."),
        ("clinic", "select * from people", "Rows of people"),
        ("clinic", "drop table people", "is a SELECT"),
        ("clinic", "select 1; select 2", "one question at a time"),
        ("clinic", "", "sk in SQL"),
        ("clinic", "select count(*) from people where age > ?", "."),
        ("clinic", f"select count(*) from people -- {'x' * 20_000}", "characters at most"),
    ],
)
def test_what_cannot_be_answered_is_refused_in_a_sentence_and_free(
    listening: Listening, dataset: str | None, sql: str, words: str
) -> None:
    before = listening.spent()
    with pytest.raises(flight.FlightError, match=words) as found:
        listening.client(listening.headers("ann", dataset=dataset)).asked(sql)
    sentence(found.value)
    assert listening.spent() == before


@pytest.mark.parametrize("header", ["nan", "inf", "-1", "0", "2", "x", "1e400", "१"])
def test_a_share_that_is_none_is_refused(listening: Listening, header: str) -> None:
    headers = listening.headers("ann", share=None)
    raw = RawClient(listening.uri, headers)
    raw.options = flight.FlightCallOptions(
        headers=[*((k.encode(), v.encode()) for k, v in headers.items()), (b"share", header.encode())]
    )
    if not header.isascii():
        with pytest.raises((flight.FlightError, OSError)):
            raw.asked(COUNT)
        return
    with pytest.raises(flight.FlightError, match="The header 'share' holds a number") as found:
        raw.asked(COUNT)
    sentence(found.value)


def test_nobody_without_a_token_gets_anything(listening: Listening) -> None:
    state = listening.running.state
    expired = listening.running.token("ann")
    state.database.write("UPDATE tokens SET until = ? WHERE number = (SELECT max(number) FROM tokens)", time.time() - 1)
    good = listening.running.token("ann")
    for sent in (
        None,
        "",
        "Bearer",
        "Bearer leakcap_wrong",
        f"Bearer {expired}",
        f"Basic {good}",
        "Basic ",
        "Basic %%%",
        "Basic " + base64.b64encode(b"ann:correct horse ann").decode(),
        f"Bearer {good}x",
    ):
        raw = RawClient(listening.uri, {} if sent is None else {"authorization": sent})
        for work in (
            lambda raw=raw: raw.info(statement(COUNT)),
            lambda raw=raw: raw.got(statement(COUNT)),
            lambda raw=raw: raw.told("CommandGetTables"),
            lambda raw=raw: raw.told("CommandGetSqlInfo"),
            lambda raw=raw: raw.action("CreatePreparedStatement", b""),
            lambda raw=raw: raw.client.list_actions(raw.options),
            lambda raw=raw: list(raw.client.list_flights(options=raw.options)),
        ):
            with pytest.raises(flight.FlightUnauthenticatedError, match="Send a token") as found:
                work()
            sentence(found.value)
            assert good not in str(found.value)


def test_a_token_gets_what_it_is_for(listening: Listening) -> None:
    other = listening.headers("ann", datasets=["school"])
    with pytest.raises(flight.FlightError, match="nothing of this name"):
        listening.client(other).asked(COUNT)
    with pytest.raises(flight.FlightError, match="nothing of this name"):
        listening.client(listening.headers("bob", dataset="school")).asked(COUNT)
    with pytest.raises(flight.FlightUnauthorizedError, match="other role"):
        listening.client(listening.headers("carla")).asked(COUNT)
    assert listening.client(listening.headers("carla")).told("CommandGetTables").num_rows == 0
    assert listening.client(listening.headers("eve", dataset=None)).told("CommandGetTables").num_rows == 0


def test_a_ticket_is_of_one_account_and_no_permission(listening: Listening) -> None:
    ann = listening.headers("ann", share=0.0012)
    ticket = listening.client(ann).info(statement(COUNT)).endpoints[0].ticket
    before = listening.spent()
    for headers in (listening.headers("bob"), listening.headers("eve")):
        with pytest.raises(flight.FlightError, match="not one of yours"):
            listening.client(headers).got(ticket)
    narrow = listening.headers("ann", datasets=["school"])
    with pytest.raises(flight.FlightError, match="nothing of this name"):
        listening.client(narrow).got(ticket)
    board = listening.client(listening.headers("ann", stored_only=True))
    with pytest.raises(flight.FlightUnauthorizedError, match="stored answers alone"):
        board.got(ticket)
    tampered = bytearray(ticket.ticket)
    tampered[-2] ^= 1
    with pytest.raises(flight.FlightError):
        listening.client(ann).got(bytes(tampered))
    assert listening.spent() == before
    assert listening.client(ann).got(ticket).equals(board.got(ticket))
    assert listening.spent() == pytest.approx(before + 0.0012)


def test_a_stored_only_token_never_charges(listening: Listening) -> None:
    listening.client(listening.headers("ann", share=0.0013)).asked(COUNT)
    before = listening.spent()
    board = listening.client(listening.headers("ann", share=0.0013, stored_only=True))
    for _ in range(20):
        assert board.asked(COUNT).num_rows == 1
        with pytest.raises(flight.FlightUnauthorizedError, match="stored answers alone"):
            board.asked(BY_SEX)
    assert listening.spent() == before


def test_catalogs_are_told_from_declarations(listening: Listening, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow as pa

    from leakcap.sql.catalog import CatalogFile

    raw = listening.client(listening.headers("ann"))
    raw.told("CommandGetTables")
    monkeypatch.setattr(CatalogFile, "__enter__", lambda _: pytest.fail("the data were opened"))
    assert raw.told("CommandGetCatalogs").to_pylist() == [{"catalog_name": "leakcap"}]
    assert raw.told("CommandGetDbSchemas").column("db_schema_name").to_pylist() == ["clinic", "school"]
    assert raw.told("CommandGetDbSchemas", _2=b"cl%").column("db_schema_name").to_pylist() == ["clinic"]
    assert raw.told("CommandGetDbSchemas", _1=b"").num_rows == 0
    assert raw.told("CommandGetTableTypes").num_rows == 2
    assert raw.told("CommandGetTables", _3=b"p_ople", _4=b"TABLE").num_rows == 2
    assert raw.told("CommandGetTables", _4=b"VIEW").num_rows == 0
    bob = listening.client(listening.headers("bob"))
    assert bob.told("CommandGetTables").column("db_schema_name").to_pylist() == ["clinic"]
    shown = raw.got(raw.info(packed("CommandGetTables", {2: b"clinic"}) + b"").endpoints[0].ticket)
    assert shown.column_names[-1] == "table_type"
    with_schemas = raw.got(_any("CommandGetTables", b"\x28\x01"))
    columns = pa.ipc.read_schema(pa.py_buffer(with_schemas.column("table_schema")[0].as_py()))
    assert columns.field("age").metadata[b"leakcap:range"] == b"[0, 110]" and columns.field("vip").type == pa.bool_()
    facts = dict(zip(*raw.told("CommandGetSqlInfo").to_pydict().values(), strict=True))
    assert facts[0] == "leakcap" and facts[3] is True
    for name in ("PrimaryKeys", "ExportedKeys", "ImportedKeys", "CrossReference", "XdbcTypeInfo"):
        assert raw.told(f"CommandGet{name}").num_rows == 0


def _any(name: str, inside: bytes) -> bytes:
    head = packed(name, {})
    assert head.endswith(b"\x12\x00")
    return head[:-1] + bytes([len(inside)]) + inside


@pytest.mark.parametrize(
    ("pattern", "found"),
    [("%", True), ("", False), ("people", True), ("P%", False), ("%e%e", True), ("_eople", True), ("people_", False)],
)
def test_patterns_are_those_of_sql(pattern: str, found: bool) -> None:
    assert flight_catalog._like("people", pattern) is found


def test_a_hostile_pattern_takes_no_time() -> None:
    began = time.process_time()
    assert not flight_catalog._like("a" * 4000, "%a" * 2000 + "b")
    assert time.process_time() - began < 20


@pytest.mark.parametrize("size", [LONGEST + 1, 32 * 2**20])
def test_garbage_of_any_size_gets_a_sentence_and_the_server_lives_on(listening: Listening, size: int) -> None:
    raw = listening.client(listening.headers("ann"))
    for work in (
        lambda: raw.got(b"x" * size),
        lambda: raw.info(b"x" * size),
        lambda: raw.action("CreatePreparedStatement", b"x" * size),
        lambda: raw.got(packed("TicketStatementQuery", {1: b"x" * (size if size < 10**5 else 10)})),
        lambda: raw.got(b""),
        lambda: raw.got(statement(COUNT)),
        lambda: raw.info(b"\xff\xfe"),
        lambda: raw.info(packed("CommandStatementSubstraitPlan", {1: b"x"})),
        lambda: raw.info(packed("CommandStatementQuery", {1: b"\xff"})),
        lambda: raw.info(packed("CommandPreparedStatementQuery", {1: b"x"})),
        lambda: raw.client.get_flight_info(flight.FlightDescriptor.for_path("a", "b"), raw.options),
        lambda: raw.action("BeginTransaction", b""),
        lambda: raw.action("x" * 5000, b""),
        lambda: list(raw.client.list_flights(options=raw.options)),
        lambda: _put(raw),
        lambda: _exchanged(raw),
    ):
        with pytest.raises(flight.FlightError) as found:
            work()
        sentence(found.value)
    assert raw.told("CommandGetCatalogs").num_rows == 1


def _put(raw: RawClient) -> None:
    import pyarrow as pa

    writer, _ = raw.client.do_put(flight.FlightDescriptor.for_command(b"x"), pa.schema([("a", pa.int8())]), raw.options)
    writer.close()


def _exchanged(raw: RawClient) -> None:
    writer, reader = raw.client.do_exchange(flight.FlightDescriptor.for_command(b"x"), raw.options)
    with writer:
        reader.read_chunk()


def test_what_a_defect_says_of_itself_stays_here(
    listening: Listening, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise ValueError("row of Alice, 47")

    raw = listening.client(listening.headers("ann"))
    monkeypatch.setattr(listening.running.state.asking, "answer", broken)
    with pytest.raises(flight.FlightInternalError, match="The server failed") as found:
        raw.asked("select count(*) as never from people")
    sentence(found.value)
    assert "Alice" not in str(found.value) + caplog.text and "ValueError" in caplog.text


def sentence(error: Any) -> None:
    """Our own words, and nothing of where they arose."""
    words = str(error)
    assert "Traceback" not in words and "Python exception" not in words and ".py" not in words
    assert words.split(". Detail", maxsplit=1)[0][:1].isupper(), words


def test_requests_are_counted_like_all_others(tmp_path: Path) -> None:
    made = Listening(filled(tmp_path, ServerLimits(requests_per_minute=5, questions_per_minute=1)))
    try:
        raw = made.client(made.headers("ann"))
        raw.asked(COUNT)
        with pytest.raises(flight.FlightUnavailableError, match="too many questions"):
            raw.asked(BY_SEX)
        assert "too many requests" in until_refused(raw, flight.FlightUnavailableError)
        assert "too many requests" in until_refused(made.client({}), flight.FlightUnavailableError)
        log = [(one.who, one.what, one.outcome) for one in made.running.state.audit_log.latest()]
        assert ("ann", "asked a question", "done") in log
    finally:
        made.server.shutdown()


def until_refused(raw: RawClient, kind: Any) -> str:
    """What is said when something was asked too often."""
    for _ in range(20):
        try:
            raw.told("CommandGetCatalogs")
        except kind as error:
            return str(error)
        except flight.FlightUnauthenticatedError:
            continue
    return ""


def test_a_name_and_a_token_as_password_are_enough(listening: Listening) -> None:
    token = listening.running.token("ann")
    client = flight.connect(listening.uri)
    pair = client.authenticate_basic_token(b"ann", token.encode())
    assert pair == (b"authorization", f"Bearer {token}".encode())
    with pytest.raises(flight.FlightError, match="Send a token"):
        client.authenticate_basic_token(b"ann", b"correct horse ann")


def test_places_to_listen() -> None:
    assert address_of("8018") == ("127.0.0.1", 8018) == address_of(":8018")
    assert address_of("[::1]:0") == ("::1", 0)
    for wrong in ("", "x", "127.0.0.1", "host:", "1:99999", "1:-1"):
        with pytest.raises(lc.InputError, match="--flight"):
            address_of(wrong)


def test_without_a_certificate_only_this_machine_is_answered_and_a_taken_port_is_said(listening: Listening) -> None:
    state = listening.running.state
    with pytest.raises(lc.InputError, match="this machine alone"), flight_beside(state, "0.0.0.0:0", None, None):
        pass
    with pytest.raises(lc.InputError, match="cannot be used for Flight"):
        flight_server(state, "127.0.0.1", listening.server.port)


def _bytes(table: Any) -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())
