"""The first screen in plain words: what was done, who the attacker is, what follows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leakcap.report.numbers import bound

if TYPE_CHECKING:
    from leakcap.certificate import Certificate

__all__ = ["UNBROKEN", "at_most", "attacker", "headline", "in_short", "part", "what_was_done"]

UNBROKEN = "\u00a0"  # a space at which no line ends
CLOSED = 100  # characters of a line that is meant to be short


def part(cert: Certificate, plural: bool = False) -> str:
    """What a world is, in everyday words."""
    if cert.rate == "1/2":
        return "halves" if plural else "half"
    return "parts" if plural else "part"


def what_was_done(cert: Certificate) -> str:
    pool = f"There are data on {cert.units:,} people (or records): the pool. "
    noise = "Random noise was then added, and only the noisy answer leaves."
    if cert.noised_directions == 0:
        noise = f"The answer is the same for every {part(cert)}, so it leaves without noise."
    share = "" if cert.rate == "1/2" else f" ({cert.rate} of the pool)"
    if cert.mode != "exact":
        return (
            f"{pool}The answer was computed on a secret random {part(cert)}{share} of it alone. The people in it "
            f"“took part”. {noise}"
        )
    return (
        f"{pool}Of {cert.worlds:,} {part(cert, plural=True)}{share} drawn beforehand, one was picked in secret, and "
        f"the answer was computed on the people in it alone. They “took part”. {noise}"
    )


def attacker(cert: Certificate) -> str:
    known = "everybody's data and the program"
    if cert.mode == "exact":
        known = f"everybody's data, the program, all {cert.worlds:,} {part(cert, plural=True)} and the answer in each"
    return (
        f"Anybody, and the worst is assumed: they know {known}, have unlimited computing power and use the best "
        f"possible method. Only two things are hidden from them: which {part(cert)} was used, and the noise."
    )


def headline(cert: Certificate) -> str:
    """The whole promise in a sentence."""
    success = bound(cert.membership_success)
    if cert.kind == "empirical":
        words = (
            f"Measured without any guarantee: participation is guessed with about {success} success. A coin has 50 %."
        )
    elif cert.kind == "simulation":
        words = f"A trial run. A real release made like this would keep guesses at participation to {success}."
    elif cert.membership_success <= 0.5:
        words = "This release tells nobody who took part: every guess stays as good as a coin flip."
    else:
        words = (
            f"Whoever reads this release guesses whether a given person took part with at most {success} success. "
            "A coin has 50 %."
        )
    return words.replace(" %", f"{UNBROKEN}%")


def at_most(cert: Certificate) -> str:
    """How a figure is to be read."""
    return "about" if cert.kind == "empirical" else "at most"


def in_short(line: str) -> str:
    """The first clause of a line of the certificate."""
    clause = line.split(":", 1)[0].rstrip(".")
    return clause if len(clause) <= CLOSED else clause[: CLOSED - 1].rsplit(" ", 1)[0] + " …"
