"""How many worlds: a number, or more and more of them until the noise hardly falls (`worlds="auto"`).

Worlds are drawn in blocks, each as large as all before it together, so that a longer run goes on with the same worlds.
After each block the noise that keeps the caps is estimated. It depends on the answers in all worlds and on nothing
that is drawn later: neither the secret nor the certifying draws know how many worlds were tried. So any rule for
stopping is allowed in the first game, the certificate is made once, and it says how the number was chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from leakcap.caps import Task
from leakcap.errors import CapError, InputError
from leakcap.frame import Frame, digest, stream
from leakcap.leakage.measures import check_limit
from leakcap.noise import subspace
from leakcap.noise.estimate import relative_noise
from leakcap.simulate import Outputs, Progress, Simulation, stored_outputs
from leakcap.simulate.checkpoint import Checkpoint
from leakcap.simulate.progress import Watcher
from leakcap.worlds import Worlds, draw_worlds
from leakcap.worlds.draw import as_share

__all__ = ["simulated", "stored_simulation"]

FIRST, MOST = 128, 2**14  # worlds
GAIN = 0.02  # of the noise: what a doubling must bring to be worth another one
LONGEST = 3600.0  # seconds of one core that a further block may take
MEMORY = 1 / 4  # of the memory that the user allows: masks and answers of all worlds


@dataclass(frozen=True)
class Stage:
    """What is known when some blocks have run; kept in the checkpoint, so that a resumed run decides alike."""

    noise: float  # relative to the spread of the answers; infinite where the caps make no sense for so few worlds
    seconds: float  # that a world took


def simulated(
    frame: Frame, entropy: int, simulation: Simulation, stored: Checkpoint | None, watch: Watcher, forecast: bool
) -> tuple[Worlds, Outputs]:
    """The worlds of a plan and the answers in them."""
    possible = _block(frame, entropy, 0)
    if frame.grows:
        _refuse_impossible_caps(frame, possible.rate)
    else:
        frame.refuse_impossible_caps(possible)
    if stored and stored.committed() is None:
        stored.keep("frame", (frame, digest(possible)))
    if frame.grows:
        return _grown(frame, entropy, possible, simulation, stored, watch)
    simulation.add(possible, frame.seconds_to_certify(possible) if forecast else 0.0)
    return possible, simulation.outputs()


def stored_simulation(frame: Frame, entropy: int, known: str, stored: Checkpoint) -> tuple[Worlds, Outputs]:
    """The same from a finished run, without the data and without the function."""
    blocks = [_block(frame, entropy, 0)]
    if digest(blocks[0]) != known:
        raise InputError("the worlds of this plan cannot be drawn again: use the versions of numpy and leakcap it has")
    if frame.grows:
        stages, finished = stored.kept("stages") or ([], False)
        if not finished:
            raise InputError("this run has not finished: resume it with the call or the command that began it")
        blocks += [_block(frame, entropy, number) for number in range(1, len(stages))]
    worlds, order = _joined(blocks)
    return worlds, stored_outputs(worlds.m, blocks[0].m, stored, order)


def _grown(
    frame: Frame, entropy: int, first: Worlds, simulation: Simulation, stored: Checkpoint | None, watch: Watcher
) -> tuple[Worlds, Outputs]:
    known: list[Stage] = ((stored.kept("stages") if stored else None) or ([], False))[0]
    blocks, stages = [first], known[:0]
    while True:
        simulation.add(blocks[-1])
        worlds, order = _joined(blocks)
        outputs = simulation.outputs(order)
        number = len(stages)
        if number < len(known):
            stages.append(known[number])
        else:
            watch(Progress(0, 0, 0.0, outputs.forecast, stage="noise"))
            noise = _noise(frame, worlds, outputs, np.random.SeedSequence(entropy, spawn_key=(1, number)))
            stages.append(Stage(noise, outputs.forecast.seconds_per_world))
        finished = _enough(stages) or not _room(frame, worlds, outputs.table.shape[1], stages[-1].seconds)
        if stored and number >= len(known):
            stored.keep("stages", (stages, finished))
        if finished:
            return worlds, outputs
        blocks.append(_block(frame, entropy, len(blocks)))


def _enough(stages: Sequence[Stage]) -> bool:
    """Whether the last two doublings together brought less than two that are worth it.

    Two, because one may be unlucky: worlds are drawn at random, and the noise depends on the most exposed unit.
    """
    noise = [stage.noise for stage in stages]
    return noise[-1] == 0 or (len(noise) > 2 and noise[-1] > (1 - GAIN) ** 2 * noise[-3])


def _room(frame: Frame, worlds: Worlds, outputs: int, seconds: float) -> bool:
    """Whether twice as many worlds are within reach."""
    size = 2 * worlds.m * (8 * outputs + worlds.n // 8)
    return 2 * worlds.m <= MOST and worlds.m * seconds <= LONGEST and size <= MEMORY * frame.settings.machine.memory


def _noise(frame: Frame, worlds: Worlds, outputs: Outputs, seed: np.random.SeedSequence) -> float:
    settings = frame.settings
    space = subspace(frame.usable(outputs).table, settings.weights, settings.machine.memory)
    try:
        return relative_noise(space, worlds, frame.caps, seed, settings.shape, settings.floor, settings.machine)
    except CapError:  # for so few worlds: an attacker names the right one too easily, for example
        return np.inf


def _refuse_impossible_caps(frame: Frame, rate: float) -> None:
    """Before anything long starts: caps that no number of worlds can keep."""
    if frame.mode != "exact":
        raise InputError(
            "worlds='auto' needs mode='exact': in other modes the number of worlds must be fixed before their answers "
            "are seen. Give a number"
        )
    for cap in frame.caps:
        if not isinstance(cap, Task):
            check_limit(cap, rate, MOST)


def _block(frame: Frame, entropy: int, number: int) -> Worlds:
    """A block of worlds, all of them unless their number is open; the same for the same entropy."""
    if not frame.grows:
        return frame.possible(entropy)
    parts = as_share(frame.rate).denominator
    size = -(-FIRST // parts) * parts * 2 ** max(number - 1, 0)
    return draw_worlds(frame.units, size, stream(entropy, 0, number), frame.rate, frame.strata)


def _joined(blocks: Sequence[Worlds]) -> tuple[Worlds, npt.NDArray[np.intp]]:
    """All blocks as one set of worlds, and where each world was among the blocks."""
    if len(blocks) == 1:
        return blocks[0], np.arange(blocks[0].m)
    edges = np.cumsum([0, *(one.m for one in blocks)])
    places: Iterable[npt.NDArray[np.intp]] = [np.arange(a, b) for a, b in pairwise(edges)]
    if blocks[0].paired:  # complements go to the second half, in the order of the first
        halves = [np.split(place, 2) for place in places]
        places = [first for first, _ in halves] + [second for _, second in halves]
    order = np.concatenate(list(places))
    packed = np.concatenate([one.packed for one in blocks])[order]
    one = blocks[0]
    return Worlds(packed, one.n, one.share, one.paired, one.design), order
