"""Where the tests' randomness comes from: a stream of each test's own, the same in every run.

A release draws from the operating system. A check of its law is then wrong now and then by chance, and a suite of
five thousand tests is red for no reason every few runs. So `os.urandom`, from which `secrets` and an unseeded generator
of numpy also draw, gives bytes that follow from the test's name. Processes of their own (the command line, kills) draw
from the operating system as ever. `LEAKCAP_TEST_CHANCE=fresh` draws everything anew: to look for what passes by luck.
"""

from __future__ import annotations

import os
import random
import zlib
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

FRESH = os.environ.get("LEAKCAP_TEST_CHANCE") == "fresh"


class Chance:
    """Begins a stream with every test, and with every fixture that several tests share, whoever asks for it first."""

    def __init__(self) -> None:
        self.stream = np.random.default_rng(0)
        if not FRESH:
            os.urandom = random._urandom = self.read  # type: ignore[attr-defined]  # the second is what `secrets` reads
            if find_spec("hypothesis"):  # the oldest environment has none
                from hypothesis import settings

                settings.register_profile("the same in every run", derandomize=True, deadline=None)
                settings.load_profile("the same in every run")

    def read(self, size: int) -> bytes:
        return self.stream.bytes(size)

    def begin(self, name: str) -> None:
        self.stream = np.random.default_rng(zlib.crc32(name.encode()))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: Any) -> None:
        self.begin(item.nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Iterator[Any]:
        if fixturedef.scope == "function":
            return (yield)
        before = self.stream
        self.begin(f"{fixturedef.baseid}::{fixturedef.argname}::{getattr(request, 'param_index', 0)}")
        try:
            return (yield)
        finally:
            self.stream = before
