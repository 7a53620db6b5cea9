"""The parts of a public page. Facts of the certificate and of the released answer, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from leakcap import wording
from leakcap.report import dots
from leakcap.report.answers import answer_table, left_out, scale_of
from leakcap.report.markup import bullets, paragraph, section, table, text
from leakcap.report.numbers import bound, neat, of_hundred
from leakcap.report.pictures import leakage_picture, roc_picture
from leakcap.report.records import Answer
from leakcap.report.words import UNBROKEN, at_most, attacker, headline, if_they_know, in_short, part, what_was_done

if TYPE_CHECKING:
    from leakcap.certificate import CappedFigure, Certificate

__all__ = [
    "answer_section",
    "attack_table",
    "compared",
    "details",
    "first_screen",
    "heading",
    "not_promised",
    "warning",
]

SHORT_LINES = 6


def warning(cert: Certificate) -> str:
    """A banner over what is no guarantee."""
    if cert.is_guarantee:
        return ""
    cry, _, why = wording.title(cert).partition(":")
    why = why.strip()
    told = f"<strong>{text(cry)}.</strong> {text(why[:1].upper() + why[1:])}"
    return f'<div class="band warn" role="alert"><div>{told}</div></div>'


def heading(cert: Certificate, answer: Answer | None, tag: str = "h1") -> str:
    """The title, and the whole promise in one sentence."""
    kind = "leakcap certificate" + (f" · issued by {answer.issuer}" if answer and answer.issuer else "")
    title = "Certificate of a private release" if answer is None else answer.title
    return (
        f'<header><p class="kicker">{text(kind)}</p><{tag}>{text(title)}</{tag}>'
        f'<p class="lead">{text(headline(cert))}</p></header>'
    )


def first_screen(cert: Certificate) -> str:
    """What was done, the attacker, before, after, and what is not promised."""
    return "\n".join(
        (
            '<div class="screen">',
            '<div class="told">',
            f'<div class="card"><h2>The game: what was done</h2>{paragraph(what_was_done(cert))}</div>',
            f'<div class="card"><h2>The attacker: who is meant</h2>{paragraph(attacker(cert))}'
            f"{paragraph(if_they_know(cert))}</div>",
            "</div>",
            compared(cert),
            not_promised(cert),
            "</div>",
        )
    )


def compared(cert: Certificate) -> str:
    """Before and after, as figures and as a hundred dots each."""
    success = cert.membership_success
    right = of_hundred(success)
    fair = "" if cert.rate == "1/2" else ", participants and others counting alike"
    return "\n".join(
        (
            '<div class="card compare">',
            f"<p><b>“Did this person take part?”</b> How many of 100 guesses are right{fair}:</p>",
            '<div class="side"><h2>Before</h2><p class="figure"><small>coin flip</small> 50 %</p>',
            '<p class="count">50 of 100</p>',
            dots.grid(50, 0, "Before: 50 of 100 guesses are right, by luck."),
            '</div><div class="side after"><h2>After</h2>',
            f'<p class="figure"><small>{at_most(cert)}</small> {bound(success)}</p>',
            f'<p class="count">{at_most(cert)} {right} of 100</p>',
            dots.grid(50, right - 50, f"After: {at_most(cert)} {right} of 100 guesses are right, 50 of them by luck."),
            "</div>",
            dots.key(right > 50, at_most(cert)),
            "</div>",
        )
    )


def not_promised(cert: Certificate) -> str:
    """The limits in short lines."""
    lines = [in_short(line) for line in cert.not_promised[:SHORT_LINES]]
    if not lines:
        return ""
    return f'<div class="card wide"><h2>What is not promised</h2>{bullets(lines)}</div>'


def answer_section(answer: Answer) -> str:
    words = "What was released, and all that was."
    if answer.low is not None:
        words += (
            f" Each interval holds the answer on the whole pool with {100 * answer.level:g} % probability or more: it "
            "allows for the noise and for the part of the pool that was not used. Its ends are rounded outwards."
        )
    return section(
        "The answer",
        paragraph(words),
        answer_table(answer),
        paragraph(f"{scale_of(answer)} {left_out(answer.names)}".strip(), "small"),
        anchor="answer",
    )


def details(cert: Certificate) -> str:
    """Everything the certificate says, after the first screen."""
    return "\n".join(
        (
            section("What the attacker can do", attack_table(cert), _caps(cert), anchor="attacks"),
            section("In pictures", f'<div class="pictures">{_pictures(cert)}</div>'),
            section("Attackers who already know some participants", *_collusion(cert)),
            section("What leaves without noise", paragraph(wording.unnoised(cert))),
            section("Known about the whole pool", *_listed(cert.pool_public, "It says nothing about who took part.")),
            section("Declared by the custodian, not checked", bullets(cert.declared_public))
            if cert.declared_public
            else "",
            section("Not promised, in full", bullets(cert.not_promised), anchor="not-promised"),
            section("Assumed", bullets(cert.assumptions)),
            section("How it was certified", *_method(cert)),
        )
    )


def _pictures(cert: Certificate) -> str:
    """Success at any question, where it is bounded, and at recognising participants."""
    return roc_picture(cert) if cert.mode == "individual" else leakage_picture(cert) + roc_picture(cert)


def attack_table(cert: Certificate) -> str:
    """What an attacker may try, without the release and with it."""
    rows = [
        (text(_spaced(what[:1].upper() + what[1:])), bound(before), f"<b>{bound(after)}</b>")
        for what, before, after in wording.rows(cert)
    ]
    heads = ("What the best attacker may try", "before", f"after, {at_most(cert)}")
    if cert.mode == "individual":
        rows.append(("Anything else, also about many people together", "", "<b>not bounded</b>"))
        return table(heads, rows, "attacks")
    rows.append(
        ("Information about the secret, in nats (1 nat is 1.44 yes-or-no answers)", "0", f"<b>{_nats(cert)}</b>")
    )
    return table(heads, rows, "attacks") + paragraph(
        "“Any question” is a ceiling for the most favourable question that anybody could invent, also about many "
        "people together. About one person named in advance, the first line counts.",
        "small",
    )


def _spaced(words: str) -> str:
    """Per cent signs as on the rest of the page."""
    return re.sub(r"(\d)%", f"\\1{UNBROKEN}%", words)


def _nats(cert: Certificate) -> str:
    return f"{wording.rounded_up(cert.mutual_information, 4):.4f}"


def _caps(cert: Certificate) -> str:
    return f'<ul class="caps">{"".join(map(_cap, cert.capped))}</ul>' if cert.capped else ""


def _cap(one: CappedFigure) -> str:
    kept = one.certified <= one.limit
    if one.cap == "MutualInformation":
        found, limit = f"{wording.rounded_up(one.certified, 5):.5f}", f"{one.limit:g}"
    else:
        found, limit = bound(one.certified), f"{100 * one.limit:g} %"
    start = "<li><b>Cap kept:</b>" if kept else '<li class="broken"><b>CAP NOT KEPT:</b>'
    return f"{start} {text(_spaced(one.meaning))} (certified {found}, limit {limit})</li>"


def _collusion(cert: Certificate) -> Iterator[str]:
    known = cert.known_memberships
    if cert.mode != "exact" or not known:
        yield paragraph(wording.collusion(cert))
        return
    if all(cert.given(k) >= 1 for k, _ in known):
        yield paragraph("No figure is certified against them.")
    else:
        rows = ((f"{k:,}", f"<b>{bound(cert.given(k))}</b>") for k, _ in known)
        heads = ("participants they know", f"right about another person, {at_most(cert)}")
        yield table(heads, rows, "narrow")
    yield paragraph(
        f"The certificate ends at about {cert.colluders} known participants: each one rules out about "
        f"{'half' if cert.rate == '1/2' else 'some'} of the {cert.worlds:,} {part(cert, plural=True)}. Tell nobody, "
        "participants included, who took part."
    )


def _listed(items: tuple[str, ...], otherwise: str) -> Iterator[str]:
    yield paragraph(otherwise, "small")
    yield bullets(items)


def _method(cert: Certificate) -> Iterator[str]:
    if cert.mode != "exact":
        yield paragraph(wording.method(cert))
    elif cert.integrated:
        yield paragraph(
            "The best attack was computed for every possible released value, without sampling. Only the figures for "
            "attackers who know participants were sampled; what chance could do to that sample is added to them."
        )
    else:
        yield paragraph(
            "The best attack was computed on many simulated releases. What chance could do to such a sample is added "
            "to every figure."
        )
    sure = "none" if not cert.confidence else f"{cert.confidence:.7g} for all figures together"
    if 0 < cert.gamma < 1 and cert.confidence:
        sure += f" (wrong at most once in {neat(1 / cert.gamma, 4)} certificates)"
    facts = [
        ("Confidence", sure),
        ("Risk, gamma", f"{cert.gamma:.3g}, of which attempt {cert.attempt} used {cert.gamma_used:.3g}"),
        ("Statements that share it", f"{cert.bounds:,}"),
        ("Worlds", f"{cert.worlds:,}, {cert.design}, each person in a share {cert.rate}"),
        ("Draws", ", ".join(f"{name}: {count:,}" for name, count in cert.draws) or "none"),
        ("Outputs", f"{cert.outputs:,}, noise in {cert.noised_directions:,} directions"),
        ("Grid of the noise", f"{cert.grid_step:.3g} deviations"),
        ("Distance of the sampler", f"{cert.sampler_distance:.3g} (counted in every figure)"),
        ("Proofs", ", ".join(cert.theorems)),
    ]
    entries = "".join(f"<dt>{text(name)}</dt><dd>{text(value)}</dd>" for name, value in facts)
    yield f"<dl>{entries}</dl>"
