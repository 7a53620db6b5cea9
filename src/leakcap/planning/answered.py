"""The answers that a plan certifies: run in possible worlds, or made of what everybody brings."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leakcap import modes
from leakcap.custody.checkpoint import Checkpoint
from leakcap.errors import InputError
from leakcap.kernels.blocks import COINS_IN_BLOCKS, Blocks, InBlocks
from leakcap.kernels.bounded import Bounded, Declared
from leakcap.kernels.contributions import Contributions, bounded_contributions
from leakcap.planning.cautions import warn_of_own_noise
from leakcap.planning.doubling import simulated
from leakcap.planning.finishing import Finishing, finished
from leakcap.planning.job import Job
from leakcap.planning.request import Request, stream
from leakcap.planning.small_groups import warn_of_small_groups
from leakcap.planning.stored_sums import Brings, keep_sums
from leakcap.simulate import Outputs
from leakcap.simulate.progress import Watcher, ignore
from leakcap.worlds import Worlds, fair_bits
from leakcap.worlds.keyed import KEY_BYTES

__all__ = ["MAX_COINS", "Answered", "answered", "brought"]

MAX_COINS = 2**28  # tossed for error bars


@dataclass(frozen=True, eq=False)
class Answered:
    """The answers that may be the secret's."""

    worlds: Worlds
    outputs: Outputs
    finishing: Finishing | None = None


def brought(job: Job, request: Request, brings: Contributions | None, *, declared: tuple[Any, int | None]) -> Brings:
    """What every unit brings, where the answer is a sum over them."""
    if request.mode == "individual" and request.design == "bits" and isinstance(job.fn, Blocks):
        return job.fn.cut(job.pool.data, job.units, _key(request))
    if request.mode != "pool":
        return brings
    bounds, most = declared
    if job.units.of_row is not None and most is None and not isinstance(job.fn, Blocks):
        raise InputError(
            "a pool cap with unit= needs rows_per_unit=, the most rows that one person may bring: further ones are "
            "left out"
        )
    if job.units.count == 0:
        raise InputError("there are no rows")
    return bounded_contributions(job.fn, job.pool.data, job.units, Declared(bounds, most or 1, _key(request)))


def _key(request: Request) -> bytes:
    """By which people are put into blocks: nobody else's business, unless it is all a simulation."""
    return secrets.token_bytes(KEY_BYTES) if request.seed is None else stream(request.seed, 0, 3).bytes(KEY_BYTES)


def answered(
    job: Job,
    request: Request,
    brings: Brings,
    *,
    entropy: int,
    watch: Watcher,
    stored: Checkpoint | None,
) -> Answered:
    """The answers, and the function's own on everybody to tell errors against; sums are kept in the checkpoint."""
    found = _run(job, request, brings, entropy=entropy, watch=watch, stored=stored)
    if isinstance(job.fn, Blocks):  # whose average may miss what the function says of all rows together
        found = replace(found, outputs=replace(found.outputs, whole_pool=job.fn.of_all(job.pool.data, job.units.rows)))
    keep_sums(stored, request, brings, found.outputs)
    return found


def _run(
    job: Job,
    request: Request,
    brings: Brings,
    *,
    entropy: int,
    watch: Watcher,
    stored: Checkpoint | None,
) -> Answered:
    """The function's answers in possible worlds, or what is made of sums over those who may take part."""
    n, rows = job.units.count, job.units.rows
    if isinstance(brings, Bounded):
        finishing, outputs = finished(brings.finish, brings.values.sum(axis=0)[None], rows)
        return Answered(Worlds.everybody(n), request.usable(outputs), finishing)
    coins = None
    if isinstance(brings, InBlocks):
        coins = _coins_for_error_bars(n, stream(entropy, 0, 1), COINS_IN_BLOCKS)
        finishing, outputs = finished(brings.of.finish, brings.sums(coins), rows, whole=brings.answers().sum(axis=0))
        return Answered(coins, request.usable(outputs), finishing)
    if brings is not None and request.design == "bits" and n:
        most = 1024 if brings.finish is None else 256  # answers are made one by one
        coins = _coins_for_error_bars(n, stream(entropy, 0, 1), most)
    if brings is not None and coins is not None and brings.finish is not None:
        finishing, outputs = finished(
            brings.finish, modes.bits.answers(brings, coins), rows, whole=brings.values.sum(axis=0)
        )
        warn_of_small_groups(outputs.node, job.pool, job.units)
        return Answered(coins, request.usable(outputs), finishing)
    with job.simulation(watch, stored) as running:
        possible, outputs = simulated(
            request, entropy, running, stored=stored, watch=watch, forecast=watch is not ignore
        )
    outputs = request.usable(outputs)
    warn_of_small_groups(outputs.node, job.pool, job.units)
    if brings is None:
        warn_of_own_noise(job, job.rerun(request, outputs), (possible, outputs.table), stored)
    if brings is None or coins is None:
        return Answered(possible, outputs)
    brings.check(outputs.table, possible)
    return Answered(coins, replace(outputs, table=modes.bits.answers(brings, coins)))


def _coins_for_error_bars(n: int, rng: np.random.Generator, most: int = 1024) -> Worlds:
    """Coins as a release tosses them, as often as error bars need."""
    return fair_bits(n, max(32, min(most, MAX_COINS // n)), rng)
