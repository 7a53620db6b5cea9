"""The page of an audit: the verdict in a sentence, then measured beside certified for every attack.

For the custodian. One file without scripts or outside references, and a pure function of its argument.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from leakcap.report.audit_pictures import bar_key, beside, chip, recognition
from leakcap.report.audit_words import METHODS, chance, headline, lead, likelihood, next_steps, spaced
from leakcap.report.audited import (
    UNBOUNDED,
    Audited,
    Found,
    bearing,
    is_check,
    is_recognition,
    is_share,
    releases_needed,
    things,
)
from leakcap.report.markup import bullets, paragraph, section, shortened, table, text
from leakcap.report.numbers import bound, data, neat
from leakcap.report.page import _document
from leakcap.report.pictures import captioned
from leakcap.report.sections import warning
from leakcap.report.style import KEPT_STYLE, STYLE
from leakcap.version import __version__

__all__ = ["audit_fragment", "audit_page"]

_BANNER = (
    '<div class="band kept" role="alert"><div><strong>CUSTODIAN ONLY &ndash; do not publish.</strong> '
    "An audit knows the secrets behind the releases that it makes, and its figures tell about single people."
    "</div></div>"
)


def audit_page(audit: Audited) -> str:
    """A whole HTML document for the custodian."""
    body = "\n".join(part for part in (_top(audit, "h1"), *_sections(audit), _footer()) if part)
    told = warning(audit.certificate) if audit.certificate is not None else ""
    return _document(f"CUSTODIAN ONLY: audit, {audit.target}", _BANNER + told, body, STYLE + KEPT_STYLE + AUDIT_STYLE)


def audit_fragment(audit: Audited) -> str:
    """A part of a notebook: the verdict, what to do, and the bound beside every measurement."""
    parts = (
        f'<div class="leakcap fragment"><style>{STYLE}{AUDIT_STYLE}</style>',
        _BANNER + (warning(audit.certificate) if audit.certificate is not None else ""),
        _top(audit, "h2"),
        bar_key(audit) + beside(audit) if audit.findings else "",
        '<p class="small">The whole page: <code>report.to_html()</code>.</p></div>',
    )
    return "\n".join(parts)


def _top(audit: Audited, tag: str) -> str:
    state = bearing(audit).replace(" ", "-") if audit.findings else UNBOUNDED.replace(" ", "-")
    about = f"leakcap audit · {audit.target} · {audit.trials:,} {things(audit)} made and attacked"
    return (
        f'<header><p class="kicker">{text(about)}</p>'
        f'<div class="verdict {state}"><{tag}>{text(headline(audit))}</{tag}>'
        f"{paragraph(lead(audit), 'lead')}</div></header>\n"
        f'<div class="card todo"><h2>What to do</h2>{bullets(next_steps(audit))}</div>'
    )


def _sections(audit: Audited) -> Iterator[str]:
    if audit.findings:
        yield section(
            "The bound beside the measurement" if bearing(audit) != UNBOUNDED else "What attackers achieved",
            paragraph(
                f"Every attack was tried on {things(audit)} with a known secret that it had not seen before. A dot is "
                "how often it was right; all attacks on one question share a scale."
            ),
            bar_key(audit),
            beside(audit),
        )
    pictures = recognition(audit) + _exposed(audit)
    if pictures:
        yield section("Who is at risk", f'<div class="pictures">{pictures}</div>')
    if audit.findings:
        yield section("All figures", _table(audit), paragraph(_note(audit), "small"), _methods(audit))
    yield section("What an audit is, and what it is not", bullets(_meaning(audit)), _facts(audit))


def _exposed(audit: Audited) -> str:
    if not audit.exposed:
        return ""
    items = "".join(f"<li>unit <b>{unit:,}</b></li>" for unit in audit.exposed)
    words = "By number, from 0, as they stand in the pool; the most exposed first. Their data are not on this page."
    if audit.certificate is not None:
        words += (
            " Often they are outliers: a bound on what one person can contribute (clip=) helps them, and lowers the "
            "noise."
        )
    kept = '<p class="kept">CUSTODIAN ONLY</p>'
    return captioned("The most exposed people", words, f'<ol class="ranks">{items}</ol>', kept)


def _table(audit: Audited) -> str:
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
    return table([heads[i] for i in kept], ([row[i] for i in kept] for row in rows), "answers audited")


def _figures(audit: Audited, one: Found) -> tuple[str, ...]:
    low, high = one.interval
    shares = is_share(one)

    def figure(value: float) -> str:
        return data(value, f"{100 * value:.2f} %" if shares else neat(value)) if math.isfinite(value) else ""

    if math.isnan(low):
        ends = ""
    else:
        ends = f"{figure(low)} … {figure(high)}" if math.isfinite(high) else f"{figure(low)} or more"
    limit = ""
    if one.certified is not None:
        limit = data(one.certified, bound(one.certified) if shares else neat(one.certified))
    needed = releases_needed(audit, one)
    more = ""
    if needed is not None:
        more = data(needed - audit.trials, f"{max(needed - audit.trials, 0):,}")
    return (
        shortened(one.attack),
        shortened(spaced(one.question)),
        "" if is_check(one) else figure(one.prior),
        f"<b>{figure(one.measured)}</b>",
        ends,
        limit,
        data(one.p_value, chance(one.p_value)) if one.verdict != UNBOUNDED else "",
        chip(one.verdict),
        more,
    )


def _note(audit: Audited) -> str:
    if audit.certificate is None or not any(is_recognition(one) for one in audit.findings):
        return ""
    return (
        "Who recognises participants may have accused somewhat more of the others than it was set to. Its bound is the "
        "certified one at the most false alarms that are likely, and therefore above the figure on the certificate."
    )


def _methods(audit: Audited) -> str:
    """What the attackers do, those that were tried, each once."""
    told: dict[str, list[str]] = {}
    for name in dict.fromkeys(one.attack.partition(",")[0] for one in audit.findings):
        words = METHODS.get(name) or METHODS.get(name.partition(" ")[0])
        if words:
            told.setdefault(words, []).append(name)
    known = "".join(f"<dt>{text(', '.join(names))}</dt><dd>{text(words)}</dd>" for words, names in told.items())
    return f"<h3>The attackers</h3><dl>{known}</dl>" if known else ""


def _meaning(audit: Audited) -> Iterator[str]:
    promise = "certificate" if audit.certificate is not None else "promise"
    what = things(audit)
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
        "“Holds” means that an excess of one percentage point would most likely have been seen; “inconclusive”, that "
        "it might have been missed."
    )
    yield "“No promise” means that nobody set a limit: the figure says how exposed people are to these attackers."


def _facts(audit: Audited) -> str:
    judged = max((one.trials for one in audit.findings), default=0)
    facts = [
        ("Attacked", audit.target),
        (f"{things(audit).capitalize()} made", f"{audit.trials:,}, of which {judged:,} were judged"),
        ("Refuted by mistake", f"in at most {likelihood(audit.alpha)} (alpha {audit.alpha:g}, for the whole page)"),
        ("Intervals", "95 % each, Clopper-Pearson or stricter; they are for the eye, the verdict asks for more"),
        ("Time", f"{neat(audit.seconds, 3)} seconds"),
    ]
    if audit.certificate is not None:
        facts.insert(1, ("Certificate", f"{audit.certificate.kind}, {audit.certificate.units:,} units"))
    return f"<dl>{''.join(f'<dt>{text(name)}</dt><dd>{text(value)}</dd>' for name, value in facts)}</dl>"


def _footer() -> str:
    return (
        f"<footer>leakcap {text(__version__)}. Certified figures are rounded up, measured ones to the nearest; every "
        "figure in full is in the value of its cell.</footer>"
    )


AUDIT_STYLE = """
.leakcap .verdict{border-left:8px solid var(--blue);background:var(--card);border-radius:4px 10px 10px 4px;
 padding:16px 22px;margin-top:8px;print-color-adjust:exact;-webkit-print-color-adjust:exact}
.leakcap .verdict h1,.leakcap .verdict h2{margin:0 0 6px}
.leakcap .verdict.inconclusive{border-color:var(--warn)}
.leakcap .verdict.no-promise{border-color:var(--orange)}
.leakcap .verdict.refuted{background:var(--red);border-color:var(--ink);color:#fff}
.leakcap .verdict.refuted h1{font-size:36px}
.leakcap .todo{margin-bottom:16px}
.leakcap .chip{display:inline-block;padding:1px 9px;border-radius:9px;border:1px solid var(--rule);font-size:13.5px;
 font-weight:600;white-space:nowrap;print-color-adjust:exact;-webkit-print-color-adjust:exact}
.leakcap .chip.holds{border-color:var(--blue);color:var(--blue)}
.leakcap .chip.refuted{background:var(--red);border-color:var(--red);color:#fff}
.leakcap .chip.inconclusive{background:var(--warn);border-color:var(--warn);color:var(--warn-ink)}
.leakcap .question{margin:18px 0 6px;break-inside:avoid}
.leakcap .question h3{margin-bottom:4px}
.leakcap .row{display:grid;grid-template-columns:minmax(0,1fr) minmax(0,1.25fr) 108px;gap:4px 22px;align-items:center;
 padding:5px 0;border-top:1px solid var(--grid)}
.leakcap .row.foot{border:0;padding:0}
.leakcap .row b{font-weight:600;font-size:15px;overflow-wrap:anywhere}
.leakcap .row small{display:block;color:var(--faint);font-size:14px}
.leakcap .row .chip{justify-self:end}
.leakcap .beside{display:block;width:100%;height:28px;overflow:visible}
.leakcap .beside.ticks{height:22px}
.leakcap .beside text{font-size:12px;fill:var(--faint)}
.leakcap .base{stroke:var(--grid);stroke-width:1}
.leakcap .beyond{fill:var(--red);opacity:.13}
.leakcap .measured{fill:var(--ink);stroke:var(--ink);stroke-width:3}
.leakcap .measured circle{stroke:var(--paper);stroke-width:1.5}
.leakcap .measured line{stroke-opacity:.45;stroke-width:5;stroke-linecap:round}
.leakcap .measured.broken{fill:var(--red-ink);stroke:var(--red-ink)}
.leakcap .point{fill:var(--luck);stroke:var(--paper)}
.leakcap .point.best{fill:var(--ink)}
.leakcap .point.broken{fill:var(--red-ink)}
.leakcap .reach.point{fill:none;stroke:var(--luck);stroke-width:1.4}
.leakcap .reach.best{stroke:var(--ink);stroke-width:2}
.leakcap .reach.broken{stroke:var(--red-ink);stroke-width:2}
.leakcap .reach.thin{stroke-width:1.2;stroke-dasharray:3 2}
.leakcap .chart .point-note{font-weight:600}
.leakcap .ranks{margin:6px 0;padding-left:26px;columns:2}
.leakcap .audited{font-size:14px}
.leakcap .audited th,.leakcap .audited td{padding-right:12px}
.leakcap .audited th:first-child{min-width:9em;overflow-wrap:break-word}
.leakcap .audited thead th:nth-child(2),.leakcap .audited td:nth-child(2){text-align:left;white-space:normal;
 min-width:13em}
.leakcap section h3{margin:14px 0 6px}
.leakcap section ul+dl{margin-top:16px}
@media screen and (max-width:760px){
.leakcap .verdict.refuted h1{font-size:27px}
.leakcap .row{grid-template-columns:minmax(0,1fr) auto}
.leakcap .row .beside{grid-column:1/-1;grid-row:2}
.leakcap .row>span:empty{display:none}
.leakcap .audited td:nth-child(2){text-align:right;min-width:0}
.leakcap .audited th:first-child{min-width:0}
.leakcap .audited td:empty{display:none}
}
@media print{
.leakcap .audited{font-size:12px}
.leakcap .audited th,.leakcap .audited td{padding-right:7px}
.leakcap .audited thead th:nth-child(2),.leakcap .audited td:nth-child(2){min-width:10em}
.leakcap .audited th:first-child{min-width:7em}
}
"""
