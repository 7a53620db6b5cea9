"""Questions in SQL on workers of a cluster: answers and charges of one table, bit for bit."""

from __future__ import annotations

from dataclasses import replace

import pytest

import leakcap as lc
from tests.sql.hospital import registered
from tests.sql.test_parted import ASKED, DECLARED, told

pytest.importorskip("duckdb")


def test_workers_of_a_cluster_give_the_same(pair: lc.cluster.Cluster) -> None:
    """Each part in an engine of its own, in a process of its own beside its worker."""
    catalog = registered(keys=DECLARED)
    some = [ASKED[1], ASKED[6], ASKED[9], ASKED[12]]
    expected = told(lc.Session(catalog, cap=0.6, seed=1), some)
    session = lc.Session(replace(catalog, parts=3), cap=0.6, seed=1, backend=pair)
    assert told(session, some) == expected
    assert len(session._workers._there) == 3
