"""How the tables of older ledgers become those of today.

`STEPS[v]` holds the statements that make tables of version `v + 1` out of those of version `v`, with BYTES and WHOLE as
in `tables`. All steps are one transaction: a ledger is of one version or of the other. Sealed contents are not touched:
a step must leave every entry's bytes as they are, or its head fits no more.
"""

from __future__ import annotations

from collections.abc import Mapping

from leakcap.custody.ledger.store import VERSION

__all__ = ["STEPS", "steps_after"]

STEPS: dict[int, tuple[str, ...]] = {}  # version 1 is the first that there is


def steps_after(version: int, steps: Mapping[int, tuple[str, ...]]) -> list[str] | None:
    """All statements from a version to today's; None where one of the versions between is not known."""
    versions = range(version, VERSION)
    if not all(one in steps for one in versions):
        return None
    return [statement for one in versions for statement in steps[one]]
