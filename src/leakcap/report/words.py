"""Words that pages of several kinds share."""

from __future__ import annotations

from leakcap.certificates import text
from leakcap.certificates.release import Certificate
from leakcap.report.html import Markup, joined, markup

__all__ = ["ATTACK_HEADS", "check_it", "first_clause", "signature", "warning"]

ATTACK_HEADS = "What the best attacker may try", "before", "after, at most"
LONGEST_CLAUSE = 100  # characters of a line that is meant to be short
CHECK = "leakcap check", "--public certificate.json", "--signer KEY"


def warning(cert: Certificate) -> tuple[str, str] | None:
    """What is cried out over figures that are no guarantee, and why; None over a guarantee."""
    if cert.is_guarantee:
        return None
    cry, _, why = text.title(cert).partition(":")
    why = why.strip()
    return cry, why[:1].upper() + why[1:]


def first_clause(line: str) -> str:
    """What stands before the colon, for a list in short lines."""
    clause = line.split(":", 1)[0].rstrip(".")
    return clause if len(clause) <= LONGEST_CLAUSE else clause[: LONGEST_CLAUSE - 1].rsplit(" ", 1)[0] + " …"


def signature(signed_with: str) -> str:
    """What shows who issued it, and what does not."""
    if not signed_with:
        return (
            "Nothing shows it: the files are unsigned, and anybody can write such files. With the vault extra "
            "installed, leakcap signs what it releases."
        )
    return markup(
        "SHA256SUMS lists the files beside this page, and SHA256SUMS.sig signs that list with the Ed25519 key {}. Ask "
        "the issuer for the public key by another way than this page, and run: {}. A signature proves who issued the "
        "files, not that they are true.",
        *(signed_with, _typed(*CHECK)),
    )


def check_it(signed_with: str) -> str:
    """What a reader does to know who issued it."""
    if signed_with:
        return markup("Check who issued it: {}", _typed(*CHECK))
    return "Ask the issuer whether it is theirs: anybody can write an unsigned page."


def _typed(*parts: str) -> Markup:
    """A command as it is typed: no line ends within a part, so that an option stays in one piece."""
    return markup("<code>{}</code>", joined((markup('<span class="whole">{}</span>', part) for part in parts), " "))
