"""Links from code to the proofs it relies on.

`@proves("leakage-curve")` names `docs/proofs/leakage-curve.md`; a test fails when that page is missing or
names no test. Certificates list the theorems by these names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["claims", "proves"]

F = TypeVar("F", bound=Callable[..., object])

_claims: dict[str, set[str]] = {}


def proves(*pages: str) -> Callable[[F], F]:
    """Say which proof pages a function's claim rests on."""

    def mark(function: F) -> F:
        where = f"{function.__module__}.{function.__qualname__}"
        for page in pages:
            _claims.setdefault(page, set()).add(where)
        return function

    return mark


def claims() -> dict[str, frozenset[str]]:
    """Every proof page named so far, with the functions that rest on it."""
    return {page: frozenset(users) for page, users in _claims.items()}
