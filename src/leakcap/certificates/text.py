"""A certificate in plain words: one page that a reader who is no specialist can follow."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator

from scipy.special import ndtr

from leakcap.certificates import inputs_text, seeds_text
from leakcap.certificates.facts import ReleaseFacts
from leakcap.certificates.layout import (
    NO_BOUND,
    WIDTH,
    heading,
    listed,
    most,
    percent,
    rounded_up,
    section,
    table_row,
)
from leakcap.convert import gaussian_epsilon

__all__ = [
    "NO_BOUND",
    "PARTNER_KNOWN",
    "WIDTH",
    "collusion",
    "heading",
    "in_a_line",
    "in_short",
    "listed",
    "method",
    "most",
    "page",
    "percent",
    "promise",
    "rounded_up",
    "rows",
    "section",
    "title",
    "unnoised",
]

DELTA = 1e-5  # at which epsilon is told
PARTNER_KNOWN = "Whoever is told somebody's partner needs no release: of two partners exactly one took part."


def page(cert: ReleaseFacts) -> str:
    """The certificate as text."""
    return "\n".join(_lines(cert))


def in_a_line(cert: ReleaseFacts) -> str:
    """What is promised, in one line."""
    if not cert.is_guarantee:
        return "a simulation, not a release" if cert.kind == "simulation" else "no guarantee: measured, not proved"
    if cert.of_inputs:
        return inputs_text.promise(cert)
    success, (used, knowing) = percent(cert.membership_success), _guessed(cert)
    return f"Guessed with {success} success at most: whether a given person {used}, {knowing}."


def _lines(cert: ReleaseFacts) -> Iterator[str]:
    yield title(cert)
    if cert.is_guarantee:
        yield from textwrap.wrap(promise(cert), WIDTH)
    yield ""
    yield from section("The game", _game(cert))
    yield from section("The attacker", _attacker(cert))
    yield from heading(table_row("What the attacker can do", "before", "after, at most"))
    yield from _table(cert)
    yield ""
    if not cert.of_inputs:
        yield from section("Attackers who already know some participants", collusion(cert))
    yield from section("What leaves without noise", unnoised(cert))
    known = (
        "Known without the data"
        if cert.mode == "pool"
        else "Known about the whole pool (says nothing about who took part)"
    )
    yield from listed(inputs_text.known_title() if cert.of_inputs else known, cert.pool_public)
    if cert.declared_public:
        yield from listed("Declared by the custodian, not checked", cert.declared_public)
    yield from listed("Not promised", cert.not_promised)
    yield from listed("Assumed", cert.assumptions)
    if cert.noise is not None:
        yield from section("The noise", cert.noise)
    yield from section("How it was certified", method(cert))
    proofs = f"Proofs: {', '.join(cert.theorems)} (docs/proofs). leakcap {cert.leakcap_version}."
    yield from textwrap.wrap(proofs, WIDTH)


def title(cert: ReleaseFacts) -> str:
    """The first line: what kind of certificate it is, or that it is none."""
    titles = {
        "simulation": "SIMULATION, NOT A RELEASE: it was seeded, and whoever knows the seed can undo the noise.",
        "empirical": "EMPIRICAL FIGURES, NOT A GUARANTEE: the stopping rule has no confidence. For comparison only.",
    }
    return titles.get(cert.kind, f"Certificate of a private release ({cert.kind})")


def promise(cert: ReleaseFacts) -> str:
    """Whom it protects from whom, in one sentence: what is guessed, how well at most, and knowing what."""
    if cert.of_inputs:
        return inputs_text.promise(cert)
    used, knowing = _guessed(cert)
    return (
        f"Nobody can guess with more than {percent(cert.membership_success)} success (guessing: 50 %) whether a given "
        f"person {used}, {knowing}."
    )


def _guessed(cert: ReleaseFacts) -> tuple[str, str]:
    """What is guessed about a person, and what whoever guesses may know."""
    everything = "even knowing everything about everybody else"
    if cert.mode == "pool":
        return "is in this data set at all", everything
    used = f"was in the secret random {'half' if cert.rate == '1/2' else 'part'} of the data that was used"
    if cert.on_average_over_the_known:
        return used, f"{everything}, on average over what they know"
    return used, everything if cert.whoever_is_known else "unless they know others who were in it"


def _game(cert: ReleaseFacts) -> str:
    if cert.of_inputs:
        return inputs_text.game(cert)
    if cert.of_seeds:
        return seeds_text.game(cert)
    if cert.mode == "pool" and cert.in_blocks:
        return (
            "The function was run on blocks of people; its answers, cut to bounds that were declared without looking "
            "at the data, were averaged and noised. The attacker is asked about one person: in the data, or not? How "
            "many there are is not said."
        )
    if cert.mode == "pool":
        return (
            "What everybody brings, within bounds that were declared without looking at the data, was added up and "
            "noised. The attacker is asked about one person: in the data, or not? How many there are is not said."
        )
    pool = f"The data are a pool of {cert.units:,} units (people or records)."
    if cert.on_average_over_the_known:
        return (
            f"{pool} Each took part or not by a fair coin of its own, tossed in secret. The answer was computed on "
            "those who took part, and noised. The attacker is asked about one person."
        )
    if cert.whoever_is_known:
        return (
            f"{pool} Each took part or not by a fair coin of its own, tossed in secret. {_added_up(cert)}, and noised. "
            "The attacker is asked about one person."
        )
    if cert.mode == "individual":
        return (
            f"{pool} A random part of them (share {cert.rate}; every part of that size may be it) was drawn in secret; "
            "the answer was computed on the people in it and noised. The attacker is asked about one person, named "
            "in advance. No other game is bounded."
        )
    if cert.mode != "exact":
        return f"{pool} The answer was computed on a secret random part of them (share {cert.rate}), then noised."
    return (
        f"{pool} One of {cert.worlds:,} possible worlds ({cert.design}, each person in a share {cert.rate} of "
        "them) was chosen in secret; the answer was computed on the people in it and noised."
    )


def _added_up(cert: ReleaseFacts) -> str:
    if cert.in_blocks:
        return "The function was run on those who took part, block by block, its answers were cut to bounds, averaged"
    return "What those who took part bring was added up, on the scale of the whole pool"


def _attacker(cert: ReleaseFacts) -> str:
    if cert.of_inputs:
        return inputs_text.attacker()
    if cert.of_seeds:
        return seeds_text.attacker()
    if cert.mode == "pool":
        return (
            "May know all data of everybody else, the code, the bounds and the law of the noise, and what the person "
            "would bring. Does not know whether the person is in the data, nor the noise. Has unlimited computing "
            "power and uses the best possible method."
        )
    if cert.whoever_is_known:
        return (
            "May know everyone's data, the code, and of everybody else whether they took part. Does not know the coin "
            "of the person asked about, nor the noise. Has unlimited computing power and uses the best possible method."
        )
    if cert.mode == "individual":
        return (
            "May know everyone's data, the code, and how parts and noise are drawn. Does not know which part was used, "
            "nor the noise, nor who else took part. Has unlimited computing power and uses the best possible method."
        )
    return (
        "May know everyone's data, the code, every possible world and the answer in each. Does not know which "
        "world was used, nor the noise. Has unlimited computing power and uses the best possible method."
    )


Row = tuple[str, float, float]


def rows(cert: ReleaseFacts) -> Iterator[Row]:
    """What an attacker may try, its chance without the release, and the bound on its chance with it."""
    if cert.of_inputs:
        yield from inputs_text.attempts(cert)
        return
    yield _one_person(cert)
    yield from (_recognition(cert, fpr) for fpr in (0.01, 0.001))
    if cert.only_one_person:
        return
    yield "name one participant of their choice", cert.sampling_rate, cert.name_a_member_success
    yield from (_any_question(cert, prior) for prior in (0.5, 0.01))
    if cert.mode == "exact":
        least = 1 / cert.worlds
        yield "tell of everybody at once whether they took part", least, cert.posterior(least)


def in_short(cert: ReleaseFacts) -> list[tuple[str, str, str]]:
    """The rows that a terminal has room for: one person, few false alarms, any question where it is bounded."""
    chosen = list(inputs_text.attempts(cert)) if cert.of_inputs else [_one_person(cert), _recognition(cert, 0.01)]
    if not cert.only_one_person and not cert.of_inputs:
        chosen.append(_any_question(cert, 0.01))
    return [(what, f"{100 * before:g} %", most(after)) for what, before, after in chosen]


def _one_person(cert: ReleaseFacts) -> Row:
    if cert.mode == "pool":
        return "guess whether a given person is in the data", 0.5, cert.membership_success
    return "guess whether a given person took part", 0.5, cert.membership_success


def _recognition(cert: ReleaseFacts, fpr: float) -> Row:
    if cert.mode == "pool":
        return f"recognise people in it, accusing {100 * fpr:g} % of others", fpr, cert.true_positive_rate(fpr)
    return f"recognise participants, accusing {100 * fpr:g} % of others", fpr, cert.true_positive_rate(fpr)


def _any_question(cert: ReleaseFacts, prior: float) -> Row:
    return f"any question about who took part, {100 * prior:g} % before", prior, cert.posterior(prior)


def _table(cert: ReleaseFacts) -> Iterator[str]:
    for what, before, after in rows(cert):
        yield _indented(what, f"{math.floor(before * 1e4 + 1e-9) / 100:.2f} %", most(after))
    if cert.only_one_person:
        yield _indented("anything else", "", "not bounded")
    else:
        nats = f"{rounded_up(cert.mutual_information, 4):.4f}"
        about = "the input" if cert.of_inputs else "the secret world"
        yield _indented(f"information about {about}, in nats", "0", nats)
    for one in cert.capped:
        kept = "kept" if one.certified <= one.limit else "NOT KEPT"
        line = f"Cap {kept}: {one.meaning} (certified {rounded_up(one.certified, 5):.5f}, limit {one.limit:g})"
        yield from textwrap.wrap(line, WIDTH, initial_indent="  ", subsequent_indent="    ")


def _indented(what: str, before: str, after: str) -> str:
    return table_row("  " + what, before, after)


def collusion(cert: ReleaseFacts) -> str:
    """What is certified against attackers who know some participants."""
    if cert.of_inputs:
        return ""
    if cert.mode == "empirical":
        return "Nothing is said about them."
    if cert.mode == "pool":
        return (
            f"They tell of another with at most {percent(cert.membership_success)} success, even if they know about "
            "everybody else."
        )
    if cert.whoever_is_known:
        average = ", on average over what they know" if cert.on_average_over_the_known else ""
        return (
            f"They guess another with at most {percent(cert.given(cert.units - 1))} success, even if they know about "
            f"everybody else{average}."
        )
    if cert.mode == "individual":
        return "Nothing is bounded against them: tell nobody, participants included, who took part."
    if cert.noised_directions == 0:
        return "The answer is the same in every possible world: it adds nothing to what they know."
    if cert.mode == "confidence":
        success = cert.given(10)
        if success == 1:
            return "No figure is certified against them."
        return f"Told 10 memberships at random, they guess another with at most {percent(success)} success."
    told = "; ".join(f"{k} known: {percent(cert.given(k))}" for k, _ in cert.known_memberships)
    partner = f" {PARTNER_KNOWN}" if cert.has_partners else ""
    return (
        f"{told}.{partner} The certificate ends at about {cert.colluders} known memberships (log2 of {cert.worlds:,} "
        "worlds): tell nobody, participants included, who took part."
    )


def unnoised(cert: ReleaseFacts) -> str:
    """Which part of the answer is equal in all worlds."""
    if cert.of_inputs:
        return inputs_text.unnoised(cert)
    if cert.unnoised_directions == 0:
        return f"Nothing: all {cert.outputs:,} output directions carry noise."
    if cert.noised_directions == 0:
        return (
            "Everything, and that is safe in this game: the answer is the same in every possible world, so it "
            "tells nothing about which one was used. It is an exact statistic of the pool."
        )
    return (
        f"{cert.unnoised_directions:,} of {cert.outputs:,} output directions leave without noise, as their mean over "
        "worlds, whichever world was used: they tell nothing about who took part, but are statistics of the pool."
    )


def method(cert: ReleaseFacts) -> str:
    """How the figures were found, and how sure they are."""
    if cert.of_inputs:
        return inputs_text.method(cert)
    if cert.of_seeds:
        return seeds_text.method(cert)
    if cert.mode == "pool":
        mu = rounded_up(cert.gaussian_distance, 4)
        epsilon = rounded_up(gaussian_epsilon(cert.gaussian_distance, 0.9 * DELTA), 3)  # the rest for the sampler
        replaced = percent(float(ndtr(cert.gaussian_distance)) * (1 + 1e-12))
        return (
            "In closed form, from the declared bounds alone. Nothing was sampled, and nothing here depends on the "
            f"data. It is {mu:.4f}-Gaussian differential privacy for adding or removing a person: "
            f"({epsilon:.3f}, {DELTA:g})-differential privacy, among others. For replacing a person's data by others "
            f"the distance is twice that: {replaced}."
        )
    if cert.mode == "empirical":
        return "Worlds were added until no variance moved by more than 1e-6; nothing bounds what was not seen."
    if cert.whoever_is_known and not cert.on_average_over_the_known:
        return (
            f"In closed form, for each of the {cert.units:,} units: how far its coin moves the answer, in noise "
            "deviations, whatever the other coins show. Nothing was sampled: it is certain."
        )
    if cert.mode == "individual" and cert.integrated:
        return (
            f"In closed form, for each of the {cert.units:,} units: the mean, over everybody who could have been drawn "
            "in their place, of how well the two answers can be told apart. Nothing was sampled: it is certain."
        )
    share = f"All figures hold together with probability {cert.confidence:.7g} or more over the certifying draws"
    again = f" ({cert.gamma_again:.3g} of it for the few who got more draws)" if cert.gamma_again else ""
    split = (
        f"(attempt {cert.attempt}, share {cert.gamma_used:.3g} of gamma {cert.gamma:.3g}{again}, "
        f"{cert.bounds:,} statements)"
    )
    if cert.mode == "confidence":
        return (
            f"Variances of {cert.worlds:,} independent worlds, bounded together with probability "
            f"{cert.confidence:.7g}. Being sure about worlds that were not seen makes the noise "
            f"{cert.price_of_confidence:.2g} times as large; more worlds make it cheaper."
        )
    drawn = ", ".join(f"{name}: {count:,}" for name, count in cert.draws)
    if cert.mode == "individual":
        return f"Sampled, for each of the {cert.units:,} units, in random parts of the pool: {drawn}. {share} {split}."
    if cert.integrated:
        return (
            "Summed over every possible released value, without sampling; only the figures for known "
            f"participants were sampled. {share} {split}. Draws: {drawn}."
        )
    return f"Sampled releases: {drawn}. {share} {split}."
