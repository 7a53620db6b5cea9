"""Passwords that nobody has to think of."""

from __future__ import annotations

import secrets

__all__ = ["made_password"]

LETTERS = "abcdefghjkmnpqrstuvwxyz"  # none that looks like another
GROUPS, EACH = 4, 5


def made_password() -> str:
    """20 random letters in groups: 90 bits."""
    return "-".join("".join(secrets.choice(LETTERS) for _ in range(EACH)) for _ in range(GROUPS))
