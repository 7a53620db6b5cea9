"""The first screen in plain words: what was done, who the attacker is, what follows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leakcap.report.numbers import bound

if TYPE_CHECKING:
    from leakcap.certificate import Certificate

__all__ = ["at_most", "attacker", "headline", "in_short", "part", "what_was_done"]

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
    share = "" if cert.rate == "1/2" else f" (each with {cert.rate} of the pool)"
    if cert.mode != "exact":
        return f"{pool}The answer was computed on a secret random {part(cert)} of them{share.replace('each with ', '')}. {noise}"
    return (
        f"{pool}Of {cert.worlds:,} {part(cert, plural=True)} drawn beforehand{share}, one was picked in secret, and "
        f"the answer was computed on the people in it alone. They “took part”. {noise}"
    )


def attacker(cert: Certificate) -> str:
    drawn = f", all {cert.worlds:,} {part(cert, plural=True)} and the answer in each" if cert.mode == "exact" else ""
    return (
        "Anybody, and the worst is assumed: they know everybody's data, the program"
        f"{drawn}, have unlimited computing power and use the best possible method. Only two things are hidden from "
        f"them: which {part(cert)} was used, and the noise."
    )


def headline(cert: Certificate) -> str:
    success = bound(cert.membership_success)
    if cert.kind == "empirical":
        return (
            f"Measured without any guarantee: participation is guessed with about {success} success. A coin has 50 %."
        )
    if cert.kind == "simulation":
        return f"A trial run. A real release made like this would keep guesses at participation to {success}."
    if cert.membership_success <= 0.5:
        return "This release tells nobody who took part: every guess stays as good as a coin flip."
    return (
        f"Whoever reads this release guesses whether a given person took part with at most {success} success. "
        "A coin has 50 %."
    )


def at_most(cert: Certificate) -> str:
    """How a figure is to be read."""
    return "about" if cert.kind == "empirical" else "at most"


def in_short(line: str) -> str:
    """The first clause of a line of the certificate."""
    clause = line.split(":", 1)[0].rstrip(".")
    return clause if len(clause) <= CLOSED else clause[: CLOSED - 1].rsplit(" ", 1)[0] + " …"
