"""A plan from a request and its run: a new one, or one out of a checkpoint, without the data and the function."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from leakcap.certificates.ids import DrawnIds
from leakcap.custody.checkpoint import Checkpoint
from leakcap.errors import InputError
from leakcap.ground.arrays import Bools
from leakcap.noise import OperatingSystem, Randomness, Seeded
from leakcap.planning.certifier import Run, certifier
from leakcap.planning.doubling import stored_simulation
from leakcap.planning.given_plans import GIVEN, given_plan
from leakcap.planning.job import Job
from leakcap.planning.plans import Plan
from leakcap.planning.promises import Promises
from leakcap.planning.released import Token
from leakcap.planning.request import Request
from leakcap.planning.stored_sums import kept_sums
from leakcap.planning.suggest import suggest
from leakcap.planning.told import OutputWords
from leakcap.simulate.progress import Watcher, watching
from leakcap.worlds import fair_bits, independent_worlds

__all__ = ["SECRET_SEEDS", "fresh_world", "kept_ids", "planned", "stored_plan"]

SECRET_SEEDS = "secret seeds"  # in the checkpoint of a plan that has them


def planned(request: Request, run: Run, job: Job | None, outputs: OutputWords = None) -> Plan:
    """The plan, certified."""
    randomness: Randomness = OperatingSystem() if request.seed is None else Seeded(request.seed)
    advise = partial(suggest, request=request, job=job)
    run = replace(run, request=request)
    others = Promises(request, job)
    certify = certifier(request, run)
    return Plan(request.caps, run, certify, randomness=randomness, advise=advise, others=others, words=outputs)


def fresh_world(request: Request, source: Randomness) -> Bools:
    """Who takes part, drawn anew."""
    if request.design == "bits":
        return fair_bits(request.units, 1, source.bits()).mask(0)
    return independent_worlds(request.units, 1, source.bits(), request.rate, strata=request.strata).mask(0)


def kept_ids(stored: Checkpoint | None) -> DrawnIds:
    """Those of a run in a checkpoint, from its beginning; new ones where there are none."""
    ids: DrawnIds | None = stored.kept("ids") if stored else None
    if ids is None:
        ids = DrawnIds.draw()
        if stored:
            stored.keep("ids", ids)
    return ids


def stored_plan(checkpoint: str | Path, progress: bool | Watcher | None = None, *, recompute: bool = True) -> Plan:
    """The plan in a checkpoint whose worlds have all run, without the data and without the function.

    It is certified again on the same draws, so its certificate is the same to the last digit. Without `recompute` it
    has the noise and the figures that were stored: what is attacked then is what was released.
    """
    stored = Checkpoint.stored(Path(checkpoint))
    sums = kept_sums(stored)
    with watching(progress) as watch:
        run = partial(
            Run,
            entropy=stored.entropy,
            checkpoint=stored,
            rerun=_no_data,
            watch=watch,
            recompute=recompute,
            ids=stored.kept("ids"),
        )
        token = Token(lambda: [f"checkpoint {stored.entropy}"])
        if sums is not None:
            whole = run(
                simulation=sums.outputs,
                worlds=sums.worlds,
                token=token,
                brings=sums.brings,
                finishing=sums.finishing,
                draw=partial(fresh_world, sums.request),
                design=sums.request.design,
            )
            return planned(sums.request, whole, job=None)
        given = stored.kept(GIVEN)
        if given is not None:
            request, outputs = given
            whole = run(simulation=outputs, worlds=request.inputs, token=token, draw=_no_data, design="given")
            return given_plan(request, whole)
        held = stored.kept("request")
        if held is None and stored.kept(SECRET_SEEDS):
            _no_data(None)
        if held is None:
            raise InputError(f"{checkpoint} holds no plan")
        request, known = held
        possible, simulation = stored_simulation(request, stored.entropy, known, stored)
        return planned(
            request,
            run(simulation=request.usable(simulation), worlds=possible, token=token, draw=_no_data),
            job=None,
        )


def _no_data(_: Any) -> Any:
    raise InputError("this mode runs the function once more to release: call plan() with the data and this checkpoint")
