"""The page of a session: what all its answers together allow, those that are still to come included.

One file without scripts or outside references, and a pure function of its certificate.
"""

from __future__ import annotations

from typing import Any

from leakcap.certificates.session import ATTACKERS, GAMES, SessionCertificate, reading, told_together
from leakcap.report.compared import guesses_after_all
from leakcap.report.html import Markup, markup, render
from leakcap.report.numbers import bound, unbroken
from leakcap.report.words import ATTACK_HEADS, check_it, first_clause, signature

__all__ = ["session_facts", "session_fragment", "session_page"]

TITLE = "Certificate of a session"
USE = "Use each answer with its interval. All that will be asked is covered, in this session alone."
RATES = (0.01, 0.001)
MAX_LISTED = 100  # questions on the page; all of them are in the record


def session_page(certificate: SessionCertificate, signed_with: str = "") -> str:
    """A whole HTML document for everybody."""
    return render("sessions/page.html", **session_facts(certificate, signed_with))


def session_facts(certificate: SessionCertificate, signed_with: str = "") -> dict[str, Any]:
    """What the page shows, for templates of other pages that show it too."""
    told = told_together(certificate.questions)
    listed = told[-MAX_LISTED:]
    return {
        **_first(certificate, signed_with),
        "signature": signature(signed_with),
        "cert": certificate,
        "reading": reading(certificate),
        "questions": [(words, "-" if certificate.always else f"{100 * share:.3g} %") for words, share in listed],
        "earlier": f"{len(told) - len(listed):,}" if len(told) > len(listed) else "",
    }


def session_fragment(certificate: SessionCertificate) -> str:
    """A part of a notebook: before and after, the table, the limits, and the whole in words."""
    return render("certificate_fragment.html", **_first(certificate), words=str(certificate))


def _first(cert: SessionCertificate, signed_with: str = "") -> dict[str, Any]:
    kind = ["leakcap certificate of a session", *([] if cert.is_guarantee else ["SIMULATION, no release"])]
    return {
        "title": TITLE,
        "warning": None,
        "kicker": " · ".join([*kind, "signed" if signed_with else "unsigned"]),
        "lead": _headline(cert),
        "told": [("The game", [GAMES[cert.design]]), ("The attacker", [ATTACKERS[cert.design]])],
        "card": guesses_after_all(cert.design == "pool", cert.membership_success),
        "attack_heads": ATTACK_HEADS,
        "attack_note": "",
        "attack_rows": _attack_rows(cert),
        "limits": [first_clause(line) for line in cert.not_promised],
        "next_steps": [USE, check_it(signed_with)],
    }


def _headline(cert: SessionCertificate) -> str:
    what = "a person is in the data at all" if cert.design == "pool" else "a person takes part"
    who = (
        "whoever knows everybody else" if cert.whoever_is_known else "whoever knows the data and nobody who takes part"
    )
    given = f"{cert.answered:,} answer{' was' if cert.answered == 1 else 's were'} given so far"
    return unbroken(
        f"However many questions were and will be asked, {who} guesses whether {what} with at most "
        f"{bound(cert.membership_success)} success. {given}."
    )


def _attack_rows(cert: SessionCertificate) -> list[tuple[str, str, Markup]]:
    rows = [
        (unbroken(one.meaning.split(":")[0].capitalize()), f"{100 * one.before:g} %", one.certified)
        for one in cert.capped
    ]
    rows += [
        (
            f"Recognise participants, with {100 * rate:g} % false alarms",
            f"{100 * rate:g} %",
            cert.true_positive_rate(rate),
        )
        for rate in RATES
    ]
    if cert.pool_membership_success is not None and cert.design == "bits":
        rows.append(("Tell whether somebody is in the data at all", "50 %", cert.pool_membership_success))
    return [(what, before, markup("<b>{}</b>", bound(after))) for what, before, after in rows]
