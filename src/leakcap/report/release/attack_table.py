"""The table of the certificate page: what the best attacker may try, a row for each, and the columns about it.

To add a column, write it in a file of its own (`columns.Column`), import it here and list it in `COLUMNS`.
"""

from __future__ import annotations

from leakcap.certificates import text as wording
from leakcap.certificates.release import Certificate
from leakcap.report.html import Markup, markup
from leakcap.report.numbers import bound, unbroken
from leakcap.report.release.columns import Attempt, Column
from leakcap.report.release.words import at_most

__all__ = ["COLUMNS", "attack_heads", "attack_rows", "strong"]


BEFORE = Column(
    head=lambda cert: "before",
    cell=lambda attempt: attempt.before_words if attempt.before is None else bound(attempt.before),
)
AFTER = Column(
    head=lambda cert: f"after, {at_most(cert)}",
    cell=lambda attempt: strong(attempt.after_words if attempt.after is None else _most(attempt.after)),
)
COLUMNS = (BEFORE, AFTER)
FAR_ABOVE = 0.05
ABOUT_MANY = "(a ceiling over every question anybody could invent, also about many people together)"


def _most(success: float) -> str:
    """A bound; in words where it bounds nothing."""
    return wording.NO_BOUND if success >= 1 else bound(success)


def strong(words: str) -> Markup:
    return markup("<b>{}</b>", words)


def attack_heads(cert: Certificate) -> tuple[str, ...]:
    return ("What the best attacker may try", *(column.head(cert) for column in COLUMNS))


def attack_rows(cert: Certificate) -> list[tuple[str | Markup, ...]]:
    """A row for each attempt: what it is, then the cell of every column."""
    return [(_what(attempt, cert), *(column.cell(attempt) for column in COLUMNS)) for attempt in _attempts(cert)]


def _what(attempt: Attempt, cert: Certificate) -> str | Markup:
    """The attempt, and beside a figure far above the headline its reason."""
    words = unbroken(attempt.what)
    about_all = attempt.what.startswith(("Any question", "Name one", "Tell of everybody"))
    if (
        cert.of_inputs
        or not about_all
        or attempt.after is None
        or not cert.membership_success + FAR_ABOVE <= attempt.after < 1
    ):
        return words
    return markup("{} <small>{}</small>", words, ABOUT_MANY)


def _attempts(cert: Certificate) -> list[Attempt]:
    attempts = [Attempt(what[:1].upper() + what[1:], before, after) for what, before, after in wording.rows(cert)]
    if cert.only_one_person:
        unbounded = "Anything else, also about many people together"
        return [*attempts, Attempt(unbounded, None, None, after_words="not bounded")]
    nats = f"{wording.rounded_up(cert.mutual_information, 4):.4f}"
    information = "Information about the secret, in nats (1 nat is 1.44 yes-or-no answers)"
    return [*attempts, Attempt(information, None, None, before_words="0", after_words=nats)]
