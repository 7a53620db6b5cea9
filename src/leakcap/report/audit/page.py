"""The page of an audit: the verdict in a sentence, then measured beside certified for every attack.

For the custodian. One file without scripts or outside references, and a pure function of its argument.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from leakcap.audit.memorisation import MemorisationReport
from leakcap.audit.report import AuditReport
from leakcap.audit.verdicts import CHECK, RECOGNITION, UNBOUNDED, Finding
from leakcap.certificates.labels import LabelCertificate
from leakcap.certificates.release import Certificate
from leakcap.certificates.session import SessionCertificate
from leakcap.report.audit.audited import is_share, releases_needed, things
from leakcap.report.audit.columns import column_facts
from leakcap.report.audit.pictures import bar_key, chip, recognition, scales
from leakcap.report.audit.words import METHODS, chance, headline, lead, likelihood, next_steps, spaced
from leakcap.report.html import Markup, markup, render, shortened
from leakcap.report.numbers import at_most, bound, data, neat, unbroken
from leakcap.report.words import warning
from leakcap.version import __version__

__all__ = ["audit_fragment", "audit_page"]


def audit_page(audit: AuditReport) -> str:
    """A whole HTML document for the custodian."""
    heads, rows = _table(audit)
    return render(
        "audit/page.html",
        **_first(audit),
        promised=audit.verdict != UNBOUNDED,
        recognition=recognition(audit),
        exposed=audit.exposed,
        certified=audit.certificate is not None,
        heads=heads,
        rows=rows,
        note=_note(audit),
        methods=_methods(audit),
        meaning=list(_meaning(audit)),
        facts_of_it=_facts(audit),
        version=__version__,
    )


def audit_fragment(audit: AuditReport) -> str:
    """A part of a notebook: the verdict, what to do, and the bound beside every measurement."""
    return render("audit/fragment.html", **_first(audit))


def _first(audit: AuditReport) -> dict[str, Any]:
    """The verdict, what to do about it, and the figures that it rests on."""
    return {
        "target": audit.target,
        "warning": warning(audit.certificate) if isinstance(audit.certificate, Certificate) else None,
        "about": f"leakcap audit · {audit.target} · {audit.trials:,} {things(audit)} {_fate(audit)}",
        "things": things(audit),
        "verdict": audit.verdict,
        "headline": headline(audit),
        "lead": unbroken(lead(audit)),
        **column_facts(audit),
        "next_steps": next_steps(audit),
        "scales": scales(audit),
        "key": bar_key(audit),
    }


def _fate(audit: AuditReport) -> str:
    return "in one training" if isinstance(audit, MemorisationReport) else "for trial, attacked, unpublished"


def _table(audit: AuditReport) -> tuple[list[str], list[list[str]]]:
    promised = "certified" if audit.certificate is not None else "claimed"
    heads = (
        "attack",
        "what was guessed",
        "by guessing",
        "measured",
        "95 % interval",
        f"{promised}, at most",
        "chance if it held",
        "verdict",
        f"more {things(audit)} that would decide",
    )
    rows = [_figures(audit, one) for one in audit.findings]
    kept = [i for i in range(len(heads)) if any(row[i] for row in rows)]
    return [heads[i] for i in kept], [[row[i] for i in kept] for row in rows]


def _figures(audit: AuditReport, one: Finding) -> tuple[str, ...]:
    low, high = one.interval
    shares = is_share(one)

    def figure(value: float) -> Markup:
        if not math.isfinite(value):
            return Markup()
        return data(value, f"{100 * value:.2f} %" if shares else neat(value))

    ends = limit = more = Markup()
    if math.isfinite(low):
        ends = markup("{} or more", figure(low))
        if math.isfinite(high):
            ends = markup("{} … {}", figure(low), figure(high))
    if one.certified is not None:
        limit = data(one.certified, bound(one.certified) if shares else at_most(one.certified))
    needed = releases_needed(audit, one)
    if needed is not None:
        more = data(needed - audit.trials, f"{max(needed - audit.trials, 0):,}")
    return (
        shortened(one.attack),
        shortened(spaced(one.question)),
        "" if one.kind == CHECK else figure(one.prior),
        markup("<b>{}</b>", figure(one.measured)),
        ends,
        limit,
        data(one.p_value, chance(one.p_value)) if one.verdict != UNBOUNDED else "",
        markup("{} within chance", chip(one.verdict)) if one.within_chance else chip(one.verdict),
        more,
    )


def _note(audit: AuditReport) -> str:
    if audit.certificate is None or not any(one.kind == RECOGNITION for one in audit.findings):
        return ""
    return (
        "Who recognises participants may have accused somewhat more of the others than it was set to. Its bound is the "
        "certified one at the most false alarms that are likely, and therefore above the figure on the certificate."
    )


def _methods(audit: AuditReport) -> list[tuple[str, str]]:
    """What the attackers do, those that were tried, each once."""
    told: dict[str, list[str]] = {}
    for name in dict.fromkeys(one.attack.partition(",")[0] for one in audit.findings):
        words = METHODS.get(name) or METHODS.get(name.partition(" ")[0])
        if words:
            told.setdefault(words, []).append(name)
    return [(", ".join(names), words) for words, names in told.items()]


def _meaning(audit: AuditReport) -> Iterator[str]:
    promise = "certificate" if audit.certificate is not None else "promise"
    what = things(audit)
    if isinstance(audit, MemorisationReport):
        yield (
            "Some labels were made wrong before the model was trained, by coins that only the custodian has seen. The "
            "attacker sees the model and guesses the coins: no training with a small epsilon lets him be right often."
        )
        yield (
            "Rows that are called heuristics are the rules of the paper that this audit goes back to. Nothing is "
            "proved about them, and no verdict rests on them."
        )
    else:
        yield (
            f"It makes {what} by the very code that publishes, each with a secret of its own, lets attackers guess the "
            f"secret, and counts. Attackers learn and choose on some of the {what} and are judged on the others."
        )
    yield (
        f"It can refute a {promise}; it can never prove one. What it measures is a lower bound: somebody may find a "
        "better attack."
    )
    if audit.certificate is not None:
        yield (
            "The certificate is the upper bound. By proof it holds against every attack, also against those that "
            "nobody has thought of."
        )
    yield "“Refuted” means that the attack did what the promise rules out, and that luck does not explain it."
    yield (
        "“Holds” means that all of the interval lies within a stated slack of the promise: one percentage point, or a "
        "fifth of a small bound, for shares; one per cent for the size of the noise. “Inconclusive” means that it does "
        "not yet, and more releases would decide."
    )
    yield "“Within chance” means that a figure lies above its bound by no more than luck explains: nothing is refuted."
    yield "“No promise” means that nobody set a limit: the figure says how exposed people are to these attackers."


def _facts(audit: AuditReport) -> list[tuple[str, str]]:
    # Checks of the noise count its numbers, of which a release has several.
    judged = max((one.trials for one in audit.findings if one.kind != CHECK), default=audit.trials)
    facts = [
        ("Attacked", audit.target),
        (f"{things(audit).capitalize()} made", f"{audit.trials:,}, of which {judged:,} were judged"),
        ("Refuted by mistake", f"in at most {likelihood(audit.alpha)} (alpha {audit.alpha:g}, for the whole page)"),
        ("Intervals", "95 % each, Clopper-Pearson or stricter; they are for the eye, the verdict asks for more"),
        ("Time", f"{neat(audit.seconds, 3)} seconds"),
    ]
    if audit.certificate is not None:
        facts.insert(1, ("Certificate", f"{audit.certificate.kind}, {_size(audit.certificate)}"))
    return facts


def _size(cert: Certificate | LabelCertificate | SessionCertificate) -> str:
    if isinstance(cert, SessionCertificate):
        return f"design {cert.design}, {cert.answered:,} answers"
    if isinstance(cert, LabelCertificate):
        return f"{cert.labels:,} labels"
    return f"{cert.worlds:,} inputs" if cert.of_inputs else f"{cert.units:,} units"
