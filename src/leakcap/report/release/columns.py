"""What a column of the certificate page is made of: a head, and a cell for each thing that an attacker may try."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from leakcap.certificates.release import Certificate
from leakcap.report.html import Markup

__all__ = ["Attempt", "Column"]


@dataclass(frozen=True)
class Attempt:
    """What an attacker may try: success without the release and with it, or words where it is not a success rate."""

    what: str
    before: float | None
    after: float | None
    before_words: str = ""
    after_words: str = ""


@dataclass(frozen=True)
class Column:
    """A column of the table: its head on the page of a certificate, and what it says of an attempt."""

    head: Callable[[Certificate], str]
    cell: Callable[[Attempt], str | Markup]
