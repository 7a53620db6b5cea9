"""How many worlds `worlds="auto"` means: fixed before anything runs, from sizes that are public.

More worlds need less noise, and every world costs time. Where a kernel runs all worlds at once, the certificate is
what takes time, and it grows like units times worlds. Neither answers nor a clock have a say: the same call chooses
the same number on every machine, and the number tells nothing that the certificate does not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from leakcap import modes
from leakcap.caps import Cap, Task
from leakcap.errors import CapError
from leakcap.ground.cores import Machine
from leakcap.kernels import kernel_of
from leakcap.leakage.measures import check_limit
from leakcap.planning.job import Job
from leakcap.worlds.draw import as_share

__all__ = ["number_of_worlds"]

LOOPED_WORLDS = 1024  # each is a run of the function
ALIKE_WORLDS, MAX_ALIKE_WORLDS = 8192, 32768  # for one person and any function
SERVED_WORLDS = (4096, 2048)  # of a kernel: the first number that is within reach
MAX_UNIT_WORLDS = 2**26  # units times worlds: noise and certificate for them take about 15 seconds of one core
MAX_CELL_WORLDS = 2**30  # numbers in the data times worlds: what a kernel goes through
MEMORY_SHARE = 1 / 4  # of the memory that the user allows: masks of all worlds


def number_of_worlds(job: Job, caps: Sequence[Cap], *, rate: float, mode: str, machine: Machine) -> int:
    """The number of worlds for this function, these sizes and these caps.

    Caps that so few worlds cannot keep (a success of one in 2,000 at naming the world) get more of them.
    """
    sizes = [*_within_reach(job, machine), LOOPED_WORLDS] if mode == "exact" else [LOOPED_WORLDS]
    if mode == "alike":  # the worlds themselves are the sample that bounds everybody
        tightest = max(min(cap.limit for cap in caps), 0.51)
        wanted = modes.drawn_alike.worlds_wanted(tightest, job.units.count, 1e-6, rate)
        room = int(MEMORY_SHARE * machine.memory * 8 / job.units.count)  # worlds whose masks fit
        sizes = [max(LOOPED_WORLDS, min(max(ALIKE_WORLDS, wanted), MAX_ALIKE_WORLDS, room))]
    parts = as_share(rate).denominator
    chosen = sizes[0]
    for size in (chosen, *(more for more in sorted(SERVED_WORLDS) if more > chosen)):
        if mode != "exact" or _can_keep(caps, rate, size):
            chosen = size
            break
    return -(-chosen // parts) * parts


def _within_reach(job: Job, machine: Machine) -> Iterable[int]:
    if kernel_of(job.fn, job.device) is None:
        return ()
    units, cells = job.units.count, sum(math.prod(getattr(one, "shape", (len(one),))) for one in job.pool.data)
    # A single number is certified by sums over a grid, which few worlds make cheap; with more of them it is sampled.
    affordable = MAX_UNIT_WORLDS // 2 if cells == job.pool.rows else MAX_UNIT_WORLDS
    return (
        size
        for size in SERVED_WORLDS
        if size * units <= affordable
        and size * cells <= MAX_CELL_WORLDS
        and size * units / 8 <= MEMORY_SHARE * machine.memory
    )


def _can_keep(caps: Sequence[Cap], rate: float, worlds: int) -> bool:
    try:
        for cap in caps:
            if not isinstance(cap, Task):
                check_limit(cap, rate, worlds)
    except CapError:
        return False
    return True
