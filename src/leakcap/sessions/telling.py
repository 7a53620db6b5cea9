"""How far a session is with reading its data, and with work that it has others do."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any

from leakcap.cluster.parted import Partitions
from leakcap.simulate.progress import Forecast, Progress, Watcher, ignore, watching

__all__ = ["Telling"]

NOTHING_FORECAST = Forecast(worlds=0, workers=1, seconds_per_world=0.0, output_bytes=0)


@dataclass(frozen=True, eq=False)
class Telling:
    """Whom a session tells; as for `progress` of plans."""

    progress: bool | Watcher | None

    @contextmanager
    def reading(self, parts: Partitions) -> Iterator[Partitions]:
        """The same partitions, which tell how many of their rows were read."""
        with watching(self.progress) as watch:
            yield _TellingPartitions(**{one.name: getattr(parts, one.name) for one in fields(parts)}, watch=watch)

    @contextmanager
    def shards(self, of: int, workers: int) -> Iterator[Callable[[int, int], None]]:
        """What is told of so many shards: how many are done, and how many bytes have travelled."""
        began, forecast = time.perf_counter(), replace(NOTHING_FORECAST, workers=workers)
        with watching(self.progress) as watch:

            def tell(done: int, moved: int) -> None:
                seconds = time.perf_counter() - began
                watch(Progress(done, of, seconds, forecast, stage="shards", moved=moved))

            yield tell


@dataclass(frozen=True, eq=False)
class _TellingPartitions(Partitions):
    watch: Watcher = ignore

    def batches(self) -> Iterator[Any]:
        rows, began = 0, time.perf_counter()
        for batch in super().batches():
            yield batch
            rows += batch.num_rows
            seconds = time.perf_counter() - began
            self.watch(Progress(rows, 0, seconds, NOTHING_FORECAST, stage="rows", rows=rows))
