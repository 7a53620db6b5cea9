"""The page of privatised labels: what was done to them, and what anybody can learn about one of them at most.

One file without scripts or outside references, and a pure function of its arguments.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from leakcap.report import dots
from leakcap.report.chart import Axis, Chart, key, log_chances
from leakcap.report.markup import bullets, paragraph, section, shortened, table, text
from leakcap.report.numbers import bound, of_hundred
from leakcap.report.page import _document
from leakcap.report.pictures import captioned
from leakcap.report.style import STYLE
from leakcap.report.words import UNBROKEN, in_short
from leakcap.wording import rounded_up

if TYPE_CHECKING:
    from leakcap.label_certificate import LabelCertificate

__all__ = ["Labelled", "attacks", "label_page"]

MOST = 24  # names in one line
PRIORS = (0.5, 0.9, 0.99)


@dataclass(frozen=True)
class Labelled:
    """The file that holds the privatised labels, in words; public side."""

    title: str
    file: str
    columns: tuple[str, ...]
    holds: str  # what the columns hold, and how to read them
    code: str  # a few lines that learn from it
    issuer: str = ""


def label_page(certificate: LabelCertificate, labelled: Labelled) -> str:
    """A whole HTML document for everybody: facts of the certificate and of the file, nothing else."""
    parts = (
        _heading(certificate, labelled),
        _first_screen(certificate),
        section("What the attacker can do", _attack_table(certificate), anchor="attacks"),
        section("In pictures", f'<div class="pictures">{_rare(certificate)}{_likely(certificate)}</div>'),
        section("The labels, and how to learn from them", *_file(certificate, labelled), anchor="file"),
        section("Not promised, in full", bullets(certificate.not_promised), anchor="not-promised"),
        section("Assumed", bullets(certificate.assumptions)),
        section("How the labels were privatised", _facts(certificate)),
        f"<footer>leakcap {text(certificate.leakcap_version)}. Figures that bound the attacker are rounded up. "
        "The proofs named above are in the folder docs/proofs of leakcap.</footer>",
    )
    return _document(labelled.title, "", "\n".join(parts), STYLE + LABEL_STYLE)


def attacks(cert: LabelCertificate) -> list[tuple[str, float, float]]:
    """What an attacker may try, its chance without the observations, and the bound on its chance with them."""
    named = (f"name one label, {_knowing(cert)} before", cert.prior_success, cert.guess_success)
    return [named, *((f"any question about it, {100 * p:g} % before", p, cert.posterior(p)) for p in PRIORS)]


def _heading(cert: LabelCertificate, labelled: Labelled) -> str:
    kind = "leakcap certificate of private labels" + (f" · issued by {labelled.issuer}" if labelled.issuer else "")
    return (
        f'<header><p class="kicker">{text(kind)}</p><h1>{text(labelled.title)}</h1>'
        f'<p class="lead">{text(_headline(cert))}</p></header>'
    )


def _headline(cert: LabelCertificate) -> str:
    """How much better one label can be named. It never says how well: features may tell much beforehand."""
    words = (
        f"Whoever names a person's label with {_before(cert.prior_success)} success before, {_knowing(cert)}, does so "
        f"with at most {bound(cert.guess_success)} after reading this file; whoever had 50 %, thanks to the features "
        f"or otherwise, with at most {bound(cert.posterior(0.5))}."
    )
    runs = int(dict(cert.settings).get("runs", 1))
    counted = f" All {runs} times that these labels were privatised are counted." if runs > 1 else ""
    loss = f"Differential privacy of each label: {cert.loss}."
    return f"{words}{counted} {loss}".replace(" %", f"{UNBROKEN}%").replace(" = ", f"{UNBROKEN}={UNBROKEN}")


def _knowing(cert: LabelCertificate) -> str:
    return "knowing the classes alone" if cert.prior_is_even else "knowing the stated prior"


def _first_screen(cert: LabelCertificate) -> str:
    done = (
        f"Everything but the labels is known. Each of {cert.labels:,} labels was replaced by an observation, drawn at "
        "random by chances that depend on that label alone. Only the observations leave."
    )
    meant = (
        "Anybody, and the worst is assumed: they know all features, every other label, the chances, the observations "
        "and whatever is computed from them. They compute without limit. Only the one label that they are asked for is "
        "hidden from them."
    )
    lines = [in_short(line) for line in cert.not_promised]
    return "\n".join(
        (
            '<div class="screen">',
            '<div class="told">',
            f'<div class="card"><h2>The game: what was done</h2>{paragraph(done)}</div>',
            f'<div class="card"><h2>The attacker: who is meant</h2>{paragraph(meant)}</div>',
            "</div>",
            _compared(cert),
            f'<div class="card wide"><h2>What is not promised</h2>{bullets(lines)}</div>',
            "</div>",
        )
    )


def _compared(cert: LabelCertificate) -> str:
    """Before and after, as figures and as a hundred dots each."""
    luck, right = math.floor(100 * cert.prior_success + 1e-9), of_hundred(cert.guess_success)
    known = _knowing(cert)
    return "\n".join(
        (
            '<div class="card compare">',
            f"<p><b>“What is this person's label?”</b> How many of 100 guesses are right, {known} before:</p>",
            f'<div class="side"><h2>Before</h2><p class="figure"><small>best guess</small> '
            f"{_before(cert.prior_success)}</p>",
            f'<p class="count">{luck} of 100</p>',
            dots.grid(luck, 0, f"Before: {luck} of 100 guesses are right, {known}."),
            '</div><div class="side after"><h2>After</h2>',
            f'<p class="figure"><small>at most</small> {bound(cert.guess_success)}</p>',
            f'<p class="count">at most {right} of 100</p>',
            dots.grid(luck, right - luck, f"After: at most {right} of 100 guesses are right, {luck} of them before."),
            "</div>",
            dots.key(right > luck, "at most"),
            "</div>",
        )
    )


def _attack_table(cert: LabelCertificate) -> str:
    rows = [
        (text(what[:1].upper() + what[1:]).replace(" %", f"{UNBROKEN}%"), _before(before), f"<b>{bound(after)}</b>")
        for what, before, after in attacks(cert)
    ]
    nats = f"<b>{rounded_up(cert.mutual_information, 4):.4f}</b>"
    rows.append(("Information about one label, in nats (1 nat is 1.44 yes-or-no answers)", "0", nats))
    return table(("What the best attacker may try", "before", "after, at most"), rows, "attacks") + paragraph(
        "“Any question” is one whose best answer is right with the chance stated before: “is the label this one?”, "
        "asked about a person of whom the attacker knows much already.",
        "small",
    )


def _rare(cert: LabelCertificate) -> str:
    low = 1e-3
    chances = np.geomspace(low, 1, 121)
    axes = log_chances("chance of a right guess before", low), log_chances("after, at most", low)
    words = "A label that the attacker thought unlikely. The nearer to the dotted line, the less leaks."
    return captioned("Rare labels", words, _curve(cert, chances, axes))


def _likely(cert: LabelCertificate) -> str:
    ticks = tuple((share / 100, f"{share} %") for share in range(0, 101, 20))
    axes = Axis("chance of a right guess before", 0.0, 1.0, ticks), Axis("after, at most", 0.0, 1.0, ticks)
    words = "The same bound on an even scale: what is nearly known already can hardly become clearer."
    keys = key((("line", "bound", "any question, after, at most"), ("line", "before", "before")))
    return captioned("Likely labels", words, _curve(cert, np.linspace(0, 1, 101), axes), keys)


def _curve(cert: LabelCertificate, chances: np.ndarray, axes: tuple[Axis, Axis]) -> str:
    found = np.array([cert.posterior(float(p)) for p in chances])
    chart = Chart(*axes)
    chart.area("between", chances, chances, found)
    chart.line("before", chances, chances)
    chart.line("bound", chances, found)
    at = 0.01 if axes[0].log else 0.5
    reached = cert.posterior(at)
    chart.points("bound-point", [at], [reached], 4)
    chart.note("bound-note", at, reached, f"{100 * at:g} % → {bound(reached)}", -8, -8, "end")
    return chart.svg("Curve of at most what any guess about one label achieves, against its chance before.")


def _file(cert: LabelCertificate, labelled: Labelled) -> list[str]:
    entries = {
        "File": text(labelled.file),
        "Rows": f"{cert.labels:,}, in their old order; all other columns are as they were",
        "Columns of labels": _names(labelled.columns),
        "Classes": _names(cert.classes),
        "They hold": text(labelled.holds),
    }
    told = (
        "Everything learnt from the observations is as private as they are, and costs nothing more: train as often as "
        "you like. Taking them for the labels themselves would teach a model the noise too; Bayes' rule takes it out:"
    )
    return [_list(entries), paragraph(told), f"<pre><code>{text(labelled.code)}</code></pre>"]


def _facts(cert: LabelCertificate) -> str:
    settings = ", ".join(f"{name.replace('_', ' ')} {value:.6g}" for name, value in cert.settings)
    shares = ", ".join(f"{p:.4g}" for p in cert.prior[:MOST]) + (" …" if len(cert.prior) > MOST else "")
    entries = {
        "Mechanism": text(cert.mechanism),
        "Settings": text(settings or "none beyond epsilon"),
        "Differential privacy": text(f"{cert.loss}, for each label"),
        "Prior of the first line": "even" if cert.prior_is_even else text(shares),
        "Randomness": "whole-number chances out of 2<sup>64</sup>, drawn from the operating system",
        "Confidence": "certain: nothing was sampled to certify it",
        "Proofs": text(", ".join(cert.theorems)),
    }
    return _list(entries)


def _list(entries: dict[str, str]) -> str:
    return f"<dl>{''.join(f'<dt>{text(name)}</dt><dd>{value}</dd>' for name, value in entries.items())}</dl>"


def _names(names: tuple[str, ...]) -> str:
    shown = ", ".join(f"<code>{shortened(name)}</code>" for name in names[:MOST])
    return shown + (f" and {len(names) - MOST:,} more" if len(names) > MOST else "")


def _before(share: float) -> str:
    """A chance that the attacker had anyway, rounded down."""
    return f"{math.floor(share * 1e4 + 1e-9) / 100:.2f}".removesuffix(".00") + " %"


LABEL_STYLE = """
.leakcap pre{background:var(--card);border-radius:10px;padding:13px 17px;margin:0 0 10px;overflow-x:auto;font-size:14px;
 line-height:1.45}
.leakcap code{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:.94em}
.leakcap .side .figure small{display:block}
@media print{.leakcap pre{white-space:pre-wrap}}
"""
