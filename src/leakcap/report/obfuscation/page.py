"""The page of an encoded set: what the server can learn of who is in it, or, in large letters, that nothing is claimed.

One file without scripts or outside references, and a pure function of its arguments.
"""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any

from leakcap.certificates.obfuscation import ATTACKER, EncodingFacts, ObfuscationCertificate, UnclaimedEncoding
from leakcap.report.compared import Compared
from leakcap.report.html import markup, render
from leakcap.report.numbers import bound, unbroken
from leakcap.report.words import ATTACK_HEADS, check_it, first_clause, signature

__all__ = ["encoding_fragment", "encoding_page", "first_facts"]

SIMULATED = "Simulation, not a release", "It was seeded, and whoever knows the seed can undo the encoding."
LEARN = "Train any model on features.npy and labels.npy: network.txt says how, and what to send back."
KEEP = "Only whoever has the owner's key can use the model: it is not here, and it is not sent."


def encoding_page(certificate: EncodingFacts, title: str = "", signed_with: str = "") -> str:
    """A whole HTML document: facts of the certificate, nothing else."""
    return render(
        "certificate_page.html",
        **first_facts(certificate, title, signed_with),
        signature=signature(signed_with),
        cert=certificate,
        method_title="How it was encoded",
        method_facts=_facts(certificate),
    )


def encoding_fragment(certificate: EncodingFacts) -> str:
    """A part of a notebook: the promise or that there is none, and the whole in words."""
    return render("certificate_fragment.html", **first_facts(certificate, "", ""), words=str(certificate))


def first_facts(cert: EncodingFacts, title: str, signed_with: str) -> dict[str, Any]:
    """The promise in one sentence, before and after, what an attacker may try, and the limits."""
    return {
        "title": title or "An encoded set",
        "kicker": f"leakcap certificate of an encoded set · {'signed' if signed_with else 'unsigned'}",
        "warning": _warning(cert),
        "lead": _lead(cert),
        "told": [("The game: what was done", [cert.game]), ("The attacker", [ATTACKER])],
        "card": _card(cert),
        "attack_heads": ATTACK_HEADS,
        "attack_note": "“Balanced” success counts rows that were drawn and rows that were not alike, at any rate.",
        "attack_rows": _rows(cert),
        "limits": [first_clause(line) for line in cert.not_promised],
        "next_steps": [LEARN, KEEP, check_it(signed_with)],
    }


def _warning(cert: EncodingFacts) -> tuple[str, str] | None:
    if cert.kind == "simulation":
        return SIMULATED
    return None if cert.is_guarantee else ("No claim", "Nothing is promised about who can be found in this set.")


@singledispatch
def _lead(cert: EncodingFacts) -> str:
    raise TypeError(f"no page for {type(cert).__name__}")


@_lead.register
def _(cert: UnclaimedEncoding) -> str:
    return f"Nothing is claimed about this encoded set. {cert.why}"


@_lead.register
def _(cert: ObfuscationCertificate) -> str:
    return unbroken(
        f"Nobody who sees this encoded set can tell whether a given row of the pool is in it with more than "
        f"{bound(cert.membership_success)} success (guessing: 50 %), whatever they know of the pool."
    )


def _card(cert: EncodingFacts) -> Compared | None:
    if not isinstance(cert, ObfuscationCertificate):
        return None
    return Compared(
        question="“Was this row drawn?”",
        asked="How many of 100 guesses are right, half of them about rows that were drawn",
        before_word="a coin flip",
        before="50 %",
        prior=0.5,
        success=cert.membership_success,
        at_most="at most",
        knowing="knowing the pool",
        anyway="by luck",
    )


def _rows(cert: EncodingFacts) -> list[tuple[str, str, str]]:
    if not isinstance(cert, ObfuscationCertificate):
        return []
    return [
        (what[:1].upper() + what[1:], f"{math.floor(1e4 * before + 1e-9) / 100:g} %", markup("<b>{}</b>", bound(after)))
        for what, before, after in cert.attacks()
    ]


def _facts(cert: EncodingFacts) -> list[tuple[str, str]]:
    facts = [
        ("Rows drawn", f"{cert.rows_sampled:,}, as many of each of {cert.classes:,} classes"),
        ("Rows released", f"{cert.rows_released:,}, means of {2 * cert.mix:,} rows of two classes each"),
        ("Columns", f"{cert.columns:,}, masked to {cert.mask_dim:,}, in {cert.blocks:,} block(s)"),
        ("Noise", f"standard deviation {cert.noise:.6g} in every cell; {cert.rows_are}"),
        ("Public rows added", f"{cert.public_rows:,}"),
        ("Queries", "leave, and nothing is promised of them" if cert.queries_leave else "stay with the owner"),
        ("Other encodings", cert.alone()),
    ]
    if isinstance(cert, ObfuscationCertificate):
        facts += [("Confidence", f"1 - {1 - cert.confidence:.1g}"), ("Proofs", ", ".join(cert.theorems))]
    return facts
