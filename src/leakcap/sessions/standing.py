"""What all releases on a data set together allow: the account of a ledger, in words and one figure."""

from __future__ import annotations

from dataclasses import dataclass

from leakcap.caps import Cap
from leakcap.certificates.text import percent
from leakcap.custody.ledger.accounts import DESIGNS, TICKS
from leakcap.custody.ledger.operations import Standing
from leakcap.ground.proofs import proves
from leakcap.sessions.clock import Clock, told_after

__all__ = ["Together", "longer_clock", "together"]

ENCODED = "An encoded set for a server, with a secret of its own"
AGAIN = (
    "These data were encoded on {} at {} UTC. They can neither be encoded nor released again, with this key or "
    "another: nothing bounds two secrets together. The certificate beside the encoded set says what it allows."
)


@dataclass(frozen=True)
class Together:
    """What everything that was answered, and may still be, allows. Custodian side.

    Attributes:
        promise: which secret the answers share, in words.
        success: of the best guess at one person once all clocks have run out; None where that is not one figure.
        words: the same in a sentence.
        so_far: what the answers that were given allow; None where that is not one figure.
    """

    promise: str
    success: float | None
    words: str
    so_far: float | None = None


@proves("linear-sessions")
def together(standing: Standing) -> Together:
    """All groups' clocks together, each as long as it may become.

    Guarantee: for accounts with a coin for everybody or of everybody, no attacker who has all answers of all groups
    guesses about a person named before with a larger success.
    """
    promise = DESIGNS[standing.design][0].upper() + DESIGNS[standing.design][1:]
    groups = 1 + len(standing.groups)
    if standing.forgotten:
        return Together(promise, None, "The account is closed. Whoever was told an answer before still knows it.")
    if standing.encoded:
        return Together(ENCODED, None, AGAIN.format(standing.encoded[:10], standing.encoded[11:16]))
    if standing.design == "release":
        return Together(promise, None, "One release: its own certificate says what it allows, and there is no other.")
    if standing.listed:
        return Together(promise, None, f"All answers together keep: {'; '.join(standing.raised or standing.caps)}.")
    # Nobody's clock was taken more from than was declared, nor than there is.
    taken = sum(min(ticks, standing.allowance) for ticks in standing.declared.values())
    so_far = told_after(standing.square * taken / TICKS, len(standing.declared) * standing.distance)
    success = told_after(groups * standing.square * standing.allowance / TICKS, groups * standing.distance)
    who = "All answers together" if groups == 1 else f"All {groups} groups together, if they tell each other,"
    what = "is in the data" if standing.design == "pool" else "takes part"
    most = percent(success).replace(".00 %", " %")  # rounded up: it is a bound
    return Together(promise, success, f"{who} allow at most {most} right guesses whether a person {what}.", so_far)


@proves("linear-sessions")
def longer_clock(square: float, caps: tuple[Cap, ...]) -> int:
    """How long the clock of larger caps is, in ticks of the one that an account was opened with; rounded down."""
    return int(Clock.of(caps).square / square * TICKS)
