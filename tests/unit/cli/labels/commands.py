"""The command on a table of labels, and what it left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from leakcap.certificates.labels import LabelCertificate
from tests.unit.cli.running import leakcap

ROWS = 60
YES = ["--column", "sick", "--epsilon", "1", "--classes", "no,yes"]
THREE = ["--column", "kind", "--epsilon", "1", "--classes", "a,b,c"]
BINS = ["--column", "pay", "--epsilon", "2", "--low", "0", "--high", "100"]


def privatised(*options: str, data: str = "people.csv", out: str = "out") -> int:
    return leakcap("labels", data, *options, "--out", out)


def text_of(path: str, **options: Any) -> pd.DataFrame:
    return pd.read_csv(path, dtype=str, na_filter=False, **options)


def certificate(out: str = "out/public") -> LabelCertificate:
    return LabelCertificate.from_json(Path(out, "certificate.json").read_text())
