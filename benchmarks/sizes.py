"""Rows and outputs, seconds and error: means at a cap of .55, by coins and by worlds; the table of the README."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

import leakcap as lc
from benchmarks.records import record

SIZES = ((1_000, 1), (1_000, 10), (10_000, 10), (10_000, 100), (100_000, 10), (1_000_000, 10))
WAYS = {"sizes-sums": "lc.stats.mean", "sizes-any": "lambda table: table.mean(axis=0)"}
MAX_LOOPED = 10_000_000  # cells; a function of one's own runs 1,024 times
README = Path(__file__).parents[1] / "README.md"
MARK = "<!-- Made by `python -m benchmarks sizes`. -->"


def main() -> None:
    lines = []
    _one(lc.stats.mean, 200, 2)  # loops are compiled, and modules loaded
    _one(_own, 200, 2)
    for rows, outputs in SIZES:
        cells = [f"{rows:,}", str(outputs)]
        for name, fn in (("sums", lc.stats.mean), ("any", _own)):
            if name == "any" and rows * outputs > MAX_LOOPED // 2:
                cells += ["-", "-"]
                continue
            seconds, error = _one(fn, rows, outputs)
            cells += [f"{seconds:.2g} s", f"{error:.2g}"]
            record(
                f"sizes-{name}-{rows}-{outputs}",
                f"{seconds:.2g} CPU s, error {error:.2g} of a standard deviation",
                topic="Caps and noise",
                claim=f"{outputs} means of {rows:,} rows at .55, by `{WAYS['sizes-' + name]}`",
                command="python -m benchmarks sizes",
                asked="-",
            )
        lines.append("| " + " | ".join(cells) + " |")
        print(lines[-1])
    _write(lines)


def _own(table: np.ndarray) -> np.ndarray:
    return table.mean(axis=0)


def _one(fn: object, rows: int, outputs: int) -> tuple[float, float]:
    """CPU seconds of a release, and the expected error of an output in standard deviations of its column."""
    data = np.random.default_rng(0).normal(size=(rows, outputs))
    began = time.process_time()
    plan = lc.plan(fn, data, cap=0.55)
    plan.release()
    taken = time.process_time() - began
    return taken, float(np.sqrt((plan.summary().error ** 2).mean()))


def _write(lines: list[str]) -> None:
    """The table's rows in the README, in place of those of an earlier run."""
    before, _, after = README.read_text(encoding="utf-8").partition(MARK)
    head, rule, *_ = after.strip("\n").split("\n")
    rest = after.strip("\n").split("\n\n", 1)[1]
    README.write_text("\n".join([f"{before}{MARK}", "", head, rule, *lines, "", rest]), encoding="utf-8")


if __name__ == "__main__":
    main()
