"""One server for the tests that leave it as it is; hashes of passwords that are quick to make."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("fastapi", reason="the server is an extra: pip install 'leakcap[server]'")
pytest.importorskip("httpx2", reason="no httpx2 here: pip install 'leakcap[dev]' brings it")
pytest.importorskip("duckdb", reason="no duckdb here: pip install 'leakcap[sql]' brings it")

from leakcap.server import accounts
from leakcap.server.settings import ServerLimits
from tests.unit.server.running import STARTED, Running, close_since, filled

# Tests ask by the thousand from one address: how fast they do says nothing.
UNHURRIED = ServerLimits(requests_per_minute=1_000_000, questions_per_minute=1_000_000)


@pytest.fixture(scope="session", autouse=True)
def _quick_hashes() -> Iterator[None]:
    from argon2 import PasswordHasher

    quick = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accounts, "_hasher", lambda: quick)
        accounts._nobodys_hash.cache_clear()
        yield
    accounts._nobodys_hash.cache_clear()


@pytest.fixture(autouse=True)
def _servers_of_a_test_end_with_it() -> Iterator[None]:
    """Those of modules are started before this, and go on."""
    before = len(STARTED)
    yield
    close_since(before)


@pytest.fixture(scope="module", autouse=True)
def _servers_of_a_module_end_with_it() -> Iterator[None]:
    before = len(STARTED)
    yield
    close_since(before)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """With a key of its own: by chance of theirs the servers of all modules have the same names."""
    home = tmp_path_factory.mktemp("server")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEAKCAP_KEY", str(home / "key"))
        yield filled(home, UNHURRIED)
