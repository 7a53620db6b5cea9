"""What a run did, stage by stage: heard as its progress, and shown as a page."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic

from leakcap.certificates.display import Displayed
from leakcap.simulate.progress import Progress

__all__ = ["RunReport", "StageRan"]


@dataclass(frozen=True)
class StageRan:
    """One stage of a run; custodian side.

    Attributes:
        name: what its steps are: "rows" that were read, "worlds", "shards", or "noise" and "certificate".
        done: steps that were done, those of an earlier run included.
        resumed: steps of an earlier run.
        seconds: that it took.
        rows: that were worked on, in all steps together.
        moved: bytes to and from workers of a cluster.
        workers: that there were.
    """

    name: str
    done: int
    resumed: int
    seconds: float
    rows: int
    moved: int
    workers: int

    @property
    def per_second(self) -> float:
        """Steps in a second."""
        return (self.done - self.resumed) / self.seconds if self.seconds > 0 else 0.0

    @property
    def rows_per_second(self) -> float:
        """Rows in a second."""
        return self.rows / self.seconds if self.seconds > 0 else 0.0


class RunReport(Displayed):
    """What runs did: give it as `progress=`, and look at it when they are over, or meanwhile. Custodian side.

    Its page, `save("run.html")`, shows for every stage how many steps there were, how fast they went, and what
    travelled to workers of a cluster. It holds counts and times, and no cell of the data; it says how many rows there
    are.

    Examples:
        >>> import numpy as np
        >>> import leakcap as lc
        >>> heights = np.random.default_rng(0).normal(170, 10, size=200)
        >>> run = lc.RunReport(show=False)
        >>> plan = lc.plan(lambda x: np.median(x), heights, cap=0.6, worlds=64, seed=1, progress=run)
        >>> [stage.name for stage in run.stages]
        ['worlds', 'noise', 'certificate']
        >>> run.stages[0].done
        64
    """

    _custodian_only = True

    def __init__(self, *, show: bool | None = None) -> None:
        """Nothing is heard yet.

        Args:
            show: whether a bar is shown meanwhile. None: where somebody looks and waits.
        """
        self.beside: bool | None = show
        self._heard: list[tuple[float, float, Progress]] = []  # of every stage: its begin, its end, its last state

    def __call__(self, state: Progress) -> None:
        """What a run tells of itself."""
        now = monotonic()
        last = self._heard[-1] if self._heard else None
        if last is not None and last[2].stage == state.stage and last[2].done <= state.done:
            self._heard[-1] = (last[0], now, state)
            return
        if last is not None and last[2].stage in ("noise", "certificate"):  # which say nothing at their end
            self._heard[-1] = (last[0], now, last[2])
        self._heard.append((now - state.seconds, now, state))

    @property
    def stages(self) -> tuple[StageRan, ...]:
        """All stages so far, in their order."""
        return tuple(
            StageRan(
                name=state.stage,
                done=state.done,
                resumed=state.resumed,
                seconds=max(state.seconds, end - began),
                rows=state.rows,
                moved=state.moved,
                workers=state.forecast.workers,
            )
            for began, end, state in self._heard
        )

    @property
    def seconds(self) -> float:
        """Of all stages together."""
        return sum(stage.seconds for stage in self.stages)

    def __str__(self) -> str:
        lines = [
            f"{stage.name}: {stage.done:,} in {stage.seconds:.3g} s, {stage.workers} worker(s)"
            + (f", {stage.rows_per_second:,.3g} rows/s" if stage.rows else "")
            + (f", {stage.moved / 1e6:,.3g} MB moved" if stage.moved else "")
            for stage in self.stages
        ]
        return "\n".join(lines) or "nothing was run yet"

    def __repr__(self) -> str:
        return f"RunReport({len(self._heard)} stages)"
