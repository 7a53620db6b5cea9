"""The first screen over given inputs: which of them was used, in plain words."""

from __future__ import annotations

from leakcap.certificates import inputs_text
from leakcap.certificates.release import Certificate
from leakcap.report.compared import Compared
from leakcap.report.numbers import bound

__all__ = ["ANSWER", "ATTACKER", "NOTE", "card", "in_brief", "trial", "what_was_done"]

NOTE = "“Any question” is a ceiling for the most favourable question about the input that anybody could invent."
ANSWER = "They are the answer on one of the inputs, and noise."
ATTACKER = (
    "Anybody, and the worst is assumed: they know every input, its chance to be used, the program and its answer on "
    "each input, have unlimited computing power and use the best possible method. Only two things are hidden from "
    "them: which input was used, and the noise."
)


def what_was_done(cert: Certificate) -> str:
    noise = "Random noise was then added, and only the noisy answer leaves."
    if cert.noised_directions == 0:
        noise = "The answer is the same for every input, so it leaves without noise."
    return f"{inputs_text.game(cert)} {noise}"


def in_brief(cert: Certificate) -> str:
    noise = "and random noise was added" if cert.noised_directions else "which is the same for all: no noise is needed"
    if cert.in_rows:
        return (
            f"In each row stands one of {cert.worlds:,} possible records, {noise}. Assume that attackers know all of "
            "them, but not which stands where."
        )
    return (
        f"Of {cert.worlds:,} possible inputs one was used. The answer comes from it alone, {noise}. Assume that "
        "attackers know all of them, and the program, but not which it was."
    )


def trial(cert: Certificate) -> str:
    return f"A trial run. A real release made like this would keep guesses at the input to {bound(_named(cert))}."


def card(cert: Certificate, at_most: str) -> Compared:
    """Before and after: naming the input."""
    return Compared(
        question="“Which input was used?”",
        asked="How many of 100 guesses are right",
        before_word="best guess",
        before=bound(inputs_text.likeliest(cert)),
        prior=inputs_text.likeliest(cert),
        success=_named(cert),
        at_most=at_most,
        knowing="by luck",
        anyway="by luck",
    )


def _named(cert: Certificate) -> float:
    return inputs_text.named(cert)
