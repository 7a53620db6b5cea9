"""From the name of a design to what draws its worlds: matched pairs, or central halves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from leakcap.custody.checkpoint import Checkpoint
from leakcap.errors import InputError
from leakcap.modes.designed import NAMES
from leakcap.planning.job import Job
from leakcap.planning.likeness import likeness
from leakcap.planning.request import Request, stream
from leakcap.worlds.central import central_halves
from leakcap.worlds.matched import Matched, partners

__all__ = ["designed", "refuse_beside_design"]


def refuse_beside_design(design: str, mode: str, worlds: Any, *, rate: float) -> None:
    """What matched and central worlds do not go with; other designs have nothing to refuse here."""
    if design not in NAMES:
        return
    if mode != "exact":
        raise InputError(
            f"design={design!r} is a list of worlds, one of which is the secret, and in mode={mode!r} the secret is a "
            "fresh random part: leave mode out"
        )
    if rate != 0.5:
        raise InputError(f"design={design!r} makes halves: leave rate out")
    if not isinstance(worlds, (int, str)):
        raise InputError(f"design={design!r} draws the worlds: give their number, or leave design out")
    if design == "central" and worlds == "doubling":
        raise InputError("design='central' chooses among a fixed number of halves: give worlds a number, or 'auto'")


def designed(request: Request, job: Job, entropy: int, stored: Checkpoint | None) -> Request:
    """The request with all it takes to draw its worlds, without the data from here on.

    A run that is resumed takes up what it has stored: its worlds must not depend on a last digit that another machine
    computes otherwise.
    """
    if request.design not in NAMES:
        return request
    if stored and stored.kept("form") is not None:  # there are answers: they belong to the worlds of this request
        held, _ = stored.kept("request")
        return replace(request, drawing=held.drawing)
    if request.units < 4:
        raise InputError(f"too few units: design={request.design!r} needs at least 4")
    if request.strata is not None and np.bincount(request.strata).min() < 2:
        raise InputError(f"too few units: design={request.design!r} needs at least 2 units in every stratum")
    alike = likeness(job.pool, job.units)
    if request.design == "matched":
        return replace(request, drawing=Matched(partners(alike, request.strata), request.strata is not None))
    assert isinstance(request.worlds, int)
    chosen = central_halves(alike, request.worlds, stream(entropy, 0), request.strata)
    return replace(request, drawing=chosen)
