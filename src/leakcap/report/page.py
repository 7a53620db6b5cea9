"""The report as HTML: a page for everybody, a page for the custodian, and a fragment for notebooks.

Each page is one file without scripts or outside references, and a pure function of its arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from leakcap.report.custody import custodian_sections, expected_errors
from leakcap.report.markup import text
from leakcap.report.records import Answer, Custody
from leakcap.report.sections import (
    answer_section,
    attack_table,
    compared,
    details,
    first_screen,
    heading,
    not_promised,
    warning,
)
from leakcap.report.style import KEPT_STYLE, STYLE

if TYPE_CHECKING:
    from leakcap.accuracy import Summary
    from leakcap.certificate import Certificate

__all__ = ["Answer", "Custody", "custodian_page", "fragment", "plan_fragment", "public_page"]

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_BANNER = (
    '<div class="band kept" role="alert"><div><strong>CUSTODIAN ONLY &ndash; do not publish.</strong> '
    "This page shows what the release protects: the answer in every world, and how exposed single "
    "people are.</div></div>"
)


def public_page(certificate: Certificate, answer: Answer | None = None) -> str:
    """A whole HTML document for everybody: facts of the certificate and of the released answer, nothing else."""
    title = "Certificate of a private release" if answer is None else answer.title
    return _document(title, warning(certificate), _public(certificate, answer), STYLE)


def custodian_page(certificate: Certificate, answer: Answer, custody: Custody) -> str:
    """The custodian's document: the truth beside the release, each unit's exposure, the worlds; never published."""
    body = "\n".join(
        (
            f"<header><h1>{text(answer.title)}</h1></header>",
            custodian_sections(certificate, answer, custody),
            "<section><h2>What everybody may see</h2><p>From here on, the content of the public page.</p></section>",
            _public(certificate, answer, "h2"),
        )
    )
    return _document(f"CUSTODIAN ONLY: {answer.title}", _BANNER + warning(certificate), body, STYLE + KEPT_STYLE)


def fragment(certificate: Certificate, answer: Answer | None = None) -> str:
    """A part of a notebook: before and after, the table, the limits. Styles are scoped to it."""
    parts = (
        f'<div class="leakcap fragment"><style>{STYLE}</style>',
        warning(certificate),
        heading(certificate, answer, "h2"),
        f'<div class="screen">{compared(certificate)}</div>',
        "" if answer is None else answer_section(answer),
        f"<h2>What the attacker can do</h2>{attack_table(certificate)}",
        not_promised(certificate),
        '<p class="small">The whole certificate in words: <code>print(certificate)</code>.</p>',
        "</div>",
    )
    return "\n".join(part for part in parts if part)


def plan_fragment(certificate: Certificate, summary: Summary) -> str:
    """The custodian's part of a notebook: what the answer will be worth, before anything is released."""
    parts = (
        f'<div class="leakcap fragment"><style>{STYLE}</style>',
        _BANNER + warning(certificate),
        "<h2>Planned, not released</h2>",
        expected_errors(summary),
        f"<h2>What the attacker will be able to do</h2>{attack_table(certificate)}",
        "</div>",
    )
    return "\n".join(parts)


def _public(certificate: Certificate, answer: Answer | None, tag: str = "h1") -> str:
    parts = (
        heading(certificate, answer, tag),
        first_screen(certificate),
        "" if answer is None else answer_section(answer),
        details(certificate),
    )
    return "\n".join(part for part in parts if part) + (
        f"\n<footer>leakcap {text(certificate.leakcap_version)}. Figures that bound the attacker are rounded up. "
        "The proofs named above are in the folder docs/proofs of leakcap.</footer>"
    )


def _document(title: str, banner: str, body: str, style: str) -> str:
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n<meta name="color-scheme" content="light dark">\n'
        f"<title>{text(title)}</title>\n<style>{style}</style>\n</head>\n"
        f'<body class="leakcap page">\n{banner}\n<main>\n{body}\n</main>\n</body>\n</html>\n'
    )
