"""Tests draw the same in every run: each from a stream of its own."""

from __future__ import annotations

import os
import secrets

import numpy as np
import pytest

from leakcap.noise.entropy import OperatingSystem
from tests.chance import FRESH

pytestmark = pytest.mark.skipif(FRESH, reason="LEAKCAP_TEST_CHANCE=fresh")


def drawn() -> tuple[object, ...]:
    system = OperatingSystem()
    return (
        os.urandom(4),
        secrets.randbits(64),
        secrets.token_hex(4),
        float(np.random.default_rng().random()),
        system.below(1000),
        system.normals(2).tolist(),
    )


@pytest.fixture(scope="module")
def shared() -> tuple[object, ...]:
    return drawn()


SEEN: list[tuple[object, ...]] = []


@pytest.mark.parametrize("number", [1, 2])
def test_two_tests_have_two_streams(number: int) -> None:
    SEEN.append(drawn())
    assert len(set(map(str, SEEN))) == len(SEEN)


def test_a_stream_goes_on() -> None:
    assert not set(drawn()[:4]) & set(drawn()[:4])


def test_what_is_drawn_follows_from_the_name_alone(shared: tuple[object, ...]) -> None:
    """These figures were drawn in another process, on another machine."""
    assert (secrets.randbits(32), shared[1]) == (888922036, 5760489165733945847)
