"""Flight: with the released numbers held fixed, all that is told through it is the same for all coins."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the server is an extra: pip install 'leakcap[server]'")
pytest.importorskip("httpx2", reason="no httpx2 here: pip install 'leakcap[dev]' brings it")
pytest.importorskip("duckdb", reason="no duckdb here: pip install 'leakcap[sql]' brings it")
pytest.importorskip("pyarrow.flight", reason="this pyarrow has no Flight")

from pyarrow import flight

from leakcap.server import flight as server_of_flight
from leakcap.server.flight_messages import packed
from leakcap.server.settings import ServerLimits
from leakcap.sql.engine import LocalEngine
from tests.leaks.test_server import ASKED, SEEDS, _quick_hashes  # noqa: F401 - a fixture
from tests.leaks.test_sessions import rig
from tests.unit.server.running import filled

ABOUT = ("CommandGetCatalogs", "CommandGetDbSchemas", "CommandGetTables", "CommandGetTableTypes", "CommandGetSqlInfo")


def told(running: Any) -> list[bytes]:
    """Plans, tables as bytes, and refusals, of everything that can be asked."""
    token = running.token("ann")
    server = server_of_flight.flight_server(running.state, "127.0.0.1", 0)
    client, found = flight.connect(f"grpc://127.0.0.1:{server.port}"), []
    try:
        for name in ABOUT:
            found += asked(client, {"authorization": f"Bearer {token}"}, packed(name, {}))
        for body in ASKED:
            how = {name: str(body[name]) for name in ("share", "noise") if name in body}
            headers = {"authorization": f"Bearer {token}", "database": "clinic"} | how
            for _ in range(2):
                found += asked(client, headers, packed("CommandStatementQuery", {1: body["sql"].encode()}))
    finally:
        client.close()
        server.shutdown()
    return found


def asked(client: Any, headers: dict[str, str], command: bytes) -> list[bytes]:
    options = flight.FlightCallOptions(headers=[(k.encode(), v.encode()) for k, v in headers.items()])
    found = []
    try:
        info = client.get_flight_info(flight.FlightDescriptor.for_command(command), options)
        found.append(repr((info.schema, info.total_records, info.total_bytes, info.app_metadata)).encode())
        reader = client.do_get(info.endpoints[0].ticket, options)
        for chunk in reader:
            found.append(chunk.data.serialize().to_pybytes() + repr(chunk.app_metadata).encode())
    except flight.FlightError as error:
        found.append(f"{type(error).__name__} {error}".encode())
    return found


def in_worlds(folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> Iterator[tuple[Any, Any]]:
    """One server after the other, as they are looked at."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr("leakcap.sql.asking.WorkerEngine", LocalEngine)  # with processes: test_server.py
    for seed in SEEDS:
        monkeypatch.setenv("LEAKCAP_KEY", str(folder / f"key-{seed}"))
        with monkeypatch.context() as patch:
            rig(patch, seed)
            caplog.clear()
            running = filled(folder / f"server-{seed}", ServerLimits(ahead=0))
            shown = told(running)
            with running.state.datasets.session("clinic", "ann") as session:
                coins = session._desk.coins.copy()
        logged = caplog.text.replace(f"server-{seed}", "server")
        yield [*shown, logged.encode()], coins


def test_all_that_flight_tells_is_the_same_whichever_coins_were_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (first, coins), (second, others) = in_worlds(tmp_path, monkeypatch, caplog)
    assert not np.array_equal(coins, others), "the coins are the same: nothing was compared"
    assert sum(b"FlightServerError" in one for one in first) >= 4, "hardly anything was refused"
    assert len(first) > 2 * len(ASKED), "hardly anything was answered"
    assert [(a, b) for a, b in zip(first, second, strict=True) if a != b] == []


@pytest.mark.parametrize("planted", ["a row", "a refusal"])
def test_planted_leaks_of_the_coins_are_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, planted: str
) -> None:
    honest = server_of_flight.FlightAsking.answered

    def leaks(self: Any, caller: Any, ticket: bytes) -> Any:
        table = honest(self, caller, ticket)
        with self.state.datasets.session("clinic", "ann") as session:
            takes_part = int(session._desk.coins[0])
        if planted == "a refusal" and takes_part:
            raise server_of_flight.Refusal(409, "Somebody has not enough left.")
        return table.slice(0, takes_part) if planted == "a row" else table

    monkeypatch.setattr(server_of_flight.FlightAsking, "answered", leaks)
    monkeypatch.setattr("tests.leaks.test_flight.ASKED", ASKED[:1])
    monkeypatch.setattr("tests.leaks.test_flight.ABOUT", ())
    (first, _), (second, _) = in_worlds(tmp_path, monkeypatch, caplog)
    assert first != second
