"""What every test starts from: a key that is nobody's, nothing released before, chance of its own, a meter."""

from __future__ import annotations

import gc
import logging
import os
import secrets
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from _pytest.doctest import DoctestModule

from leakcap.planning.released import forget_released
from tests.chance import Chance
from tests.compile_once import take_turns
from tests.copies import Copies
from tests.cost import Meter, count_seconds, tier_of
from tests.few import FEW
from tests.postgres import Server, server

logging.getLogger("numba").setLevel(logging.WARNING)  # leak tests listen to everything: it would tell what it compiles


# Whatever is collected stays to the end: looking for circles in it takes a tenth of the time that it takes to collect.
USUALLY = gc.get_threshold()
gc.set_threshold(100_000)


def pytest_configure(config: Any) -> None:
    take_turns()
    config.pluginmanager.register(Meter(), "cpu-meter")
    config.pluginmanager.register(Chance(), "chance")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    from tests.turns import processes

    return processes()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from tests.turns import LongestFirst

    if config.getvalue("dist") != "loadfile":
        return None
    config.option.loadscopereorder = False  # by number of tests alone
    return LongestFirst(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):  # a process of several
        from tests.turns import in_turn

        in_turn(items)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Iterator[None]:
    """No examples are looked for in the docstrings of tests."""
    return [one for one in (yield) if not isinstance(one, DoctestModule)]


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(*USUALLY)


@pytest.fixture(scope="session", autouse=True)
def _key_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Vaults never take the key of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEAKCAP_KEY", str(tmp_path_factory.mktemp("key") / "key"))
        yield


_number = count()  # not by chance: that is drawn for each test anew


@pytest.fixture(autouse=True, scope="module")
def _ledger_of_the_module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Commands of one module know nothing of what others released."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEAKCAP_LEDGER", f"sqlite:///{tmp_path_factory.mktemp('ledger') / 'ledger.db'}")
        yield


@pytest.fixture(autouse=True)
def _ledger_of_the_test(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, _ledger_of_the_module: None
) -> None:
    """And neither do those of one test. It is written with the first release."""
    folder = tmp_path_factory.getbasetemp() / "ledgers"
    monkeypatch.setenv("LEAKCAP_LEDGER", f"sqlite:///{folder / f'{os.getpid()}-{next(_number)}'}.db")


@pytest.fixture
def own_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A key file of this test alone, where tests look at it; it is written with the first vault."""
    path = tmp_path / "keys" / "key"
    monkeypatch.setenv("LEAKCAP_KEY", str(path))
    return path


@pytest.fixture(scope="session")
def _copies() -> Iterator[type]:
    copies = Copies(count_seconds)
    yield copies.popen()
    copies.close()


@pytest.fixture(scope="module", autouse=True)
def _copies_where_no_process_is_tested(request: pytest.FixtureRequest, _copies: type) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if tier_of(request.node.nodeid) in ("tests/unit", "tests/everyday"):
            patch.setattr(subprocess, "Popen", _copies)
        yield


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A server for all tests of this process; they are left out, with a word, where there is none."""
    pytest.importorskip("psycopg", reason="no psycopg here: pip install 'leakcap[dev]' brings it")
    with ExitStack() as stack:
        try:
            running = stack.enter_context(server("fsync=off"))  # no power is cut in tests
        except (RuntimeError, OSError, KeyError) as error:
            pytest.skip(f"PostgreSQL does not start: {error}")
        yield running


@pytest.fixture
def database(postgres: Server) -> str:
    """The address of a database of this test alone."""
    return postgres.fresh(f"test_{secrets.token_hex(6)}")


@pytest.fixture(autouse=True)
def _nothing_released_before() -> None:
    forget_released()


@pytest.fixture
def small_pools(monkeypatch: pytest.MonkeyPatch) -> None:
    """A first block of 8 worlds, where the number of worlds is chosen: three stages are 32."""
    monkeypatch.setattr("leakcap.planning.doubling.FIRST_WORLDS", 8)


@pytest.fixture
def few_worlds(monkeypatch: pytest.MonkeyPatch) -> None:
    """64 worlds where their number is left open."""
    monkeypatch.setattr("leakcap.planning.how_many.SERVED_WORLDS", (64, 32))
    monkeypatch.setattr("leakcap.planning.how_many.LOOPED_WORLDS", 64)


@pytest.fixture
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of claims to which neither the draws nor the size of the noise matter."""
    for name, value in FEW.items():
        monkeypatch.setattr(name, value)


@pytest.fixture(scope="module", autouse=True)
def _libraries_are_not_looked_through() -> None:
    """What earlier files have loaded stays to the end, too: a function that fails in secret has all else looked through
    for circles each time."""
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def _few_draws_where_no_claim_is_tested(request: pytest.FixtureRequest) -> Iterator[None]:
    """Of a whole file, so that what its tests share is made with the same settings."""
    with pytest.MonkeyPatch.context() as patch:
        if tier_of(request.node.nodeid) in ("tests/unit", "tests/leaks"):
            for name, value in FEW.items():
                patch.setattr(name, value)
        yield
