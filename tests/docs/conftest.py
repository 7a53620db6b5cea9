"""What tests of pages share: the process whose copies run them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from tests.cost import count_seconds
from tests.docs.pages import Nursery


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    with contextlib.closing(Nursery(count_seconds)) as made:
        yield made
