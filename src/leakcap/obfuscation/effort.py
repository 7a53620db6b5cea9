"""How much work certified figures of an encoding may take, where it is done, and who is told how far it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any

from leakcap.ground import checks
from leakcap.obfuscation.certified import Tick
from leakcap.obfuscation.one_unit import UnitEffort
from leakcap.simulate.progress import Forecast, Progress, Watcher, watching

__all__ = ["EncodingEffort"]

EVERYBODY = 4  # one of so many draws is for everybody, all for those who are near the cap
FEWEST = 64  # for everybody


class _Draws(Forecast):
    def __str__(self) -> str:
        return f"{self.worlds:,} draws, at most {self.seconds:.3g} s"


@dataclass(frozen=True)
class EncodingEffort:
    """Most draws of a certification, 0 for none; a device of torch, or None; whom to tell."""

    draws: int = 1024
    backend: str | None = None
    progress: bool | Watcher | None = None

    @classmethod
    def of(cls, draws: Any, backend: Any, progress: Any) -> EncodingEffort:
        if backend is not None and not str(backend).startswith("torch:"):
            backend = checks.choice(("torch:cuda", "torch:cpu"), backend=backend)
        return cls(checks.count(0, draws=draws), backend, progress)

    def for_cap(self) -> UnitEffort:
        """In stages: some draws for everybody, the rest for those who are above the cap after them."""
        first = min(self.draws, max(FEWEST, self.draws // EVERYBODY))
        return UnitEffort(draws=first, again=self.draws)

    def for_noise(self) -> UnitEffort:
        return UnitEffort(draws=self.draws)

    @contextmanager
    def watched(self, stage: str) -> Iterator[Tick]:
        """What is called with steps done and steps at most; from 1 again where another stage begins."""
        began, before = monotonic(), 0
        with watching(self.progress) as watch:

            def tick(done: int, total: int) -> None:
                nonlocal began, before
                if done <= before:
                    began = monotonic()
                before, seconds = done, monotonic() - began
                forecast = _Draws(total, 1, seconds / max(done, 1), 0)
                watch(Progress(done, total, seconds, forecast, stage=stage))

            yield tick
