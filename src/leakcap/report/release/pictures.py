"""Pictures of the public page: what any attacker can do with the release."""

from __future__ import annotations

import numpy as np

from leakcap.certificates.inputs_text import likeliest, named
from leakcap.certificates.release import Certificate
from leakcap.report.chart import Chart, captioned, key, log_chances
from leakcap.report.html import Markup
from leakcap.report.numbers import bound
from leakcap.report.release.words import at_most

__all__ = ["leakage_picture", "roc_picture"]


def leakage_picture(cert: Certificate) -> Markup:
    """The chance of any guess with the release, over its chance without."""
    low = 1e-3
    measured = [prior for prior, _ in cert.leakage_curve if prior >= low]
    chances = np.sort(np.concatenate([np.geomspace(low, 1, 121), measured]))
    certified = cert.posterior(chances)
    chart = Chart(log_chances("chance of a right guess without the release", low), log_chances("with the release", low))
    chart.area("between", chances, chances, certified)
    chart.line("before", chances, chances)
    chart.line("bound", chances, certified)
    before, success, asked = 0.5, cert.membership_success, "“did this person take part?”"
    if cert.of_inputs:
        before, success, asked = likeliest(cert), named(cert), "“which input was used?”"
    chart.line("leader", [max(before, low)] * 2, [success, 0.08])
    chart.diamond("person", max(before, low), success)
    chart.note("person-note", 1, 0.06, f"{bound(before)} → {bound(success)}", anchor="end")
    keys = key(
        (
            ("line", "bound", f"any guess, with the release, {at_most(cert)}"),
            ("line", "before", "without the release"),
            ("diamond", "person", asked),
        )
    )
    about = "the input" if cert.of_inputs else "who took part"
    words = f"Any guess about {about}, by the best possible attacker. The nearer to the dotted line, the less leaks."
    label = f"Curve of {at_most(cert)} what any guess achieves with the release, against its chance without."
    return captioned("Whatever is asked", words, chart.svg(label), keys)


def roc_picture(cert: Certificate) -> Markup:
    """Participants recognised, over others wrongly accused; both scales logarithmic."""
    low = 1e-4
    alarms = np.geomspace(low, 1, 121)
    found = cert.true_positive_rate(alarms)
    chart = Chart(log_chances("others wrongly accused", low), log_chances("participants recognised", low))
    chart.area("between", alarms, alarms, found)
    chart.line("before", alarms, alarms)
    chart.line("bound", alarms, found)
    for fpr in (0.001, 0.01):
        share = cert.true_positive_rate(fpr)
        chart.points("bound-point", [fpr], [share], 4)
        chart.note("bound-note", fpr, share, bound(share), dx=-6, dy=-8, anchor="end")
    keys = key((("line", "bound", f"best attacker, {at_most(cert)}"), ("line", "before", "blind guessing")))
    words = "An attacker who accuses few people wrongly can recognise few participants. For the most exposed person."
    label = f"Curve of the participants {at_most(cert)} recognised, against the share of others wrongly accused."
    return captioned("Recognising people without false alarms", words, chart.svg(label), keys)
