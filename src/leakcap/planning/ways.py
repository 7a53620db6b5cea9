"""Which promise was asked for: how figures are proved (mode), how the secret is drawn (design), what fits neither."""

from __future__ import annotations

from typing import Any

from leakcap import modes
from leakcap.caps import Cap, Membership, PoolMembership, TruePositiveRate
from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.kernels.blocks import Blocks
from leakcap.kernels.contributions import is_a_sum
from leakcap.planning.designing import refuse_beside_design

__all__ = ["AUTO", "USUAL", "about_one_person", "way_of"]

AUTO = "auto"  # worlds=: their number is fixed by sizes before anything runs
USUAL = {"worlds": AUTO, "rate": 0.5, "strata": None, "weights": None, "clip": None, "draws": None}


def way_of(fn: Any, caps: tuple[Cap, ...], mode: str, design: str, *, bounds: Any, **given: Any) -> tuple[str, str]:
    """The mode and the design; an InputError for arguments, `given` by name, that do not go with them."""
    checks.choice(modes.MODES, mode=mode)
    checks.choice(modes.DESIGNS, design=design)
    odd = [name for name, value in given.items() if not (isinstance(value, type(USUAL[name])) and value == USUAL[name])]
    if any(isinstance(cap, PoolMembership) for cap in caps):
        modes.pool_caps(caps)
        odd = [name for name in odd if name != "draws"]  # of which there are none, however many are allowed
        odd += ["mode"] * (mode != "exact") + ["design"] * (design != "auto")
        if odd:
            raise InputError(
                f"under a pool cap everybody takes part, and declared bounds alone set the noise: leave out {odd[0]}"
            )
        return "pool", "pool"
    if bounds is not None:
        raise InputError("bounds are for a pool cap, leakcap.pool_membership(...): otherwise clip the columns yourself")
    sums = is_a_sum(fn) or isinstance(fn, Blocks)
    if design == "auto" and mode == "exact" and about_one_person(caps) and sums and not set(odd) - {"weights"}:
        design = "bits"
    if design == "bits":
        _refuse_beside_bits(mode, odd)
        return "confidence" if mode == "confidence" else "individual", "bits"
    refuse_beside_design(design, mode, given["worlds"], rate=given["rate"])
    return mode, "worlds" if design == "auto" else design


def about_one_person(caps: tuple[Cap, ...]) -> bool:
    """Whether coins can keep all of them."""
    return all(type(cap) in (Membership, TruePositiveRate) for cap in caps)


def _refuse_beside_bits(mode: str, odd: list[str]) -> None:
    if mode == "empirical":
        raise InputError("design='bits' has proofs of its own, and mode='empirical' has none: leave mode out")
    if mode != "confidence" and "worlds" in odd:
        raise InputError("design='bits' has no list of worlds, every subset is possible: leave worlds out")
    if "rate" in odd or "strata" in odd:
        raise InputError("design='bits' tosses a fair coin for everybody, whatever the others': no rate, no strata")
