"""The first screen in plain words: what was done, who the attacker is, what follows."""

from __future__ import annotations

from leakcap.certificates import text
from leakcap.certificates.release import Certificate
from leakcap.report.numbers import bound, unbroken
from leakcap.report.release import inputs_words
from leakcap.report.words import check_it

__all__ = [
    "at_most",
    "attacker",
    "headline",
    "if_they_know",
    "in_brief",
    "next_steps",
    "part",
    "what_was_done",
]


def part(cert: Certificate, plural: bool = False) -> str:
    """What a world is, in everyday words."""
    if cert.rate == "1/2":
        return "halves" if plural else "half"
    return "parts" if plural else "part"


def what_was_done(cert: Certificate) -> str:
    if cert.of_inputs:
        return inputs_words.what_was_done(cert)
    if cert.mode == "pool":
        return (
            f"{_of_all(cert)} Random noise, made for these bounds, was then added, and only the noisy answer leaves. "
            "The noise does not depend on the data, and this page on nothing of them but the noisy answer; how many "
            "people there are is not said."
        )
    pool = f"There are data on {cert.units:,} people (or records): the pool. "
    noise = "Random noise was then added, and only the noisy answer leaves."
    if cert.noised_directions == 0:
        noise = f"The answer is the same for every {part(cert)}, so it leaves without noise."
    share = "" if cert.rate == "1/2" else f" ({cert.rate} of the pool)"
    if cert.whoever_is_known:
        computed = "what these people bring was added up, on the scale of the whole pool"
        if cert.in_blocks:
            computed = "the program ran on these people block by block, and its answers, cut to bounds, were averaged"
        if cert.on_average_over_the_known:
            computed = "the answer was computed on these people alone"
        return f"{pool}A fair coin, tossed in secret for each of them, decided who took part; {computed}. {noise}"
    if cert.mode != "exact":
        return (
            f"{pool}The answer was computed on a secret random {part(cert)}{share} of it alone. Being drawn into it is "
            f"what “took part” means here. {noise}"
        )
    return (
        f"{pool}Of {cert.worlds:,} {part(cert, plural=True)}{share} drawn beforehand, one was picked in secret, and "
        f"the answer was computed on the people in it alone. Being in it is what “took part” means here. {noise}"
    )


def in_brief(cert: Certificate) -> str:
    """What was done and against whom, in two sentences; `what_was_done` and `attacker` say all of it."""
    if cert.of_inputs:
        return inputs_words.in_brief(cert)
    noise = "and random noise was added"
    if cert.mode == "pool":
        computed = f"What everybody in the data brings, within bounds set beforehand, was added up, {noise}."
        if cert.in_blocks:
            computed = f"The program ran on blocks of people; its answers, within bounds, were averaged, {noise}."
        return f"{computed} The promise holds even against those who know everything but whether one person is there."
    if cert.noised_directions == 0:
        noise = f"and is the same for every {part(cert)}: no noise is needed"
    whose = f"Of {cert.units:,} people (or records)"
    if cert.whoever_is_known:
        return (
            f"{whose}, secret coins picked about half. The answer comes from these alone, {noise}. The promise "
            "holds even against those who know everything but one person's coin."
        )
    return (
        f"{whose}, a secret random {part(cert)} was used. The answer comes from it alone, {noise}. The promise "
        "holds against those who know everybody's data, but nobody who was used."
    )


def next_steps(cert: Certificate, signed_with: str) -> list[str]:
    """What a reader does with the page."""
    steps = ["Use the numbers with their intervals."]
    known = [(k, cert.given(k)) for k, _ in cert.known_memberships if cert.given(k) < 1]
    if cert.mode == "exact" and cert.noised_directions and known:
        k, success = known[-1]
        some = "1 participant" if k == 1 else f"{k:,} participants"
        steps.append(unbroken(f"Tell nobody who took part: whoever knows {some} guesses others with {bound(success)}."))
    return [*steps, check_it(signed_with)]


def _of_all(cert: Certificate) -> str:
    if cert.in_blocks:
        return (
            "The program ran on blocks of people; its answers, cut to bounds that were fixed without looking at the "
            "data, were averaged."
        )
    return (
        "What every person in the data set brings, within bounds that were fixed without looking at the data, was "
        "added up."
    )


def attacker(cert: Certificate) -> str:
    if cert.of_inputs:
        return inputs_words.ATTACKER
    if cert.mode == "pool":
        return (
            "Anybody, and the worst is assumed: they know the data of everybody else, the program, the bounds and how "
            "noise is drawn, have unlimited computing power and use the best possible method. Only two things are "
            "hidden from them: whether the person they ask about is in the data, and the noise."
        )
    if cert.whoever_is_known:
        return (
            "Anybody, and the worst is assumed: they know everybody's data, the program, and of everybody else whether "
            "they took part, have unlimited computing power and use the best possible method. Only two things are "
            "hidden from them: the coin of the person they ask about, and the noise."
        )
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
    if cert.of_inputs:
        return unbroken(inputs_words.trial(cert) if not cert.is_guarantee else f"{text.promise(cert)} {verdict(cert)}")
    if cert.kind == "empirical":
        words = (
            f"Measured without any guarantee: participation is guessed with about {success} success. A coin has 50 %."
        )
    elif cert.kind == "simulation":
        about = "presence" if cert.mode == "pool" else "participation"
        words = f"A trial run. A real release made like this would keep guesses at {about} to {success}."
    elif cert.membership_success <= 0.5:
        words = "This release tells nobody who took part: every guess stays as good as a coin flip."
    else:
        words = f"{text.promise(cert)} {verdict(cert)}"
    return unbroken(words)


def verdict(cert: Certificate) -> str:
    """The limits that were set, and whether they are kept."""
    if not all(one.certified <= one.limit for one in cert.capped):
        return "A limit that was set is NOT kept."
    limits = [one.limit for one in cert.capped if one.cap in ("Membership", "PoolMembership")]
    if len(cert.capped) == len(limits) == 1:
        return f"The publisher's limit, {100 * limits[0]:g} %, is kept."
    return "All limits that were set are kept."


def if_they_know(cert: Certificate) -> str:
    """What the attacker gains from knowing participants; empty where nothing is certified about it."""
    if cert.of_inputs:
        return ""
    told = [(k, cert.given(k)) for k, _ in cert.known_memberships]
    certified = [(k, success) for k, success in told if success < 1]
    if cert.mode != "exact" or cert.noised_directions == 0 or not certified:
        return ""
    chosen = [certified[0], *([certified[len(certified) // 2]] if len(certified) > 2 else []), certified[-1]]
    words = ", ".join(f"{bound(success)} with {k}" for k, success in dict(chosen).items())
    return f"If they know participants already, they do better: {words}, at most. So nobody may learn who took part."


def at_most(cert: Certificate) -> str:
    """How a figure is to be read."""
    return "about" if cert.kind == "empirical" else "at most"
