"""Small runs, and one that can be stopped: what the tests of checkpoints share."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import leakcap as lc
from leakcap.custody.checkpoint import Checkpoint

rng = np.random.default_rng(99)
X = np.column_stack([2.0 ** np.arange(24), rng.normal(size=(24, 2))])  # the first column says which rows took part
TABLE = pd.DataFrame(X, columns=["id", "a", "b"]).assign(town=["here", "there"] * 12, who=np.repeat(np.arange(12), 2))
MASKS = np.vstack([np.eye(4, dtype=bool), ~np.eye(4, dtype=bool)]).repeat(6, axis=1)
CAP = lc.mutual_information(0.3)
SMALL: dict[str, Any] = {"cap": CAP, "worlds": 16, "draws": 256}
SEEDED: dict[str, Any] = SMALL | {"seed": 7}
CALLS: list[int] = []


def signature(x: Any) -> int:
    return int(np.asarray(x)[:, 0].sum())


def counted(x: Any) -> Any:
    CALLS.append(signature(x))
    return np.asarray(x)[:, 1:3].astype(float).mean(axis=0)


def doubled(x: Any) -> Any:
    return 2 * counted(x)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "lock"}


def stored_signatures(folder: Path) -> set[int]:
    """Which worlds' answers are stored, by the rows in them."""
    stored = Checkpoint.stored(folder)
    request, _ = stored.kept("request")
    worlds = request.possible(stored.entropy)
    done = {int(world) for some, _ in stored.rows() for world in some}
    if stored.kept("form") is not None:
        done |= {0, worlds.m // 2}
    return {signature(X[worlds.mask(world)]) for world in done}


@functools.cache
def undisturbed() -> tuple[str, bytes, bytes]:
    """Certificate, outputs and released value of a seeded run without a checkpoint."""
    plan = lc.plan(counted, X, **SEEDED)
    return plan.certificate.to_json(), plan.outputs.tobytes(), plan.release().value.tobytes()


def same_as_undisturbed(plan: lc.Plan) -> bool:
    return undisturbed() == (plan.certificate.to_json(), plan.outputs.tobytes(), plan.release().value.tobytes())


def stopping(x: Any) -> Any:
    """Writes down every world it is asked about; after so many it stops, while the file that says so is there."""
    log, stop = Path(os.environ["CHECKPOINT_LOG"]), Path(os.environ["CHECKPOINT_STOP"])
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(handle, f"{signature(x)}\n".encode())
    os.close(handle)
    if stop.exists():
        kind, limit = stop.read_text().split()
        if len(log.read_text().split()) > int(limit):
            raise {"ValueError": ValueError, "KeyboardInterrupt": KeyboardInterrupt, "SystemExit": SystemExit}[kind]
    return x[:, 1:3].mean(axis=0)
