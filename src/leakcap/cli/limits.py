"""Caps as words on the command line: `membership=0.55`, `tpr=0.01:0.05`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from leakcap import caps
from leakcap.errors import CapError
from leakcap.ground import checks

__all__ = ["HELP", "limits"]

KINDS: dict[str, tuple[Callable[..., caps.Cap], tuple[str, ...]]] = {
    "membership": (caps.membership, ("success",)),
    "pool": (caps.pool_membership, ("success",)),
    "mip": (caps.mip, ("eta",)),
    "name": (caps.name_a_member, ("success",)),
    "precision": (caps.precision, ("claims", "at_most")),
    "identification": (caps.identification, ("success",)),
    "any": (caps.any_inference, ("prior", "success")),
    "mi": (caps.mutual_information, ("nats",)),
    "tpr": (caps.true_positive_rate, ("fpr", "at_most")),
}
HELP = "; ".join(f"{name}={':'.join(needs).upper()}" for name, (_, needs) in KINDS.items())


def limits(words: Sequence[str]) -> list[caps.Cap]:
    """One cap for each word; all of them must hold."""
    if not words:
        raise CapError(
            "say what to cap, for example --cap membership=0.55: nobody may guess any person's participation"
        )
    return [_limit(word) for word in words]


def _limit(word: str) -> caps.Cap:
    name, _, given = (word if "=" in word else f"membership={word}").partition("=")  # a bare number, as in Python
    if name not in KINDS or not given:
        raise CapError(f"--cap {word} says nothing: write one of {HELP}")
    make, needs = KINDS[name]
    try:
        values = [float(number) for number in given.split(":")]
    except ValueError:
        values = []
    if "=" not in word and not values:
        raise CapError(f"--cap {word} says nothing{checks.meant_by(word) or f': write one of {HELP}'}")
    if len(values) != len(needs):
        raise CapError(f"--cap {name} needs {len(needs)} number(s): {name}={':'.join(needs).upper()}")
    return make(**dict(zip(needs, values, strict=True)))
