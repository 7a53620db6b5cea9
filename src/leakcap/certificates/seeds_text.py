"""The words of a certificate whose secret is a world and a seed of the function."""

from __future__ import annotations

from leakcap.certificates.facts import ReleaseFacts

__all__ = ["attacker", "game", "method"]

MOSTLY_MARGIN = 10.0  # times as large: then hardly anything else is in the noise


def game(cert: ReleaseFacts) -> str:
    return (
        f"The data are a pool of {cert.units:,} units (people or records). The answer was computed once, on a secret "
        f"random part of them (share {cert.rate}) and with a secret random seed, then noised."
    )


def attacker() -> str:
    return (
        "May know everyone's data, the code, every possible world, every possible seed and the answer for each. Does "
        "not know which world and which seed were used, nor the noise. Has unlimited computing power and uses the best "
        "possible method."
    )


def method(cert: ReleaseFacts) -> str:
    """How the mean distance was bounded, with how many pairs and seeds, and what of the noise is for the unseen."""
    pilots, pairs, seeds, answers, cut = (count for _, count in cert.draws)
    price = cert.price_of_confidence
    margin = (
        "Nearly all of the noise is for pairs that were not seen"
        if price > MOSTLY_MARGIN
        else f"Being sure about pairs that were not seen makes the noise {price:.2g} times as large"
    )
    share = "one statement" if cert.bounds == 1 else f"one of {cert.bounds:,} statements"
    pilot = f"; {pilots:,} pilot pairs, which fixed directions, ball and stake, spend none" if pilots else ""
    return (
        "The distance of answers in two independent worlds, their seeds matched as well as possible: its mean, over "
        f"{pairs:,} pairs of worlds with {seeds:,} seeds each, is bounded with probability {cert.confidence:.7g} "
        f"({share}, {cert.gamma_used:.3g} of gamma {cert.gamma:.3g}{pilot}). Of {answers:,} measured answers {cut:,} "
        f"were cut to the ball. {margin}; more worlds make it cheaper."
    )
