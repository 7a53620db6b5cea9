"""The report as HTML: a page for everybody, a page for the custodian, and a fragment for notebooks.

Each page is one file without scripts or outside references, and a pure function of its arguments.
"""

from __future__ import annotations

from leakcap.certificates.inputs_text import named
from leakcap.certificates.release import Certificate
from leakcap.planning.accuracy import Summary
from leakcap.report.html import render
from leakcap.report.numbers import bound
from leakcap.report.release.custody import custodian_facts, plan_facts
from leakcap.report.release.records import Answer, Custody
from leakcap.report.release.sections import attack_facts, first_facts, public_facts

__all__ = ["Answer", "Custody", "custodian_page", "fragment", "plan_fragment", "plan_page", "public_page"]


def public_page(certificate: Certificate, answer: Answer | None = None, signed_with: str = "") -> str:
    """A whole HTML document for everybody: facts of the certificate and of the released answer, nothing else.

    `signed_with` is the fingerprint of the key that the files are signed with; without it the page says *unsigned*.
    """
    return render("release/public.html", **public_facts(certificate, answer, signed_with=signed_with))


def custodian_page(certificate: Certificate, answer: Answer, custody: Custody) -> str:
    """The custodian's document: the truth beside the release, each unit's exposure, the worlds; never published."""
    facts = public_facts(certificate, answer, "h2")
    return render("release/custodian.html", **facts, **custodian_facts(certificate, answer, custody))


def fragment(certificate: Certificate, answer: Answer | None = None) -> str:
    """A part of a notebook: before and after, the table, the limits. Styles are scoped to it."""
    return render("release/fragment.html", **public_facts(certificate, answer, "h2"))


def plan_page(summary: Summary) -> str:
    """The custodian's document: what the answer will be worth and what it will tell, before anything is released."""
    return render("release/plan.html", **_planned(summary))


def plan_fragment(summary: Summary) -> str:
    """The same as a part of a notebook, in short."""
    return render("release/plan_fragment.html", **_planned(summary))


def _planned(summary: Summary) -> dict[str, object]:
    cert = summary.certificate
    if cert.of_inputs:
        words = (
            "Nothing has left yet. plan.release() gives one answer, of one of the inputs and noised, and keeps guesses "
            f"at which it was to {bound(named(cert))}; plan.recap(cap) tries another."
        )
        return {**first_facts(cert), **attack_facts(cert), **plan_facts(summary), "planned": words, "next_steps": []}
    words = (
        "Nothing has left yet. plan.release() gives one answer, off the whole pool's by about the expected errors "
        f"below, and keeps guesses at one person to {bound(cert.membership_success)}; plan.recap(cap) tries another."
    )
    return {**first_facts(cert), **attack_facts(cert), **plan_facts(summary), "planned": words, "next_steps": []}
