"""Ids of secrets and data sets: random numbers that say which certificates belong together, and nothing else.

They are drawn, never computed: an id made of the data or of the secret would let anybody check a guess at them.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from typing import Any

__all__ = ["DrawnIds", "drawn_id", "is_drawn_id"]


@dataclass(frozen=True)
class DrawnIds:
    """The ids of a plan, shared by its recaps and its parts."""

    secret: str
    data: str

    @classmethod
    def draw(cls) -> DrawnIds:
        return cls(drawn_id(), drawn_id())


def drawn_id() -> str:
    """128 bits of the operating system, in hexadecimal digits."""
    return secrets.token_hex(16)


def is_drawn_id(value: Any) -> bool:
    """Whether it has the form of one."""
    return isinstance(value, str) and re.fullmatch(r"[0-9a-f]{32}", value) is not None
