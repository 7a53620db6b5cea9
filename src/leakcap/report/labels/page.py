"""The page of privatised labels: what was done to them, and what anybody can learn about one of them at most.

One file without scripts or outside references, and a pure function of its arguments.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from leakcap.certificates.labels import LabelCertificate
from leakcap.certificates.text import rounded_up
from leakcap.report.chart import Axis, Chart, captioned, key, log_chances
from leakcap.report.compared import Compared
from leakcap.report.html import Markup, joined, markup, render, shortened
from leakcap.report.numbers import UNBROKEN, bound, unbroken
from leakcap.report.words import ATTACK_HEADS, check_it, first_clause, signature

__all__ = ["Labelled", "attacks", "label_fragment", "label_page"]

MOST_NAMES = 24  # in one line
PRIORS = (0.5, 0.9, 0.99)
TITLE = "Certificate of private labels"
GAME = (
    "Everything but the labels is known. Each of {:,} labels was replaced by an observation, drawn at random by "
    "chances that depend on that label alone. Only the observations leave."
)
ATTACKER = (
    "Anybody, and the worst is assumed: they know all features, every other label, the chances, the observations and "
    "whatever is computed from them. They compute without limit. Only the one label that they are asked for is hidden "
    "from them."
)
SUMS_GAME = (
    "Everything but the labels is known. The rows of {:,} labels, shortened to one public length, were summed by "
    "class, and normal noise was added to the sums, once. Only the noised sums leave."
)
SUMS_ATTACKER = (
    "Anybody, and the worst is assumed: they know all features, every other label, how the noise was drawn, the noised "
    "sums and whatever is computed from them. They compute without limit. Only the one label that they are asked for "
    "is hidden from them."
)
LEARN = "Learn from the observations by Bayes' rule: none of them is to be taken for a label."
SUMS_LEARN = (
    "Compute from the noised sums, or predict by the model made of them, as often as you like: it costs nothing."
)
VOTES_GAME = (
    "Everything but the labels is known. The rows of {:,} labels were cut into parts; a teacher learnt from the labels "
    "of each, and how many of them name each class for some rows was noised. Only the answers leave."
)
VOTES_ATTACKER = (
    "Anybody, and the worst is assumed: they know all features, every other label, the parts, how votes were noised, "
    "the answers and whatever is computed from them. They compute without limit. Only the one label that they are "
    "asked for, and the teachers, are hidden from them."
)
VOTES_LEARN = "Learn from the answers, or predict by the student, as often as you like: it costs nothing."
SUMS_THEN_VOTES_GAME = (
    "Everything but the labels is known. The rows of {:,} labels were summed by class, with noise. They were cut into "
    "parts; a teacher learnt from the labels of each and from the noised sums, and how many of them name each class "
    "for some rows was noised. Only the noised sums and the answers leave."
)
SUMS_THEN_VOTES_ATTACKER = VOTES_ATTACKER.replace("the answers", "the noised sums, the answers")
SUMS_THEN_RESPONSES_GAME = (
    "Everything but the labels is known. The rows of {:,} labels were summed by class, with noise. Then each label was "
    "replaced by what was observed of it, drawn by chances that depend on that label and on the noised sums alone. "
    "Only the noised sums and the observations leave."
)
SUMS_THEN_RESPONSES_ATTACKER = ATTACKER.replace("the observations", "the noised sums, the observations")
WORDS = {
    "observations": (GAME, ATTACKER, LEARN),
    "noised sums": (SUMS_GAME, SUMS_ATTACKER, SUMS_LEARN),
    "answers": (VOTES_GAME, VOTES_ATTACKER, VOTES_LEARN),
    "noised sums and answers": (SUMS_THEN_VOTES_GAME, SUMS_THEN_VOTES_ATTACKER, VOTES_LEARN),
    "noised sums and observations": (SUMS_THEN_RESPONSES_GAME, SUMS_THEN_RESPONSES_ATTACKER, LEARN),
}
FILE_TITLES = {"observations": "The labels, and how to learn from them"}
MODEL_TITLE = "The model, and how to use it"
BAYES = (
    "Everything learnt from the observations is as private as they are, and costs nothing more: train as often as you "
    "like. Taking them for the labels themselves would teach a model the noise too; Bayes' rule takes it out:"
)
FILE_WORDS = {
    "observations": BAYES,
    "noised sums": "Everything computed from the noised sums is as private as they are, and costs nothing more. These "
    "lines predict by the model:",
    "answers": "Everything learnt from the answers is as private as they are, and costs nothing more. These lines "
    "teach a student:",
    "noised sums and answers": "Everything learnt from the noised sums and the answers is as private as they are, and "
    "costs nothing more. These lines teach a student:",
    "noised sums and observations": BAYES.replace("the observations is", "the noised sums and the observations is"),
}
ANY_QUESTION = (
    "“Any question” is one whose best answer is right with the chance stated before: “is the label this one?”, asked "
    "about a person of whom the attacker knows much already."
)


@dataclass(frozen=True)
class Labelled:
    """The file that holds the privatised labels, or a model learnt from them, in words; public side."""

    title: str
    file: str
    columns: tuple[str, ...]  # of labels; or of a model's features
    holds: str  # what the columns or the model's files hold, and how to read them
    code: str  # a few lines that learn from it
    issuer: str = ""


def label_page(certificate: LabelCertificate, labelled: Labelled | None = None, signed_with: str = "") -> str:
    """A whole HTML document for everybody: facts of the certificate and of the file, if any, nothing else."""
    return render(
        "labels/page.html",
        **_first(certificate, labelled, signed_with),
        signature=signature(signed_with),
        cert=certificate,
        pictures=joined((_rare(certificate), _likely(certificate))),
        file=None if labelled is None else _file(certificate, labelled),
        file_title=FILE_TITLES.get(certificate.leaves, MODEL_TITLE),
        file_words=FILE_WORDS[certificate.leaves],
        code="" if labelled is None else labelled.code,
        method_title="How the labels were privatised",
        method_facts=_method(certificate),
    )


def label_fragment(certificate: LabelCertificate) -> str:
    """A part of a notebook: before and after, the table, the limits, and the whole in words."""
    return render("certificate_fragment.html", **_first(certificate, None), words=str(certificate))


def attacks(cert: LabelCertificate) -> list[tuple[str, float, float]]:
    """What an attacker may try, its chance without the observations, and the bound on its chance with them."""
    named = (f"name one label, {_knowing(cert)} before", cert.prior_success, cert.guess_success)
    return [named, *((f"any question about it, {100 * p:g} % before", p, cert.posterior(p)) for p in PRIORS)]


def _first(cert: LabelCertificate, labelled: Labelled | None, signed_with: str = "") -> dict[str, Any]:
    """The promise in one sentence, before and after, what an attacker may try, and the limits."""
    game, attacker, learn = WORDS[cert.leaves]
    issued = f" · issued by {labelled.issuer}" if labelled and labelled.issuer else ""
    return {
        "title": labelled.title if labelled else TITLE,
        "kicker": f"leakcap certificate of private labels{issued} · {'signed' if signed_with else 'unsigned'}",
        "warning": None,
        "lead": _headline(cert, "reading this file" if labelled else _seen(cert)),
        "told": [("The game: what was done", [game.format(cert.labels)]), ("The attacker", [attacker])],
        "card": _compared(cert),
        "attack_heads": ATTACK_HEADS,
        "attack_note": ANY_QUESTION,
        "attack_rows": _attack_rows(cert),
        "limits": [first_clause(line) for line in cert.not_promised],
        "next_steps": [learn, check_it(signed_with)],
    }


def _seen(cert: LabelCertificate) -> str:
    return f"seeing the {cert.leaves}"


def _headline(cert: LabelCertificate, seen: str) -> str:
    """How much better one label can be named. It never says how well: features may tell much beforehand."""
    words = (
        f"Nobody who names a person's label with {_before(cert.prior_success)} success before, {_knowing(cert)}, does "
        f"so with more than {bound(cert.guess_success)} after {seen}; nobody who had 50 %, thanks to the features or "
        f"otherwise, with more than {bound(cert.posterior(0.5))}."
    )
    runs = int(dict(cert.settings).get("runs", 1))
    counted = f" All {runs} times that these labels were privatised are counted." if runs > 1 else ""
    loss = f"Differential privacy of each label: {cert.loss}."
    return unbroken(f"{words}{counted} {loss}").replace(" = ", f"{UNBROKEN}={UNBROKEN}")


def _knowing(cert: LabelCertificate) -> str:
    return "knowing the classes alone" if cert.prior_is_even else "knowing the stated prior"


def _compared(cert: LabelCertificate) -> Compared:
    known = _knowing(cert)
    return Compared(
        question="“What is this person's label?”",
        asked=f"How many of 100 guesses are right, {known} before",
        before_word="best guess",
        before=_before(cert.prior_success),
        prior=cert.prior_success,
        success=cert.guess_success,
        at_most="at most",
        knowing=known,
        anyway="before",
    )


def _attack_rows(cert: LabelCertificate) -> list[tuple[str, str, Markup]]:
    rows = [
        (unbroken(what[:1].upper() + what[1:]), _before(before), markup("<b>{}</b>", bound(after)))
        for what, before, after in attacks(cert)
    ]
    nats = markup("<b>{:.4f}</b>", rounded_up(cert.mutual_information, 4))
    return [*rows, ("Information about one label, in nats (1 nat is 1.44 yes-or-no answers)", "0", nats)]


def _rare(cert: LabelCertificate) -> Markup:
    low = 1e-3
    chances = np.geomspace(low, 1, 121)
    axes = log_chances("chance of a right guess before", low), log_chances("after, at most", low)
    words = "A label that the attacker thought unlikely. The nearer to the dotted line, the less leaks."
    return captioned("Rare labels", words, _curve(cert, chances, axes))


def _likely(cert: LabelCertificate) -> Markup:
    ticks = tuple((share / 100, f"{share} %") for share in range(0, 101, 20))
    axes = Axis("chance of a right guess before", 0.0, 1.0, ticks), Axis("after, at most", 0.0, 1.0, ticks)
    words = "The same bound on an even scale: what is nearly known already can hardly become clearer."
    keys = key((("line", "bound", "any question, after, at most"), ("line", "before", "before")))
    return captioned("Likely labels", words, _curve(cert, np.linspace(0, 1, 101), axes), keys)


def _curve(cert: LabelCertificate, chances: np.ndarray, axes: tuple[Axis, Axis]) -> Markup:
    found = np.array([cert.posterior(float(p)) for p in chances])
    chart = Chart(*axes)
    chart.area("between", chances, chances, found)
    chart.line("before", chances, chances)
    chart.line("bound", chances, found)
    at = 0.01 if axes[0].log else 0.5
    reached = cert.posterior(at)
    chart.points("bound-point", [at], [reached], 4)
    chart.note("bound-note", at, reached, f"{100 * at:g} % → {bound(reached)}", dx=-8, dy=-8, anchor="end")
    return chart.svg("Curve of at most what any guess about one label achieves, against its chance before.")


def _file(cert: LabelCertificate, labelled: Labelled) -> list[tuple[str, str]]:
    if cert.leaves != "observations":
        return [
            ("File", labelled.file),
            ("Rows", f"{cert.labels:,}, of features that are public"),
            ("Columns of features", _names(labelled.columns)),
            ("Classes", _names(cert.classes)),
            ("It holds", labelled.holds),
        ]
    return [
        ("File", labelled.file),
        ("Rows", f"{cert.labels:,}, in their old order; all other columns are as they were"),
        ("Columns of labels", _names(labelled.columns)),
        ("Classes", _names(cert.classes)),
        ("They hold", labelled.holds),
    ]


def _method(cert: LabelCertificate) -> list[tuple[str, str]]:
    settings = ", ".join(f"{name.replace('_', ' ')} {value:.6g}" for name, value in cert.settings)
    shares = ", ".join(f"{p:.4g}" for p in cert.prior[:MOST_NAMES]) + (" …" if len(cert.prior) > MOST_NAMES else "")
    return [
        ("Mechanism", cert.mechanism),
        ("Settings", settings or "none beyond epsilon"),
        ("Differential privacy", f"{cert.loss}, for each label"),
        ("Prior of the first line", "even" if cert.prior_is_even else shares),
        ("Randomness", markup("whole-number chances out of 2<sup>64</sup>, drawn from the operating system")),
        ("Confidence", "certain: nothing was sampled to certify it"),
        ("Proofs", ", ".join(cert.theorems)),
    ]


def _names(names: tuple[str, ...]) -> Markup:
    listed = joined((markup("<code>{}</code>", shortened(name)) for name in names[:MOST_NAMES]), ", ")
    return listed + (f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else "")


def _before(share: float) -> str:
    """A chance that the attacker had anyway, rounded down."""
    return f"{math.floor(share * 1e4 + 1e-9) / 100:.2f}".removesuffix(".00") + " %"
