"""One cluster of two workers for the files whose tests leave it as they found it: its start costs most."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import leakcap as lc


@pytest.fixture(scope="package")
def pair() -> Iterator[lc.cluster.Cluster]:
    pytest.importorskip("distributed")
    with lc.cluster.connect(workers=2) as found:
        yield found
