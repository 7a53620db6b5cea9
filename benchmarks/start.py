"""Start-up of the command beside Python's own, in turn; and what keeping a checkpoint costs a run."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import leakcap as lc
from benchmarks.records import record

COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "leakcap --help": ["-m", "leakcap", "--help"],
    "leakcap explain mi=0.05": ["-m", "leakcap", "explain", "mi=0.05"],
}


def main(rounds: int = 15) -> None:
    seconds: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(rounds):
        for name, arguments in COMMANDS.items():
            began = time.perf_counter()
            subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
            seconds[name].append(time.perf_counter() - began)
    own = np.median(seconds["python -c pass"])
    for name, taken in seconds.items():
        median = float(np.median(taken))
        print(f"{name:<26}{1000 * median:6.0f} ms, {1000 * (median - own):4.0f} ms beyond Python's own")
    record("start-help", f"{1000 * (np.median(seconds['leakcap --help']) - own):.0f} ms")
    _checkpoints()


def _checkpoints() -> None:
    rows = np.random.default_rng(0).normal(size=(2000, 4))
    taken: dict[bool, list[float]] = {False: [], True: []}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(6):
            kept = bool(turn % 2)
            where = Path(folder) / str(turn) if kept else None
            began = time.perf_counter()
            lc.plan(_work, rows, cap=lc.mutual_information(0.3), worlds=1024, draws=256, seed=1, checkpoint=where)
            taken[kept].append(time.perf_counter() - began)
    plain, kept = (np.median(taken[kind]) for kind in (False, True))
    print(f"1,024 worlds of 2 ms: {plain:.2f} s; with a checkpoint {kept:.2f} s, {kept / plain:.2f} x")
    record(
        "start-checkpoint",
        f"{kept / plain:.2f} times the run without it",
        topic="The command line",
        claim="A run of 1,024 worlds of 2 ms with a checkpoint",
        command="python -m benchmarks start",
        asked="-",
    )


def _work(rows: np.ndarray) -> np.ndarray:
    end = time.perf_counter() + 0.002
    while time.perf_counter() < end:
        pass
    return rows.mean(axis=0)
