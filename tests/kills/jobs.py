"""What the killed processes run: a slow function that writes down every world it has finished."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

ROWS = 60
SECONDS = 0.045  # of one world: long enough for a process pool, and for every world to be stored on its own


def signature(rows: Any) -> int:
    """Which rows took part, as one number: row i has the id 2^i."""
    return sum(1 << int(i) for i in np.asarray(rows)[:, 0])


def slow_mean(rows: Any) -> Any:
    time.sleep(SECONDS)
    line = f"{signature(rows)}\n".encode()
    log = os.open(os.environ["KILLS_LOG"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(log, line)
    os.close(log)
    return np.asarray(rows)[:, 1:].mean(axis=0)


def table() -> Any:
    values = np.random.default_rng(5).normal(size=(ROWS, 2))
    return np.column_stack([np.arange(ROWS), values])


def main(folder: str) -> None:
    """A seeded run: its answer is known beforehand."""
    import leakcap as lc

    plan = lc.plan(
        slow_mean,
        table(),
        cap=lc.mutual_information(0.3),
        worlds=64,
        draws=256,
        seed=11,
        workers=2,
        backend="processes",
        checkpoint=folder,
    )
    released = plan.release().value.tobytes()
    Path(folder).with_suffix(".answer").write_bytes(released)


if __name__ == "__main__":
    main(sys.argv[1])
