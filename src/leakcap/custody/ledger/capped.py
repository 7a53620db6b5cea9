"""The caps of an account as the ledger stores them: in words for people to read, in numbers to go on with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from leakcap.caps import Cap, Membership, MutualInformation, PoolMembership, TruePositiveRate

__all__ = ["are_larger", "caps_now", "caps_then", "in_numbers", "in_words"]

KINDS = {kind.__name__: kind for kind in (Membership, MutualInformation, PoolMembership, TruePositiveRate)}


def in_words(caps: Sequence[Cap]) -> list[str]:
    return [cap.describe() for cap in caps]


def in_numbers(caps: Sequence[Cap]) -> list[dict[str, Any]]:
    """Of caps that a session can have; of others, by which there is a single release, nothing."""
    if not all(type(cap).__name__ in KINDS for cap in caps):
        return []
    return [{"kind": type(cap).__name__, **asdict(cap)} for cap in caps]


def caps_then(title: Mapping[str, Any]) -> tuple[Cap, ...]:
    """With which the account was opened: by these its ticks are counted. Empty where they were not stored."""
    return _made(title.get("capped", ()))


def caps_now(title: Mapping[str, Any], state: Mapping[str, Any]) -> tuple[Cap, ...]:
    """Those, or what they were raised to."""
    return _made(state["capped"]) if "capped" in state else caps_then(title)


def are_larger(caps: Sequence[Cap], before: Sequence[Cap]) -> bool:
    """Whether caps are others, one by one, with limits that are no smaller."""
    return len(caps) == len(before) and all(_is_larger(*pair) for pair in zip(caps, before, strict=True))


def _is_larger(cap: Cap, before: Cap) -> bool:
    same = type(cap) is type(before) and getattr(cap, "fpr", None) == getattr(before, "fpr", None)
    return same and cap.limit >= before.limit


def _made(numbers: Sequence[Mapping[str, Any]]) -> tuple[Cap, ...]:
    return tuple(
        KINDS[one["kind"]](**{name: value for name, value in one.items() if name != "kind"}) for one in numbers
    )
