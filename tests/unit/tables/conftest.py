"""What these tests start from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.unit.tables.people import PEOPLE


@pytest.fixture(params=["csv", "csv.gz", "tsv", "parquet"])
def people(request: Any, tmp_path: Path) -> Path:
    path = tmp_path / f"people.{request.param}"
    if request.param == "parquet":
        PEOPLE.to_parquet(path)
    else:
        PEOPLE.to_csv(path, index=False, sep="\t" if request.param == "tsv" else ",")
    return path


@pytest.fixture
def table(tmp_path: Path) -> Callable[..., Path]:
    def write(content: str | bytes | pd.DataFrame, name: str = "table.csv") -> Path:
        path = tmp_path / name
        if isinstance(content, pd.DataFrame):
            content.to_parquet(path)
        else:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write
