"""How many worlds: a number, or more and more of them until the noise hardly falls (`worlds="doubling"`).

Worlds are drawn in blocks, each as large as all before it together, so that a longer run goes on with the same worlds.
After each block the noise that keeps the caps is estimated. It depends on the answers in all worlds and on nothing
that is drawn later: neither the secret nor the certifying draws know how many worlds were tried. So any rule for
stopping is allowed in the first game, the certificate is made once, and it says how the number was chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from leakcap.caps import Task
from leakcap.custody.checkpoint import Checkpoint
from leakcap.errors import CapError, InputError
from leakcap.leakage.measures import check_limit
from leakcap.noise import subspace
from leakcap.noise.estimate import relative_noise
from leakcap.noise.search import Goal
from leakcap.planning.request import Request, digest, stream
from leakcap.simulate import Outputs, Progress, Simulation, stored_outputs
from leakcap.simulate.progress import Watcher
from leakcap.worlds import Worlds, draw_worlds
from leakcap.worlds.draw import as_share
from leakcap.worlds.join import joined

__all__ = ["simulated", "stored_simulation"]

FIRST_WORLDS, MAX_WORLDS = 128, 2**14
MIN_GAIN = 0.02  # of the noise: what a doubling must bring to be worth another one
MAX_SECONDS = 3600.0  # of one core that a further block may take
OTHER_WORLDS = "the worlds of this plan cannot be drawn again: use the versions of numpy and leakcap it has"
MEMORY_SHARE = 1 / 4  # of the memory that the user allows: masks and answers of all worlds


@dataclass(frozen=True)
class Stage:
    """What is known when some blocks have run; kept in the checkpoint, so that a resumed run decides alike."""

    noise: float  # relative to the spread of the answers; infinite where the caps make no sense for so few worlds
    seconds: float  # that a world took


def simulated(
    request: Request,
    entropy: int,
    simulation: Simulation,
    *,
    stored: Checkpoint | None,
    watch: Watcher,
    forecast: bool,
) -> tuple[Worlds, Outputs]:
    """The worlds of a plan and the answers in them."""
    possible = _block(request, entropy, 0)
    if request.grows:
        _refuse_impossible_caps(request, possible.rate)
    else:
        request.refuse_impossible_caps(possible)
    if stored:
        _refuse_other_worlds(stored, digest(possible))
        if stored.committed() is None:
            stored.keep("request", (request, digest(possible)))
    if request.grows:
        return _grown(request, entropy, possible, simulation, stored=stored, watch=watch)
    simulation.add(possible, request.seconds_to_certify(possible) if forecast else 0.0)
    return possible, simulation.outputs()


def stored_simulation(request: Request, entropy: int, known: str, stored: Checkpoint) -> tuple[Worlds, Outputs]:
    """The same from a finished run, without the data and without the function."""
    blocks = [_block(request, entropy, 0)]
    if digest(blocks[0]) != known:
        raise InputError(OTHER_WORLDS)
    if request.grows:
        stages, finished = stored.kept("stages") or ([], False)
        if not finished:
            raise InputError("this run has not finished: resume it with the call or the command that began it")
        blocks += [_block(request, entropy, number) for number in range(1, len(stages))]
    worlds, order = joined(blocks)
    return worlds, stored_outputs(worlds.m, blocks[0].m, stored, order)


def _refuse_other_worlds(stored: Checkpoint, drawn: str) -> None:
    """Answers that are there belong to the worlds they were made in, and another version may draw others."""
    if stored.kept("form") is not None:
        _, known = stored.kept("request") or (None, drawn)
        if known != drawn:
            raise InputError(OTHER_WORLDS)


def _grown(
    request: Request, entropy: int, first: Worlds, simulation: Simulation, *, stored: Checkpoint | None, watch: Watcher
) -> tuple[Worlds, Outputs]:
    known: list[Stage] = ((stored.kept("stages") if stored else None) or ([], False))[0]
    blocks, stages = [first], known[:0]
    while True:
        simulation.add(blocks[-1])
        worlds, order = joined(blocks)
        outputs = simulation.outputs(order)
        number = len(stages)
        if number < len(known):
            stages.append(known[number])
        else:
            watch(Progress(0, 0, 0.0, outputs.forecast, stage="noise"))
            noise = _noise(request, worlds, outputs, np.random.SeedSequence(entropy, spawn_key=(1, number)))
            stages.append(Stage(noise, outputs.forecast.seconds_per_world))
        finished = _enough(stages) or not _room(request, worlds, outputs.table.shape[1], stages[-1].seconds)
        if stored and number >= len(known):
            stored.keep("stages", (stages, finished))
        if finished:
            return worlds, outputs
        blocks.append(_block(request, entropy, len(blocks)))


def _enough(stages: Sequence[Stage]) -> bool:
    """Whether the last two doublings together brought less than two that are worth it.

    Two, because one may be unlucky: worlds are drawn at random, and the noise depends on the most exposed unit.
    """
    noise = [stage.noise for stage in stages]
    return noise[-1] == 0 or (len(noise) > 2 and noise[-1] > (1 - MIN_GAIN) ** 2 * noise[-3])


def _room(request: Request, worlds: Worlds, outputs: int, seconds: float) -> bool:
    """Whether twice as many worlds are within reach."""
    size = 2 * worlds.m * (8 * outputs + worlds.n // 8)
    return (
        2 * worlds.m <= MAX_WORLDS
        and worlds.m * seconds <= MAX_SECONDS
        and size <= MEMORY_SHARE * request.settings.machine.memory
    )


def _noise(request: Request, worlds: Worlds, outputs: Outputs, seed: np.random.SeedSequence) -> float:
    settings = request.settings
    space = subspace(request.usable(outputs).table, settings.weights, settings.machine.memory)
    try:
        goal = Goal.of(request.caps, worlds, shape=settings.shape, floor=settings.floor, machine=settings.machine)
        return relative_noise(goal, space, seed)
    except CapError:  # for so few worlds: an attacker names the right one too easily, for example
        return np.inf


def _refuse_impossible_caps(request: Request, rate: float) -> None:
    """Before anything long starts: caps that no number of worlds can keep."""
    if request.mode != "exact":
        raise InputError(
            "worlds='doubling' needs mode='exact': in other modes the number of worlds must be fixed before their "
            "answers are seen. Give a number, or worlds='auto'"
        )
    for cap in request.caps:
        if not isinstance(cap, Task):
            check_limit(cap, rate, MAX_WORLDS)


def _block(request: Request, entropy: int, number: int) -> Worlds:
    """A block of worlds, all of them unless their number is open; the same for the same entropy."""
    if not request.grows:
        return request.possible(entropy)
    parts = as_share(request.rate).denominator
    size = -(-FIRST_WORLDS // parts) * parts * 2 ** max(number - 1, 0)
    own = stream(entropy, 0, number)
    if request.drawing is not None:
        return request.drawing.draw(size, own)
    return draw_worlds(request.units, size, own, request.rate, strata=request.strata)
