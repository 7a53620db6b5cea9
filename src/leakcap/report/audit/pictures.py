"""Pictures of an audit: the bound beside each measurement, and who is recognised at few false alarms."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leakcap.audit.report import AuditReport
from leakcap.audit.verdicts import CHECK, RECOGNITION, REFUTED, Finding
from leakcap.certificates.release import Certificate
from leakcap.report.audit.audited import groups, is_share
from leakcap.report.audit.words import differing, in_short, spaced
from leakcap.report.chart import Axis, Chart, captioned, key, linear
from leakcap.report.html import Markup, joined, markup, shortened
from leakcap.report.numbers import at_most, neat

__all__ = ["bar_key", "chip", "recognition", "scales"]

LEAST_ALARMS = 5e-4  # false alarms at the left end: half of the fewest that are measured
APART = 1.18  # attacks at one rate of false alarms stand beside each other


def chip(verdict: str) -> Markup:
    """A verdict as a small coloured word."""
    return markup('<span class="chip {}">{}</span>', verdict.replace(" ", "-"), verdict)


def scales(audit: AuditReport) -> list[dict[str, Any]]:
    """For every question a scale, and on it for every attack: luck, what was measured, and the bound."""
    asked = [one for one in audit.findings if one.kind != CHECK]
    checked = [one for one in audit.findings if one.kind == CHECK]
    parts = [_question(title, members) for title, members in groups(asked)]
    if checked:
        rows = [_row(one, spaced(one.question), Markup()) for one in checked]
        parts.append({"title": "Checks of the mechanism", "rows": rows, "ticks": None})
    # What is refuted stands first.
    return sorted(parts, key=lambda part: all(row["verdict"] != REFUTED for row in part["rows"]))


def _question(title: str, members: Sequence[Finding]) -> dict[str, Any]:
    many = len({one.question for one in members}) > 1
    scale = _QuestionScale.of(members)
    names = [f"{one.attack}: {differing(one.question)}" if many else one.attack for one in members]
    rows = [_row(one, name, scale.bar(one)) for one, name in zip(members, names, strict=True)]
    return {"title": spaced(title[:1].upper() + title[1:]), "rows": rows, "ticks": scale.ticks()}


def _row(one: Finding, name: str, bar: Markup) -> dict[str, Any]:
    verdict = {"chip": chip(one.verdict), "verdict": one.verdict}
    return {"name": shortened(name), "words": in_short(one), "bar": bar, **verdict}


@dataclass(frozen=True)
class _QuestionScale:
    """One scale for all attacks on a question."""

    axis: Axis

    @classmethod
    def of(cls, members: Iterable[Finding]) -> _QuestionScale:
        members = list(members)
        shares = all(is_share(one) for one in members)
        held = [x for one in members for x in (one.measured, one.prior, *one.interval, one.certified) if x is not None]
        seen = [x for x in held if math.isfinite(x)]
        low, high = min(seen), max(seen)
        margin = 0.08 * (high - low) or 0.05 * abs(high) or 0.05
        low, high = low - margin, high + margin
        axis = linear("", max(low, -0.02), min(high, 1.02) if shares else high, 6)
        unit = [(v, f"{100 * v:.4g} %" if shares else neat(v)) for v, _ in axis.ticks if v <= 1 or not shares]
        return cls(Axis("", axis.low, axis.high, tuple(unit)))

    def at(self, value: float) -> str:
        return f"{100 * float(self.axis.place(value)):.2f}%"

    def bar(self, one: Finding) -> Markup:
        """What is ruled out as a shaded end, luck as a dotted line, the measurement as a dot with its interval."""
        parts = [markup('<line class="base" x1="0" x2="100%" y1="14" y2="14"/>')]
        if not math.isnan(one.prior):
            parts.append(markup('<line class="before" x1="{0}" x2="{0}" y1="2" y2="26"/>', self.at(one.prior)))
        if one.certified is not None:
            limit = 100 * float(self.axis.place(one.certified))
            beyond = '<rect class="beyond" x="{:.2f}%" y="2" width="{:.2f}%" height="24"/>'
            parts.append(markup(beyond, limit, 100 - limit))
            parts.append(markup('<line class="bound" x1="{0:.2f}%" x2="{0:.2f}%" y1="2" y2="26"/>', limit))
        low, high = one.interval[0], one.interval[1] if math.isfinite(one.interval[1]) else self.axis.high
        parts.append(
            markup(
                '<g class="{}"><line x1="{}" x2="{}" y1="14" y2="14"/><circle cx="{}" cy="14" r="5"/></g>',
                "measured broken" if one.verdict == REFUTED else "measured",
                *map(self.at, (low, high, one.measured)),
            )
        )
        return markup('<svg class="beside" role="img" aria-label="{}">{}</svg>', _said(one), joined(parts))

    def ticks(self) -> Markup:
        marks = []
        for value, words in self.axis.ticks:
            place = float(self.axis.place(value))
            anchor = "start" if place < 0.01 else "end" if place > 0.99 else "middle"
            marks.append(markup('<line class="rule" x1="{0:.2f}%" x2="{0:.2f}%" y1="0" y2="5"/>', 100 * place))
            marks.append(markup('<text x="{:.2f}%" y="18" text-anchor="{}">{}</text>', 100 * place, anchor, words))
        return markup('<svg class="beside ticks" aria-hidden="true">{}</svg>', joined(marks))


def _said(one: Finding) -> str:
    low, high = one.interval
    promised = "nothing promised" if one.certified is None else f"bound {at_most(one.certified)}"
    return f"measured {neat(one.measured)}, interval {neat(low)} to {neat(high)}, {promised}"


def bar_key(audit: AuditReport) -> Markup:
    """What the marks of the bars mean."""
    items = [("dot", "measured", "measured"), ("line", "measured", "95 % interval"), ("line", "before", "by guessing")]
    if any(one.certified is not None for one in audit.findings):
        promised = "certified bound" if audit.certificate is not None else "claimed bound"
        items += [("line", "bound", promised), ("box", "beyond", "what it rules out")]
    return key(items)


def recognition(audit: AuditReport) -> Markup:
    """Participants recognised over others wrongly accused, both logarithmic; empty where no attack measured it."""
    found = [one for one in audit.findings if one.kind == RECOGNITION]
    if not found:
        return Markup()
    words = "Each attack was set beforehand to accuse this share of the others. Lines: 95 % intervals."
    if audit.certificate is not None:
        words += (
            " To the right: false alarms that it may really have caused. An attack refutes the curve only where it "
            "stays above it to the end of that line."
        )
    label = "Share of participants that each attack recognised, against the share of others it wrongly accused."
    chart = _recognition_chart(audit, found)
    return captioned("Recognising people without false alarms", words, chart.svg(label), _recognition_key(audit, found))


def _recognition_chart(audit: AuditReport, found: Sequence[Finding]) -> Chart:
    ticks = tuple((10.0**k, f"{100 * 10.0**k:g} %") for k in range(-3, 1))
    chart = Chart(
        Axis("others wrongly accused", LEAST_ALARMS, 1.0, ticks, log=True),
        Axis("participants recognised", LEAST_ALARMS, 1.0, ticks, log=True),
    )
    alarms = np.geomspace(LEAST_ALARMS, 1, 241)
    allowed = None
    if isinstance(audit.certificate, Certificate):
        allowed = np.asarray(audit.certificate.true_positive_rate(alarms))
        chart.area("between", alarms, alarms, allowed)
        chart.line("bound", alarms, allowed)
    chart.line("before", alarms, alarms)
    for rate in sorted({one.prior for one in found}):
        alike = [one for one in found if one.prior == rate]
        best = max(alike, key=lambda one: one.measured)
        for place, one in enumerate(alike):
            x = rate * APART ** (place - (len(alike) - 1) / 2)
            kind = "point broken" if one.verdict == REFUTED else "point best" if one is best else "point"
            # The bound of a finding is the curve at the most false alarms that it may have caused.
            worst = None
            if kind != "point" and allowed is not None and one.certified is not None and one.certified < 1:
                worst = float(np.interp(one.certified, allowed, alarms))
            _draw_point(chart, one, x, kind=kind, worst=worst)
            if one is best:
                at = max(one.interval[1], LEAST_ALARMS)
                chart.note("point-note", x, at, f"{neat(100 * one.measured, 3)} %", dy=-8, anchor="middle")
    return chart


def _draw_point(chart: Chart, one: Finding, x: float, *, kind: str, worst: float | None) -> None:
    """The measurement, its interval upright, and to its right the false alarms that it may really have caused."""
    chart.line(f"reach {kind}", [x, x], [max(end, LEAST_ALARMS) for end in one.interval])
    height = max(one.measured, LEAST_ALARMS)
    if worst is not None:
        chart.line(f"reach thin {kind}", [x, max(x, worst)], [height] * 2)
    chart.points(kind, [x], [height], 4.2)


def _recognition_key(audit: AuditReport, found: Sequence[Finding]) -> Markup:
    certified = [("line", "bound", "certified, at most")] if audit.certificate is not None else []
    refuted = [("dot", "point broken", "refuted")] if any(one.verdict == REFUTED for one in found) else []
    points = [("dot", "point best", "strongest attack"), ("dot", "point", "other attacks")]
    return key([*certified, ("line", "before", "blind guessing"), *points, *refuted])
