"""What the public page says, section by section. Facts of the certificate and of the released answer, nothing else."""

from __future__ import annotations

import hashlib
from typing import Any

from leakcap.certificates import text as wording
from leakcap.certificates.release import CappedFigure, Certificate
from leakcap.report.compared import Compared
from leakcap.report.html import Markup, joined
from leakcap.report.numbers import bound, neat, unbroken
from leakcap.report.release import inputs_words
from leakcap.report.release.answers import answer_facts
from leakcap.report.release.attack_table import attack_heads, attack_rows, strong
from leakcap.report.release.pictures import leakage_picture, roc_picture
from leakcap.report.release.records import Answer
from leakcap.report.release.words import (
    at_most,
    attacker,
    headline,
    if_they_know,
    in_brief,
    next_steps,
    part,
    what_was_done,
)
from leakcap.report.words import first_clause, signature, warning

__all__ = ["attack_facts", "first_facts", "public_facts"]

BESIDE_THE_DOTS = 4  # rows of an answer that leave room for more in its column
SHORT_LINES = 4  # of what is not promised, before anything is opened
TITLE = "Certificate of a private release"
# Kinds of caps whose figures are shares; others have units of their own.
SHARES = {"AnyInference", "Identification", "Membership", "NameAMember", "PoolMembership", "Precision", "Task"} | {
    "TruePositiveRate"
}


def public_facts(cert: Certificate, answer: Answer | None, tag: str = "h1", signed_with: str = "") -> dict[str, Any]:
    """Everything that the templates of a public page ask for; `signed_with` is the fingerprint of a key, if any."""
    return {
        "answer": None if answer is None else answer_facts(answer, cert),
        **_heading(cert, answer, tag, signed_with),
        **first_facts(cert),
        **attack_facts(cert),
        **_details(cert),
        "in_brief": in_brief(cert),
        "beside_the_dots": BESIDE_THE_DOTS,
        "next_steps": next_steps(cert, signed_with),
        "signature": signature(signed_with),
    }


def _heading(cert: Certificate, answer: Answer | None, tag: str, signed_with: str) -> dict[str, Any]:
    """The title, and the whole promise in one sentence."""
    named = [f"data set: {answer.data_set}"] if answer and answer.data_set else []
    issued = [f"issued by {answer.issuer}"] if answer and answer.issuer else []
    dated = [answer.date] if answer and answer.date else []
    return {
        "tag": tag,
        "title": TITLE if answer is None else answer.title,
        "kicker": " · ".join(["leakcap certificate", *named, *issued, *dated, "signed" if signed_with else "unsigned"]),
        "fingerprint": fingerprint(cert),
        "lead": headline(cert),
    }


def fingerprint(cert: Certificate) -> str:
    """Of the certificate's own record; of the data there is none, because whoever knows the others would try both."""
    return hashlib.sha256(cert.to_json().encode()).hexdigest()[:16]


def first_facts(cert: Certificate) -> dict[str, Any]:
    """The first screen: what was done, the attacker, before, after, and what is not promised."""
    return {
        "cert": cert,
        "warning": warning(cert),
        "told": [
            ("The game: what was done", [what_was_done(cert)]),
            ("The attacker", [attacker(cert), if_they_know(cert)]),
        ],
        "card": _compared(cert),
        "limits": [first_clause(line) for line in cert.not_promised[:SHORT_LINES]],
    }


def _compared(cert: Certificate) -> Compared:
    if cert.of_inputs:
        return inputs_words.card(cert, at_most(cert))
    fair = "" if cert.sampling_rate == 0.5 else ", participants and others counting alike"
    return Compared(
        question=_question(cert),
        asked=f"How many of 100 guesses are right{fair}",
        before_word="coin flip",
        before="50 %",
        prior=0.5,
        success=cert.membership_success,
        at_most=at_most(cert),
        knowing="by luck",
        anyway="by luck",
    )


def _question(cert: Certificate) -> str:
    if cert.mode == "pool":
        return "“Is this person in the data?”"
    return f"“Was this person in the secret {part(cert)}?”"


def attack_facts(cert: Certificate) -> dict[str, Any]:
    """What an attacker may try, without the release and with it."""
    note = (
        "“Any question” is a ceiling for the most favourable question that anybody could invent, also about many "
        "people together. About one person named in advance, the first line counts."
    )
    return {
        "attack_heads": attack_heads(cert),
        "attack_rows": attack_rows(cert),
        "attack_note": "" if cert.only_one_person else inputs_words.NOTE if cert.of_inputs else note,
    }


def _details(cert: Certificate) -> dict[str, Any]:
    """Everything the certificate says after the first screen."""
    known_rows, known_words = _collusion(cert)
    return {
        "caps": [_cap(one) for one in cert.capped],
        "pictures": _pictures(cert),
        "known_heads": ("participants they know", f"right about another person, {at_most(cert)}"),
        "known_rows": known_rows,
        "known_words": known_words,
        "unnoised": wording.unnoised(cert),
        "known_of_all": _known_of_all(cert),
        "method": _method(cert),
        "method_facts": _method_facts(cert),
    }


def _known_of_all(cert: Certificate) -> str:
    if cert.of_inputs:
        return "Known about all inputs"
    return "Known without the data" if cert.mode == "pool" else "Known about the whole pool"


def _cap(one: CappedFigure) -> dict[str, Any]:
    if one.cap not in SHARES:
        certified, limit = f"{wording.rounded_up(one.certified, 5):.5f}", f"{one.limit:g}"
    else:
        certified, limit = bound(one.certified), f"{100 * one.limit:g} %"
    words = f"{unbroken(one.meaning)} (certified {certified}, limit {limit})"
    return {"kept": one.certified <= one.limit, "words": words}


def _pictures(cert: Certificate) -> Markup:
    """Success at any question, where it is bounded, and at recognising participants."""
    if cert.mode in ("individual", "pool"):  # there is no curve of any question
        return roc_picture(cert)
    if cert.of_inputs:
        return leakage_picture(cert)
    return joined((leakage_picture(cert), roc_picture(cert)))


def _collusion(cert: Certificate) -> tuple[list[tuple[str, Markup]], list[str]]:
    """Rows of a table and what is said below it."""
    known = cert.known_memberships
    if cert.of_inputs:
        return [], []
    if cert.mode != "exact" or not known:
        return [], [wording.collusion(cert)]
    ends = (
        f"The certificate ends at about {cert.colluders} known participants: each one rules out about "
        f"{'half' if cert.rate == '1/2' else 'some'} of the {cert.worlds:,} {part(cert, plural=True)}. Tell nobody, "
        "participants included, who took part."
    )
    words = [wording.PARTNER_KNOWN, ends] if cert.has_partners else [ends]
    if all(cert.given(k) >= 1 for k, _ in known):
        return [], ["No figure is certified against them.", *words]
    return [(f"{k:,}", strong(bound(cert.given(k)))) for k, _ in known], words


def _method(cert: Certificate) -> str:
    if cert.mode != "exact":
        return wording.method(cert)
    if cert.integrated:
        return (
            "The best attack was computed for every possible released value, without sampling. Only the figures for "
            "attackers who know participants were sampled; what chance could do to that sample is added to them."
        )
    return (
        "The best attack was computed on many simulated releases. What chance could do to such a sample is added to "
        "every figure."
    )


def _method_facts(cert: Certificate) -> list[tuple[str, str]]:
    sure = "none" if not cert.confidence else f"{cert.confidence:.7g} for all figures together"
    if 0 < cert.gamma < 1 and cert.confidence:
        sure += f" (wrong at most once in {neat(1 / cert.gamma, 4)} certificates)"
    again = f"; {cert.gamma_again:.3g} of that for the few who got more draws" if cert.gamma_again else ""
    return [
        ("Confidence", sure),
        ("Risk, gamma", f"{cert.gamma:.3g}, of which attempt {cert.attempt} used {cert.gamma_used:.3g}{again}"),
        ("Statements that share it", f"{cert.bounds:,}"),
        (
            "Worlds",
            "none, everybody takes part"
            if cert.mode == "pool"
            else f"{cert.worlds:,} given inputs"
            if cert.of_inputs
            else f"{cert.worlds:,}, {cert.design}, each person in a share {cert.rate}",
        ),
        ("Draws", ", ".join(f"{name}: {count:,}" for name, count in cert.draws) or "none"),
        ("Outputs", f"{cert.outputs:,}, noise in {cert.noised_directions:,} directions"),
        *([] if cert.noise is None else [("Noise", cert.noise)]),
        ("Grid of the noise", f"{cert.grid_step:.3g} deviations"),
        ("Distance of the sampler", f"{cert.sampler_distance:.3g} (counted in every figure)"),
        ("Proofs", f"{', '.join(cert.theorems)}, in the folder docs/proofs of leakcap"),
    ]
