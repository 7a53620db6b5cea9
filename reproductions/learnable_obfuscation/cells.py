"""The cells of the tables, and their records: one small file for each thing that was measured in a cell.

A cell is a setting with a noise, with or without public rows. What has a file is not measured again.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reproductions.learnable_obfuscation.published import TABLES, Setting

__all__ = ["KINDS", "MEASURED", "Cell", "asked_of_figure", "cells_of", "read_record", "record_path", "write_record"]

MEASURED = Path(__file__).parent / "measured"
# What each table needs of its cells.
KINDS = {
    1: ("accuracy", "whole"),
    2: ("accuracy", "whole"),
    3: ("accuracy", "member"),
    4: ("attack", "insider", "printed"),
    5: ("member", "insider", "printed"),
}


@dataclass(frozen=True)
class Cell:
    """Rows sampled, released, mixed; noise; whether public rows are added."""

    setting: Setting
    noise: float
    learnable: bool = False

    @property
    def name(self) -> str:
        n, m, k = self.setting
        return f"{'public' if self.learnable else 'plain'}-{n}-{m}-{k}-{self.noise:g}"


def cells_of(table: int) -> Iterator[Cell]:
    """Every published cell of a table; Table 4 has those of Table 3."""
    for setting, row in TABLES[3 if table == 4 else table].items():
        for noise in row:
            if table != 4 or noise > 0:
                yield Cell(setting, noise, table in (2, 5))


def record_path(folder: Path, kind: str, cell: Cell) -> Path:
    return folder / f"{kind}-{cell.name}.json"


def read_record(folder: Path, kind: str, cell: Cell) -> dict[str, Any] | None:
    """What was measured, or None."""
    path = record_path(folder, kind, cell)
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def write_record(folder: Path, kind: str, cell: Cell, found: dict[str, Any]) -> None:
    """All of the file or none of it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = record_path(folder, kind, cell)
    date = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    whole = {"kind": kind, "setting": list(cell.setting), "noise": cell.noise, "public": cell.learnable} | found
    half = path.with_suffix(f".{os.getpid()}.half")
    half.write_text(json.dumps(whole | {"date": date}, indent=1) + "\n", encoding="utf-8")
    os.replace(half, path)


def asked_of_figure(given: Sequence[str] | None, words: str, file: str) -> argparse.Namespace | None:
    """What the command line asks of a figure; None where its record is there."""
    parser = argparse.ArgumentParser(description=words.splitlines()[0])
    parser.add_argument("--backend", default="torch:cpu")
    parser.add_argument("--out", type=Path, default=MEASURED)
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args(given)
    options.out.mkdir(parents=True, exist_ok=True)
    if not (options.out / file).is_file():
        return options
    print(f"{file} is there")
    return None
