"""`plan(..., randomness="secret", seeds=32)`: from a function that takes a seed to a certified plan."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from leakcap import modes
from leakcap.caps import PoolMembership, as_caps
from leakcap.custody.checkpoint import Checkpoint
from leakcap.custody.contents import contents_prints
from leakcap.custody.fingerprint import DataPrint, fingerprint
from leakcap.errors import InputError, OutputError
from leakcap.ground import checks
from leakcap.ground.arrays import Bools, Floats
from leakcap.ground.cores import Machine
from leakcap.modes.mechanism import refuse_mechanism
from leakcap.modes.seeds import SeededRerun
from leakcap.noise import OperatingSystem, Randomness, Seeded
from leakcap.planning.arguments import check_numbers
from leakcap.planning.cautions import warn_beforehand
from leakcap.planning.certifier import Run, SownAnswers, certifier
from leakcap.planning.charged import Charged
from leakcap.planning.making import SECRET_SEEDS, fresh_world, kept_ids
from leakcap.planning.plans import Plan
from leakcap.planning.released import Token
from leakcap.planning.request import Request, stream
from leakcap.planning.small_groups import warn_of_small_groups
from leakcap.planning.ways import AUTO
from leakcap.simulate import Node, Pool
from leakcap.simulate.executors import threads_for
from leakcap.simulate.pool import first_rows
from leakcap.simulate.progress import watching
from leakcap.simulate.seeds import SEEDS, Seeds, SeedTask, Sown, SownTogether, run_seeds
from leakcap.simulate.silence import unheard
from leakcap.simulate.worker import PooledUnits
from leakcap.worlds import Units, Worlds, independent_worlds

__all__ = ["AUTO_SEEDS", "checked_seeds", "plan_with_seeds", "seeded_rerun"]

RANDOMNESS = ("secret",)
SHAPES = ("best", "linear", "isotropic")  # the bound is a sum of ratios, for which "linear" is best
AUTO_SEEDS, AUTO_WORLDS = 32, 2048
MIN_PILOTS = 16  # pairs
# What does not go with secret seeds, and how it is given where it is not.
BESIDE: dict[str, Any] = {"inputs": None, "prior": None, "bounds": None, "draws": None, "mechanism": "gaussian"}


def plan_with_seeds(fn: Callable[..., Any] | SownTogether, data: tuple[Any, ...], asked: Mapping[str, Any]) -> Plan:
    """The plan; `asked` are the arguments of `plan` by name, none of them missing."""
    began = time.perf_counter()
    tau, pairs = _checked(asked)
    caps = as_caps(asked["cap"])
    if any(isinstance(cap, PoolMembership) for cap in caps):
        raise InputError("under a pool cap everybody takes part, and declared bounds set the noise: leave seeds out")
    gamma = float(1 - Fraction(repr(checks.fraction(confidence=asked["confidence"]))))
    pool = Pool(data)
    unit, strata, seed = asked["unit"], asked["strata"], asked["seed"]
    whose = pool.pop_column(unit) if isinstance(unit, str) else unit
    warn_beforehand(pool, whose, None, mode="confidence", seeded=seed is not None)
    if asked["rows_per_unit"] is not None:
        pool, whose = first_rows(pool, whose, asked["rows_per_unit"])
    units = Units.of(pool.rows, whose)
    groups = pool.column(strata) if isinstance(strata, str) else strata
    sown = fn if isinstance(fn, SownTogether) else Sown.of(fn, len(data))
    request = Request(
        caps=caps,
        units=units.count,
        worlds=2 * pairs,
        rate=asked["rate"],
        strata=None if groups is None else units.strata(groups),
        mode="confidence",
        gamma=gamma,
        clip=asked["clip"],
        settings=_settings(asked),
        seed=seed,
    )
    task, pooled = SeedTask(sown, frozenset(asked["drop"])), PooledUnits(pool, units)
    prints = DataPrint(data, whose)
    identity = partial(_identity, sown, request, sorted(task.drop), tau)
    charged = None
    if asked["ledger"] is not None:
        charged = _charged(asked, units, identity=identity(prints.of_run), version=prints.of_run, data=data)
    stored = None if asked["checkpoint"] is None else Checkpoint.open(Path(asked["checkpoint"]))
    with watching(asked["progress"]) as watch:
        with stored.alone() if stored else nullcontext():
            if stored:
                stored.begin(identity(prints.of_run), seed)
                stored.keep(SECRET_SEEDS, True)
            entropy = stored.entropy if stored else secrets.randbits(128) if seed is None else seed
            drawn = DrawnPairs.of(request, entropy, tau, words=sown.words)
            how = {name: asked[name] for name in ("backend", "workers", "memory")}
            table, outputs = run_seeds(task, pooled, drawn.worlds, drawn.seeds, watch=watch, checkpoint=stored, **how)
            ids = None if seed is not None else kept_ids(stored)
        limits = request.limits(table.shape[2])
        table, alone = _usable(limits, table), asked["workers"] in (None, 1)
        warn_of_small_groups(outputs.node, pool, units)
        clouds, whole = table.reshape(-1, 2, tau, table.shape[2]), outputs.whole_pool
        run = Run(
            simulation=replace(
                outputs,
                table=table[2 * drawn.pilots :, 0],
                whole_pool=whole if whole is None or limits is None else np.clip(whole, *limits),
            ),
            worlds=drawn.measured,
            entropy=entropy,
            token=Token(lambda: prints.of_release),
            checkpoint=stored,
            rerun=_never,
            draw=partial(fresh_world, request),
            watch=watch,
            charged=charged,
            seconds=time.perf_counter() - began,
            ids=ids,
            sown=SownAnswers(
                modes.SeededPairs(clouds[: drawn.pilots], clouds[drawn.pilots :], sown.words),
                seeded_rerun(task, pooled, outputs.node, limits, alone=alone),
                partial(_rerun_of_part, task, pooled, limits, alone=alone),
            ),
            request=request,
        )
        randomness: Randomness = OperatingSystem() if seed is None else Seeded(seed)
        others: Any = NoOtherPromises()
        return Plan(
            caps,
            run,
            certifier(request, run),
            randomness=randomness,
            advise=_no_advice,
            others=others,
            words=asked["outputs"],
        )


@dataclass(frozen=True, eq=False)
class DrawnPairs:
    """Pairs of independent worlds, the pilot's first, and the seeds of each world."""

    worlds: Worlds
    seeds: Seeds
    pilots: int  # pairs

    @classmethod
    def of(cls, request: Request, entropy: int, tau: int, *, words: int) -> DrawnPairs:
        """The same for the same entropy. An error for caps that no noise keeps."""
        assert isinstance(request.worlds, int)
        pairs = request.worlds // 2
        pilots = max(MIN_PILOTS, pairs // 8)
        count = 2 * (pilots + pairs)
        worlds = independent_worlds(request.units, count, stream(entropy, 0), request.rate, strata=request.strata)
        request.refuse_impossible_caps(worlds)
        # The two worlds of a pair share their seeds; no two pairs do, but by chance.
        drawn = stream(entropy, 0, 2).integers(0, SEEDS, size=(pilots + pairs, tau, words), dtype=np.uint32)
        return cls(worlds, np.repeat(drawn, 2, axis=0), pilots)

    @property
    def measured(self) -> Worlds:
        return replace(self.worlds, packed=self.worlds.packed[2 * self.pilots :])


def _identity(sown: Sown | SownTogether, request: Request, drop: list[str], tau: int, data: str) -> dict[str, str]:
    """What makes a run this run and no other."""
    functions = [one.fn for one in (sown.functions if isinstance(sown, SownTogether) else (sown,))]
    return {
        "the data": data,
        "the function": fingerprint(*functions),
        "the settings": fingerprint(replace(request, caps=()), drop, tau),
    }


def _charged(
    asked: Mapping[str, Any], units: Units, *, identity: dict[str, str], version: str, data: tuple[Any, ...]
) -> Charged:
    """The account that the release will take for itself: it has a secret of its own."""
    if asked["seed"] is not None:
        raise InputError("a plan with a seed is a simulation: leave the ledger out")
    return Charged.at(
        asked["ledger"],
        asked["name"],
        "release",
        units,
        identity=identity,
        version=version,
        contents=contents_prints(data),
        words="release of an answer with a secret seed",
    )


def seeded_rerun(
    task: SeedTask, pooled: PooledUnits, node: Node, limits: tuple[Floats, Floats] | None, *, alone: bool = True
) -> SeededRerun:
    """The answer in one more world to one more seed; None where it fails in any way, or has another form."""

    def answer(mask: Bools, seed: tuple[int, ...]) -> Floats | None:
        with threads_for(alone):
            form, numbers = task.answer(pooled, pooled.units.rows_in(mask), seed)
        if any(node.differences(form)):
            return None
        if limits:
            numbers = np.clip(numbers, *limits)
        return numbers if np.isfinite(numbers).all() else None

    # A word, a warning or an error that is heard only now would tell about the secret.
    return lambda mask, seed: unheard(partial(answer, mask, seed))


def _rerun_of_part(
    task: SeedTask,
    pooled: PooledUnits,
    limits: tuple[Floats, Floats] | None,
    number: int,
    *,
    columns: slice,
    node: Node,
    alone: bool,
) -> SeededRerun:
    """The same of one of several functions: only this one is run."""
    assert isinstance(task.fn, SownTogether)
    own = None if limits is None else (limits[0][columns], limits[1][columns])
    return seeded_rerun(replace(task, fn=task.fn.functions[number]), pooled, node, own, alone=alone)


def _checked(asked: Mapping[str, Any]) -> tuple[int, int]:
    """The numbers of seeds and of pairs; an InputError for what does not go with secret seeds."""
    if asked["randomness"] is None:
        raise InputError("seeds= is how many seeds are tried where the seed is secret: say randomness='secret', too")
    checks.choice(RANDOMNESS, randomness=asked["randomness"])
    odd = [name for name, usual in BESIDE.items() if asked[name] is not usual and asked[name] != usual]
    if odd:
        raise InputError(f"{odd[0]}= does not go with randomness='secret': leave it out")
    if asked["mode"] != "confidence" or asked["design"] not in ("auto", "worlds"):
        raise InputError(
            "a secret seed needs a fresh secret world beside it, and figures that hold for all of them: "
            "mode='confidence', without another design"
        )
    backend = asked["backend"]
    if isinstance(backend, str) and backend.startswith("torch"):
        raise InputError("functions with a seed are run as they are: leave the device out")
    checks.choice(SHAPES, shape=asked["shape"])
    refuse_mechanism(asked["mechanism"], asked["mode"], asked["floor"])
    check_numbers(**{name: asked[name] for name in ("floor", "memory", "draws", "seed")})
    if any(isinstance(asked[name], str) for name in ("drop", "public", "pool_public")):
        raise InputError("drop, public and pool_public must be lists of text, such as drop=['labels_']")
    tau, worlds = AUTO_SEEDS if asked["seeds"] is None else checked_seeds(asked["seeds"]), asked["worlds"]
    if isinstance(worlds, str) and worlds == AUTO:
        return tau, AUTO_WORLDS // 2
    if not isinstance(worlds, (int, np.integer)) or isinstance(worlds, bool):
        raise InputError("worlds must be a number, two for each pair, or 'auto'")
    return tau, checks.count(at_least=64, worlds=int(worlds)) // 2


def checked_seeds(seeds: Any) -> int:
    """How many seeds are tried in every world."""
    if isinstance(seeds, (int, np.integer)) and not isinstance(seeds, bool) and seeds == 1:
        raise InputError(
            "seeds=1 leaves nothing to match: give 2 or more, such as 32 (the more, the less noise). A function "
            "without randomness of its own is planned without randomness= and seeds="
        )
    return checks.count(at_least=2, seeds=seeds)


def _settings(asked: Mapping[str, Any]) -> modes.NoiseSettings:
    return modes.NoiseSettings(
        shape=asked["shape"],
        floor=float(asked["floor"]),
        weights=asked["weights"],
        draws=None,
        machine=Machine(asked["memory"], None),
        seeded=asked["seed"] is not None,
        public=tuple(asked["public"]),
        pool_public=tuple(asked["pool_public"]),
    )


def _usable(limits: tuple[Floats, Floats] | None, table: Floats) -> Floats:
    if limits is not None:
        np.clip(table, *limits, out=table)
    if not np.isfinite(table).all():
        raise OutputError(
            "some numbers are NaN or infinite in some worlds, with some seeds. A failure that depends on who takes "
            "part is an output too: map it to a fixed value inside your function (np.nan_to_num, a prior); infinite "
            "numbers can be bounded with clip=(low, high)"
        )
    return table


class NoOtherPromises:
    """In place of other promises: those are for functions that are run without a seed."""

    def compare(self, plan: Plan, **asked: Any) -> NoReturn:
        raise InputError("compare() runs the function without a seed, and this one's is secret: plan.recap(cap) works")

    def hints(self, *about: Any) -> tuple[str, ...]:
        """None."""
        return ()


def _no_advice(*asked: Any, **how: Any) -> NoReturn:
    raise InputError("suggest() compares plans of mode='exact': plan with it first, to see which knob helps")


def _never(_: Any) -> Any:
    raise InputError("a function with a secret seed is run by its plan alone")
