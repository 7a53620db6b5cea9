"""Sixty everyday tasks and mistakes of `tests/everyday`, on whole data sets: CPU seconds and error of each."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tests.cost import cpu_seconds
from tests.everyday.desk import Desk
from tests.everyday.lists import Task, mistakes, tasks
from tests.everyday.pipelines import accuracies

from benchmarks.records import record
from leakcap.planning.released import forget_released

PAGE = Path(__file__).parents[1] / "docs" / "everyday.md"
COMMAND = "python -m benchmarks everyday"
HEAD = f"""---
hide:
  - toc
---

<!-- Made by `{COMMAND}`. Do not edit by hand. -->

# Everyday tasks

What people try first, typed as a newcomer would (`tests/everyday`), on whole data sets and with the usual settings.
The error is that of one release: relative to the plain answer, or in points of accuracy lost on rows held back. CPU
seconds are those of the whole task, plain answers and first compiling included. Mistakes are refused or warned about,
the cure that is named is tried, and it works.

| task | CPU seconds | error |
| --- | ---: | ---: |
"""


@dataclass(frozen=True)
class Seen:
    """Of one task."""

    task: Task
    seconds: float
    error: float

    def row(self) -> str:
        worth = f"{self.error:.1f} points" if self.task.points else f"{100 * self.error:.1f} %"
        shown = "cured" if self.task.theme == "mistakes" else worth
        return f"| {self.task.title} | {self.seconds:.1f} | {shown} |"


def main() -> None:
    done = []
    for one in [*tasks(), *mistakes()]:
        with _apart() as folder:
            began = cpu_seconds()
            found = one.run(Desk(folder, few=False))
            done.append(Seen(one, cpu_seconds() - began, found))
            print(done[-1].row(), flush=True)
    PAGE.write_text(HEAD + "\n".join(one.row() for one in done) + "\n", encoding="utf-8")
    seconds = [one.seconds for one in done]
    relative = [one.error for one in done if one.task.theme != "mistakes" and not one.task.points]
    points = [one.error for one in done if one.task.points]
    record(
        "everyday",
        f"all of them work: {np.median(seconds):.1f} s of CPU in the middle, {max(seconds):.0f} s at most, "
        f"{sum(seconds):.0f} s together; error {100 * np.median(relative):.1f} % in the middle, models lose "
        f"{np.median(points):.1f} points ([each of them](everyday.md))",
        topic="Private estimators",
        claim="40 everyday tasks on Adult, Diabetes-130, heart disease, Dry Bean and messy files, and 20 mistakes with "
        "the cure that the message names, at caps of .55 and .60",
        command=COMMAND,
        asked="each works, or is refused with a cure that works",
    )
    adult()


def adult() -> None:
    """The pipeline with categories, several times: releases differ."""
    found = []
    for _ in range(3):
        with _apart() as folder:
            found.append(accuracies(Desk(folder, few=False)))
    private, plain = zip(*found, strict=True)
    record(
        "everyday-adult",
        f"{100 * min(private):.1f} to {100 * max(private):.1f} % in {len(found)} releases, plain {100 * plain[0]:.1f} "
        "%",
        topic="Private estimators",
        claim="Adult with its categories through a pipeline (`Private`, cap .55): right about rows held back",
        command=COMMAND,
        asked="82.4 %: within 2 points of the plain pipeline",
    )


@contextmanager
def _apart() -> Iterator[Path]:
    """A folder, a key and a ledger of its own; warnings are not shown, what was released before is forgotten."""
    forget_released()
    before = {name: os.environ.get(name) for name in ("LEAKCAP_KEY", "LEAKCAP_LEDGER")}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.environ |= {"LEAKCAP_KEY": f"{folder}/key/key", "LEAKCAP_LEDGER": f"sqlite:///{folder}/releases.db"}
        try:
            yield Path(folder)
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})


if __name__ == "__main__":
    main()
