"""Measure the cells of tables, one record after another; what has a record is left alone.

Several processes may share one GPU: `--share 0/4` takes every fourth piece of work. Nothing is begun after `--seconds`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reproductions.learnable_obfuscation.as_printed import AsPrinted
from reproductions.learnable_obfuscation.attack import LikelihoodAttack
from reproductions.learnable_obfuscation.cells import KINDS, MEASURED, Cell, cells_of, record_path, write_record
from reproductions.learnable_obfuscation.data import Embedded, made_up, read
from reproductions.learnable_obfuscation.encoded import bare_sets, encoded_sets
from reproductions.learnable_obfuscation.insider import Insider
from reproductions.learnable_obfuscation.learn import Schooling, network_accuracy, ridge_accuracy
from reproductions.learnable_obfuscation.member import Member
from reproductions.learnable_obfuscation.published import COLUMNS
from reproductions.learnable_obfuscation.whole_nats import WholeNats

__all__ = ["main", "measured"]

TRIALS = 5
SMOKE = Path(__file__).parents[1] / "out" / "learnable_obfuscation"
# The last two are reckoned on a processor, on whatever device.
TOOLS: dict[str, Any] = {"whole": WholeNats, "attack": LikelihoodAttack, "insider": Insider, "printed": AsPrinted}
SMOKE_SETTING, SMOKE_COLUMNS = (200, 400, 5), 16


class Bench:
    """The pools, each read once and where it is needed, and what measures them."""

    def __init__(self, device: str, *, smoke: bool) -> None:
        self.device, self.smoke = device, smoke
        self.columns = SMOKE_COLUMNS if smoke else COLUMNS
        self._data: dict[bool, Embedded] = {}
        self._tools: dict[tuple[str, bool], Any] = {}

    def data(self, learnable: bool) -> Embedded:
        if learnable not in self._data:
            self._data[learnable] = (made_up if self.smoke else read)(learnable=learnable)
        return self._data[learnable]

    def tool(self, kind: str, learnable: bool) -> Any:
        if (kind, learnable) not in self._tools:
            data = self.data(learnable)
            if kind == "member":
                made: Any = Member(data, columns=self.columns, backend=f"torch:{self.device}")
            else:
                made = TOOLS[kind](data, columns=self.columns, device=self.device)
            self._tools[kind, learnable] = made
        return self._tools[kind, learnable]

    def accuracies(self, cells: Sequence[Cell]) -> Iterator[tuple[Cell, dict[str, Any]]]:
        """All noises of one setting side by side."""
        first = cells[0]
        data = self.data(first.learnable)
        began = time.perf_counter()
        noises = [cell.noise for cell in cells]
        sets = encoded_sets(first.setting, noises, data, columns=self.columns, trials=TRIALS, device=self.device)
        school = Schooling(wide=32, epochs=2) if self.smoke else Schooling()
        network = network_accuracy(sets, data, school).reshape(len(cells), TRIALS)
        ridge = ridge_accuracy(sets, data).reshape(len(cells), TRIALS)
        bare: dict[str, float] = {}
        if not first.learnable and 0.0 in noises:
            same = bare_sets(first.setting, data, columns=self.columns, trials=TRIALS, device=self.device)
            bare["unencoded_network"] = float(np.median(network_accuracy(same, data, school)))
            bare["unencoded_ridge"] = float(np.median(ridge_accuracy(same, data)))
        taken = round((time.perf_counter() - began) / len(cells), 1)
        for cell, net, flat in zip(cells, network, ridge, strict=True):
            yield (
                cell,
                {
                    "network": float(np.median(net)),
                    "ridge": float(np.median(flat)),
                    "network_trials": [round(float(one), 4) for one in net],
                    "ridge_trials": [round(float(one), 4) for one in flat],
                    "seconds": taken,
                    **(bare if cell.noise == 0 else {}),
                },
            )


def work_of(tables: Sequence[int], *, smoke: bool) -> list[tuple[str, list[Cell]]]:
    """Pieces of work, without repeats: accuracies setting by setting, everything else cell by cell."""
    pieces: dict[tuple[str, Any], list[Cell]] = {}
    for table in tables:
        for kind in KINDS[table]:
            for cell in cells_of(table):
                some = Cell(SMOKE_SETTING, cell.noise, cell.learnable) if smoke else cell
                if kind == "accuracy":
                    found = pieces.setdefault((kind, (some.setting, some.learnable)), [])
                    if some not in found:
                        found.append(some)
                elif some.noise > 0:
                    pieces[kind, some] = [some]
    return [(kind, cells) for (kind, _), cells in pieces.items()]


def measured(
    tables: Sequence[int],
    folder: Path,
    *,
    device: str,
    smoke: bool = False,
    share: tuple[int, int] = (0, 1),
    seconds: float = float("inf"),
) -> int:
    """Make the records that are missing; how many are missing still."""
    began, bench = time.monotonic(), Bench(device, smoke=smoke)
    left = 0
    for kind, every in work_of(tables, smoke=smoke)[share[0] :: share[1]]:
        cells = [cell for cell in every if not record_path(folder, kind, cell).is_file()]
        if not cells:
            continue
        if time.monotonic() - began > seconds:
            left += len(cells)
            continue
        if kind == "accuracy":
            found = bench.accuracies(cells)
        else:
            found = ((cell, bench.tool(kind, cell.learnable)(cell)) for cell in cells)
        for cell, record in found:
            write_record(folder, kind, cell, record | {"device": device})
            print(f"{time.monotonic() - began:6.1f} s  {kind:9} {cell.name}: {_short(record)}", flush=True)
    return left


def _short(record: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in record.items() if isinstance(value, float))


def main(tables: Sequence[int], given: Sequence[str]) -> None:
    """Measure tables, from the command line."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--backend", default="torch:cuda", help="torch:cuda or torch:cpu")
    parser.add_argument("--out", type=Path, default=None, help="folder of the records")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin nothing later")
    parser.add_argument("--share", default="0/1", help="which part of the work, of how many: 0/4")
    parser.add_argument("--smoke", action="store_true", help="a toy pool, to see whether everything runs")
    options = parser.parse_args(given)
    part, parts = (int(word) for word in options.share.split("/"))
    folder = options.out or (SMOKE if options.smoke else MEASURED)
    left = measured(
        tables,
        folder,
        device=options.backend.removeprefix("torch:"),
        smoke=options.smoke,
        share=(part, parts),
        seconds=options.seconds,
    )
    print(f"{left} records of this share are missing" if left else "every record of this share is there")
