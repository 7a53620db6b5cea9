"""What several files share: TPC-H, made and registered once."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

import leakcap as lc
from tests.sql.test_right import tpch_tables


@pytest.fixture(scope="session")
def small_tpch(tmp_path_factory: pytest.TempPathFactory) -> lc.sql.Catalog:
    """At scale .01, customers as the people."""
    if shutil.which("tpchgen-cli") is None and not (Path(sys.executable).parent / "tpchgen-cli").exists():
        pytest.skip("tpchgen-cli is not installed")
    return tpch_tables(tmp_path_factory.mktemp("tpch"))
