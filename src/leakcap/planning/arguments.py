"""Arguments that a call does not have: what people who come from elsewhere mean by them, and what to write instead."""

from __future__ import annotations

import difflib
import functools
import inspect
import math
from collections.abc import Callable, Collection, Mapping
from typing import Any, ParamSpec, TypeVar

from leakcap.convert.differential_privacy import from_dp
from leakcap.convert.rounding import percent_up
from leakcap.errors import InputError, UnknownArgument
from leakcap.ground import checks
from leakcap.stats.settings import refuse_unset

__all__ = ["check_numbers", "knowing", "names_of", "refuse_data_first", "refuse_unknown"]

P = ParamSpec("P")
R = TypeVar("R")

NOISE = "how much noise there is follows from the cap: leave it out"
MEANT = {
    "accountant": "answers that share one cap are asked in a session: lc.Session(data, cap=0.6, ledger='sqlite:///file')",
    "budget": "what may leak is the cap: cap=0.55, or cap=lc.mutual_information(0.1) for an amount of information",
    "caps": "it is called cap, and takes a list, too: cap=[lc.membership(0.55), lc.identification(0.01)]",
    "data_norm": "nothing needs to be bounded under a cap on who was used: leave it out",
    "delta": "a cap holds as it stands, without a delta: leave it out",
    "group": "whose row it is, is called unit: unit='patient_id'",
    "groups": "whose row it is, is called unit: unit='patient_id'",
    "id": "whose row it is, is called unit: unit='patient_id'",
    "membership": "cap it: cap=lc.membership(0.55)",
    "n_worlds": "it is called worlds: worlds=1024",
    "noise": NOISE,
    "noise_multiplier": NOISE,
    "noise_scale": NOISE,
    "sensitivity": NOISE,
    "sigma": NOISE,
}
MEANT |= dict.fromkeys(
    ("bins", "edges", "grid", "levels", "q"),
    "settings of a statistic are bound to it, such as functools.partial(lc.stats.histogram, edges=[0, 18, 65, 120])",
)
MEANT |= dict.fromkeys(("column", "columns"), "hand over the columns themselves, such as table[['age', 'height']]")
EPSILON = ("eps", "epsilon")


def refuse_unknown(
    call: str, given: Mapping[str, Any], known: Collection[str], meant: Callable[[str], str] | None = None
) -> None:
    """An UnknownArgument for the first name that a call does not have, with what to write in its place.

    `meant` says that of names which only this call can tell about, or nothing.
    """
    for name, value in given.items():
        if name not in known:
            words = (meant(name) if meant else "") or _meant(name, value) or _alike(name, known)
            raise UnknownArgument(f"{call} has no argument {name!r}: {words}")


def knowing(call: Callable[P, R], like: Callable[..., Any] | None = None) -> Callable[P, R]:
    """The same call, which says what is meant where an argument is unknown to it (or to `like`), or no cap is given."""
    known = names_of(like or call)
    title = "Session" if call.__name__ == "__init__" else call.__name__

    @functools.wraps(call)
    def checked(*args: P.args, **given: P.kwargs) -> R:
        refuse_unknown(title, given, known)
        if "cap" not in given:
            raise InputError(
                f"say what may leak: {title}(..., cap=0.55), by its name. Nobody can then guess who took part with "
                "more than 55 % success"
            )
        return call(*args, **given)

    return checked


def names_of(call: Callable[..., Any]) -> frozenset[str]:
    """The names that may be given to a call."""
    found = inspect.signature(call).parameters.values()
    return frozenset(one.name for one in found if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY))


def _meant(name: str, value: Any) -> str:
    return _epsilon(name, value) if name in EPSILON else MEANT.get(name, "")


def _epsilon(name: str, value: Any) -> str:
    """The cap that promises what an epsilon of differential privacy allows."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 6
    allowed = float(from_dp(float(value))) if number else 0.55
    success = math.floor(1000 * allowed) / 1000
    told = f"{name}={value:g} lets an attacker be right in {percent_up(allowed)} of cases. " if number else ""
    return (
        f"{told}leakcap caps that success itself. Give cap={success:g} in its place, or "
        f"cap=lc.pool_membership({success:g}) to promise it about being in the data at all, as differential privacy "
        "does"
    )


def _alike(name: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(name, sorted(known), 1)
    return f"did you mean {near[0]}?" if near else f"it takes {', '.join(sorted(known - {'self'}))}"  # type: ignore[operator]


def refuse_data_first(fn: Any) -> None:
    """An InputError where data stand in the place of the function."""
    if not callable(fn):
        raise InputError(
            "the first argument is the function, such as lc.stats.mean or lambda rows: rows.mean(axis=0); the data "
            "come after it"
        )
    refuse_unset(fn)


def check_numbers(*, floor: float, memory: int, draws: int | None, seed: int | None) -> None:
    """An InputError where one of these is out of range."""
    checks.nonnegative(floor=floor)
    checks.count(at_least=2**26, memory=memory)
    if draws is not None:
        checks.count(at_least=256, draws=draws)
    if seed is not None:
        checks.count(at_least=0, seed=seed)
