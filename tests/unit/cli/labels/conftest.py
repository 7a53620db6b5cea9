"""What these tests start from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.unit.cli.labels.commands import ROWS


@pytest.fixture(autouse=True)
def table(tmp_path: Path, monkeypatch: Any) -> pd.DataFrame:
    """Labels of several types among features that are awkward to write."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    words = ["plain", "with, comma", 'with "quotes"', "two\nlines", " padded ", "", "007", "1.10", "NA", "semi;colon"]
    found = pd.DataFrame(
        {
            "who": [f"p{i}" for i in range(ROWS)],
            "words": [words[i % len(words)] for i in range(ROWS)],
            "sick": np.where(rng.random(ROWS) < 0.3, "yes", "no"),
            "age": rng.normal(40, 9, size=ROWS).round(2),
            "kind": rng.choice(["a", "b", "c"], size=ROWS),
            "code": rng.integers(0, 2, size=ROWS),
            "pay": rng.uniform(0, 100, size=ROWS).round(1),
        }
    )
    found.to_csv("people.csv", index=False)
    return found
