"""The words of a certificate over given inputs: which of them was used, and nothing about people."""

from __future__ import annotations

from collections.abc import Iterator

from leakcap.certificates.facts import ReleaseFacts
from leakcap.certificates.layout import percent

__all__ = ["attacker", "attempts", "game", "known_title", "likeliest", "method", "named", "promise", "unnoised"]


def likeliest(cert: ReleaseFacts) -> float:
    """How often the input is named without the release."""
    return 1 / cert.worlds if cert.likeliest_input is None else cert.likeliest_input


def named(cert: ReleaseFacts) -> float:
    """How often the input is named with the release, at most."""
    return 1.0 if cert.name_the_input_success is None else cert.name_the_input_success


def promise(cert: ReleaseFacts) -> str:
    """What is guessed, how well at most, and how well without the release."""
    success = f"with more than {percent(named(cert))} success (without the release: {percent(likeliest(cert))})"
    if cert.in_secret_order:
        return (
            f"Nobody who sees a row alone can guess {success} which of the {cert.worlds:,} records stands in it. The "
            "whole table tells more."
        )
    if cert.in_rows:
        return (
            f"Nobody can guess {success} which of the {cert.worlds:,} records stands in a given row, even knowing all "
            "other rows."
        )
    return f"Nobody can guess {success} which of the {cert.worlds:,} inputs was used."


def game(cert: ReleaseFacts) -> str:
    alike = likeliest(cert) <= (1 + 1e-12) / cert.worlds
    how = "all of them alike" if alike else f"by known chances, the likeliest with {percent(likeliest(cert))}"
    if cert.in_rows:
        return (
            f"There are {cert.worlds:,} possible records. In each row of the table stands one of them, "
            f"{'no two alike, in a secret order' if cert.in_secret_order else how}; every row was noised by itself. "
            "The attacker is asked about one row, named in advance"
            f"{', and sees no other' if cert.in_secret_order else ''}. The game is over the listed records, and no "
            "others."
        )
    return (
        f"There are {cert.worlds:,} possible inputs. One was drawn in secret, {how}; the answer on it was noised. The "
        "attacker is asked about the input. The game is over the listed inputs, and no others."
    )


def attacker() -> str:
    return (
        "May know every input, its chance to be used, the code and the answer on each input. Does not know which input "
        "was used, nor the noise. Has unlimited computing power and uses the best possible method."
    )


def attempts(cert: ReleaseFacts) -> Iterator[tuple[str, float, float]]:
    """What an attacker may try, its chance without the release, and the bound on its chance with it."""
    yield "name the input that was used", likeliest(cert), named(cert)
    for prior in (0.5, 0.01):
        yield f"any question about the input, {100 * prior:g} % before", prior, cert.posterior(prior)


def known_title() -> str:
    return "Known about all inputs (says nothing about which was used)"


def unnoised(cert: ReleaseFacts) -> str:
    """Which part of the answer is equal for all inputs."""
    if cert.unnoised_directions == 0:
        return f"Nothing: all {cert.outputs:,} output directions carry noise."
    if cert.noised_directions == 0:
        return "Everything, and that is safe in this game: the answer is the same for every input."
    return (
        f"{cert.unnoised_directions:,} of {cert.outputs:,} output directions leave without noise, as their mean over "
        "inputs, whichever input was used: they tell nothing about which it was."
    )


def method(cert: ReleaseFacts) -> str:
    """How the figures were found, and how sure they are."""
    split = (
        f"(attempt {cert.attempt}, share {cert.gamma_used:.3g} of gamma {cert.gamma:.3g}, {cert.bounds:,} statements)"
    )
    if cert.integrated:
        return "Summed over every possible released value, without sampling: nothing is left to chance."
    drawn = ", ".join(f"{name}: {count:,}" for name, count in cert.draws)
    return (
        f"Sampled releases: {drawn}, each of an input drawn by its chance. All figures hold together with probability "
        f"{cert.confidence:.7g} or more over the certifying draws {split}."
    )
