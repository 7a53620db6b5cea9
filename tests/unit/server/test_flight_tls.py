"""Arrow Flight SQL through TLS: whoever trusts the certificate's authority connects, and nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leakcap.server.serving import flight_beside
from tests.authorities import new_key, pem_of, signed
from tests.unit.server.running import COUNT, Running, filled

flight = pytest.importorskip("pyarrow.flight", reason="this pyarrow has no Flight")
adbc = pytest.importorskip(
    "adbc_driver_flightsql.dbapi", reason="no ADBC driver here: pip install 'leakcap[dev]' brings it"
)
ROOTS, BEARER = "adbc.flight.sql.client_option.tls_root_certs", "adbc.flight.sql.authorization_header"
HEADER = "adbc.flight.sql.rpc.call_header."


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, str, dict[str, str]]]:
    """A server with a certificate, its address, and certificates of authorities: its own, and another."""
    home = tmp_path_factory.mktemp("tls")
    ours, theirs, key = ("ours", new_key()), ("theirs", new_key()), new_key()
    trusted = {one[0]: signed(one[0], one[1], one, authority=True).decode() for one in (ours, theirs)}
    certificate, key_file = home / "cert.pem", home / "key.pem"
    certificate.write_bytes(signed("leakcap.example.org", key, ours))
    key_file.write_bytes(pem_of(key))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEAKCAP_KEY", str(home / "key"))
        running = filled(home / "server")
        with flight_beside(running.state, "127.0.0.1:0", certificate, key_file) as address:
            yield running, address, trusted
        running.state.close()


def counted(running: Running, address: str, **more: str) -> Any:
    """The answer to a question through ADBC."""
    given = {BEARER: f"Bearer {running.token('ann')}", HEADER + "database": "clinic", HEADER + "share": "0.01", **more}
    with adbc.connect(address, db_kwargs=given, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(COUNT)
        return cursor.fetchone()[0]


def test_whoever_trusts_the_authority_is_answered(encrypted: tuple[Running, str, dict[str, str]]) -> None:
    running, address, trusted = encrypted
    assert address.startswith("grpc+tls://127.0.0.1:")
    assert 0 < counted(running, address, **{ROOTS: trusted["ours"]}) < 600
    client = flight.connect(address, tls_root_certs=trusted["ours"])
    sent = flight.FlightCallOptions(headers=[(b"authorization", f"Bearer {running.token('ann')}".encode())], timeout=20)
    assert list(client.list_actions(sent)), "a plain Flight client, too"


@pytest.mark.parametrize("authority", ["none", "another", "no encryption"])
def test_nobody_else_connects(encrypted: tuple[Running, str, dict[str, str]], authority: str) -> None:
    """Neither a token nor a question leaves a client that was not shown the right certificate."""
    running, address, trusted = encrypted
    before = running.program("ann").get("/api/datasets/clinic/budget").json()
    if authority == "no encryption":
        address = address.replace("grpc+tls", "grpc")
    more = {ROOTS: trusted["theirs"]} if authority == "another" else {}
    with pytest.raises(adbc.Error):
        counted(running, address, **more, **{"adbc.flight.sql.rpc.timeout_seconds.query": "5.0"})
    assert running.program("ann").get("/api/datasets/clinic/budget").json() == before


def test_a_certificate_without_its_key_starts_nothing(tmp_path: Path) -> None:
    from leakcap.errors import InputError
    from leakcap.server.serving import refuse_open

    with pytest.raises(InputError, match="belong together"):
        refuse_open("0.0.0.0", tmp_path / "cert.pem", None)
