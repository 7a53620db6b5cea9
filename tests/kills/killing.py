"""Start a command, kill it without warning at a chosen moment, and look at what it left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from leakcap.custody.checkpoint import Checkpoint
from leakcap.custody.vault import FILE, Vault

HERE = Path(__file__).parent
CLOCK_TICK = 0.012  # seconds: times of files are that coarse


@dataclass(frozen=True)
class Moment:
    """When to kill: a time after something has appeared in the run's folder."""

    sign: str  # a glob below the folder; "checkpoint's folder: start of a name in it"; "" for the start
    seconds: float

    def wait(self, folder: Path, process: subprocess.Popen[bytes]) -> None:
        looked = 0.0
        while self.sign and process.poll() is None:
            if written(folder, self.sign) > looked - CLOCK_TICK:
                looked = time.time()
                if appeared(folder, self.sign):
                    break
            time.sleep(0.001)
        end = time.monotonic() + self.seconds
        while process.poll() is None and time.monotonic() < end:
            time.sleep(0.0005)


def written(folder: Path, sign: str) -> float:
    """When the place of a sign was last written to: to look into a checkpoint costs more than a millisecond."""
    place, colon, _ = sign.partition(":")
    file = folder / place / FILE
    return file.stat().st_mtime if colon and file.exists() else time.time()


def appeared(folder: Path, sign: str) -> bool:
    """Whether a sign is there."""
    place, colon, name = sign.partition(":")
    return any(names(folder / place, name)) if colon else any(folder.glob(sign))


def names(plan: Path, start: str = "") -> list[str]:
    """What a checkpoint holds, by name; nothing where there is none."""
    return Vault.existing(plan).names(start) if (plan / FILE).exists() else []


def moments(rng: np.random.Generator, signs: dict[str, float]) -> Moment:
    """A random one: some sign, and up to so many seconds later."""
    sign = list(signs)[rng.integers(len(signs))]
    return Moment(sign, float(rng.uniform(0, signs[sign])))


def run(command: list[str], folder: Path, moment: Moment | None = None) -> bool:
    """Run a command in `folder`'s parent; whether it came to its end before the moment did."""
    path = [HERE, *filter(None, [os.environ.get("PYTHONPATH")])]
    process = subprocess.Popen(
        command,
        cwd=folder.parent,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, path)), "KILLS_LOG": str(folder.parent / "log")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    if moment is None:
        _, errors = process.communicate()
        assert process.returncode == 0, errors.decode()
        return True
    moment.wait(folder, process)
    process.send_signal(signal.SIGKILL)
    _, errors = process.communicate()  # workers hold the pipe: it closes when the last has gone
    assert process.returncode in (0, -signal.SIGKILL), errors.decode()
    return process.returncode == 0


def log(folder: Path) -> list[int]:
    """Every world that was run to its end, in order."""
    path = folder.parent / "log"
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def stored_worlds(plan: Path, signature: Callable[[int], int]) -> set[int]:
    """The signatures of the worlds whose answers are stored."""
    if "start" not in names(plan):
        return set()
    return {signature(int(world)) for worlds, _ in Checkpoint.stored(plan).rows() for world in worlds}


PYTHON = sys.executable
