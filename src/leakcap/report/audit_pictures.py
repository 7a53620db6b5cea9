"""Pictures of an audit: the bound beside each measurement, and who is recognised at few false alarms."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from leakcap.report.audit_words import differing, in_short, spaced
from leakcap.report.audited import (
    REFUTED,
    Audited,
    Found,
    groups,
    is_check,
    is_recognition,
    is_share,
)
from leakcap.report.chart import Axis, Chart, key, linear
from leakcap.report.markup import shortened, text
from leakcap.report.numbers import neat
from leakcap.report.pictures import captioned

__all__ = ["bar_key", "beside", "chip", "recognition"]

LEAST = 5e-4  # false alarms at the left end: half of the fewest that are measured
APART = 1.18  # attacks at one rate of false alarms stand beside each other


def chip(verdict: str) -> str:
    """A verdict as a small coloured word."""
    return f'<span class="chip {verdict.replace(" ", "-")}">{text(verdict)}</span>'


def beside(audit: Audited) -> str:
    """For every question a scale, and on it for every attack: luck, what was measured, and the bound."""
    asked = [one for one in audit.findings if not is_check(one)]
    checked = [one for one in audit.findings if is_check(one)]
    parts = [(members, _question(title, members)) for title, members in groups(asked)]
    if checked:
        rows = "".join(_row(one, one.question, "<span></span>") for one in checked)
        parts.append((checked, f'<div class="question"><h3>Checks of the mechanism</h3>{rows}</div>'))
    # What is refuted stands first.
    parts.sort(key=lambda part: all(one.verdict != REFUTED for one in part[0]))
    return "\n".join(words for _, words in parts)


def _question(title: str, members: Sequence[Found]) -> str:
    many = len({one.question for one in members}) > 1
    scale = _Scale.of(members)
    names = [f"{one.attack}: {differing(one.question)}" if many else one.attack for one in members]
    rows = "".join(_row(one, name, scale.bar(one)) for one, name in zip(members, names, strict=True))
    foot = f'<div class="row foot"><span></span>{scale.ticks()}<span></span></div>'
    return f'<div class="question"><h3>{text(spaced(title[:1].upper() + title[1:]))}</h3>{rows}{foot}</div>'


def _row(one: Found, name: str, bar: str) -> str:
    words = f"<b>{shortened(name)}</b><small>{text(in_short(one))}</small>"
    return f'<div class="row"><div>{words}</div>{bar}{chip(one.verdict)}</div>'


@dataclass(frozen=True)
class _Scale:
    """One scale for all attacks on a question."""

    axis: Axis

    @classmethod
    def of(cls, members: Iterable[Found]) -> _Scale:
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

    def bar(self, one: Found) -> str:
        """What is ruled out as a shaded end, luck as a dotted line, the measurement as a dot with its interval."""
        parts = ['<line class="base" x1="0" x2="100%" y1="14" y2="14"/>']
        if not math.isnan(one.prior):
            parts.append(f'<line class="before" x1="{self.at(one.prior)}" x2="{self.at(one.prior)}" y1="2" y2="26"/>')
        if one.certified is not None:
            limit = float(self.axis.place(one.certified))
            parts.append(
                f'<rect class="beyond" x="{100 * limit:.2f}%" y="2" width="{100 * (1 - limit):.2f}%" height="24"/>'
                f'<line class="bound" x1="{100 * limit:.2f}%" x2="{100 * limit:.2f}%" y1="2" y2="26"/>'
            )
        low, high = one.interval[0], one.interval[1] if math.isfinite(one.interval[1]) else self.axis.high
        state = "measured broken" if one.verdict == REFUTED else "measured"
        parts.append(
            f'<g class="{state}"><line x1="{self.at(low)}" x2="{self.at(high)}" y1="14" y2="14"/>'
            f'<circle cx="{self.at(one.measured)}" cy="14" r="5"/></g>'
        )
        return f'<svg class="beside" role="img" aria-label="{text(_said(one))}">{"".join(parts)}</svg>'

    def ticks(self) -> str:
        marks = []
        for value, words in self.axis.ticks:
            place = float(self.axis.place(value))
            anchor = "start" if place < 0.01 else "end" if place > 0.99 else "middle"
            marks.append(
                f'<line class="rule" x1="{100 * place:.2f}%" x2="{100 * place:.2f}%" y1="0" y2="5"/>'
                f'<text x="{100 * place:.2f}%" y="18" text-anchor="{anchor}">{text(words)}</text>'
            )
        return f'<svg class="beside ticks" aria-hidden="true">{"".join(marks)}</svg>'


def _said(one: Found) -> str:
    low, high = one.interval
    promised = "nothing promised" if one.certified is None else f"bound {neat(one.certified)}"
    return f"measured {neat(one.measured)}, interval {neat(low)} to {neat(high)}, {promised}"


def bar_key(audit: Audited) -> str:
    """What the marks of the bars mean."""
    items = [("dot", "measured", "measured"), ("line", "measured", "95 % interval"), ("line", "before", "by guessing")]
    if any(one.certified is not None for one in audit.findings):
        promised = "certified bound" if audit.certificate is not None else "claimed bound"
        items += [("line", "bound", promised), ("box", "beyond", "what it rules out")]
    return key(items)


def recognition(audit: Audited) -> str:
    """Participants recognised over others wrongly accused, both logarithmic; empty where no attack measured it."""
    found = [one for one in audit.findings if is_recognition(one)]
    if not found:
        return ""
    ticks = tuple((10.0**k, f"{100 * 10.0**k:g} %") for k in range(-3, 1))
    chart = Chart(
        Axis("others wrongly accused", LEAST, 1.0, ticks, log=True),
        Axis("participants recognised", LEAST, 1.0, ticks, log=True),
    )
    alarms = np.geomspace(LEAST, 1, 241)
    allowed = alarms if audit.certificate is None else np.asarray(audit.certificate.true_positive_rate(alarms))
    keys = [("line", "before", "blind guessing")]
    words = "Each attack was set beforehand to accuse this share of the others. Lines: 95 % intervals."
    if audit.certificate is not None:
        chart.area("between", alarms, alarms, allowed)
        chart.line("bound", alarms, allowed)
        keys.insert(0, ("line", "bound", "certified, at most"))
        words += (
            " To the right: false alarms that it may really have caused. An attack refutes the curve only where it "
            "stays above it to the end of that line."
        )
    chart.line("before", alarms, alarms)
    for rate in sorted({one.prior for one in found}):
        alike = [one for one in found if one.prior == rate]
        best = max(alike, key=lambda one: one.measured)
        for place, one in enumerate(alike):
            x = rate * APART ** (place - (len(alike) - 1) / 2)
            kind = "point broken" if one.verdict == REFUTED else "point best" if one is best else "point"
            low, high = one.interval
            chart.line(f"reach {kind}", [x, x], [max(low, LEAST), max(high, LEAST)])
            if kind != "point" and audit.certificate is not None and one.certified is not None and one.certified < 1:
                # The bound of a finding is the curve at these false alarms.
                worst = float(np.interp(one.certified, allowed, alarms))
                chart.line(f"reach thin {kind}", [x, max(x, worst)], [max(one.measured, LEAST)] * 2)
            chart.points(kind, [x], [max(one.measured, LEAST)], 4.2)
            if one is best:
                chart.note("point-note", x, max(high, LEAST), _about(one.measured), 0, -8, "middle")
    keys += [("dot", "point best", "strongest attack"), ("dot", "point", "other attacks")]
    if any(one.verdict == REFUTED for one in found):
        keys.append(("dot", "point broken", "refuted"))
    label = "Share of participants that each attack recognised, against the share of others it wrongly accused."
    return captioned("Recognising people without false alarms", words, chart.svg(label), key(keys))


def _about(share: float) -> str:
    return f"{neat(100 * share, 3)} %"
