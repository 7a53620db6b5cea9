"""An encoded set takes the whole account of its pool in the ledger: nothing bounds a second one together with it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from leakcap.custody.contents import contents_prints
from leakcap.custody.fingerprint import fingerprint
from leakcap.custody.ledger import Store, budgets, open_book
from leakcap.custody.ledger.accounts import Opened, checked_name, name_of, open_account
from leakcap.custody.ledger.opened import Open
from leakcap.errors import AlreadyReleased

__all__ = ["PoolAccount"]

ENCODED = (
    "these data were encoded or released before, with a secret of their own, and nothing bounds two secrets together, "
    "with this key or another: keep what was encoded then"
)


class PoolAccount:
    """The account of a pool: open it, look whether it is free, and take it before anything leaves. Custodian side."""

    def __init__(self, ledger: str | Store, name: str | None, rows: Any) -> None:
        version = fingerprint(rows)
        self._name = name_of(version) if name is None else checked_name(str(name))
        self._opened: Opened = open_account(
            open_book(ledger),
            self._name,
            design="release",
            caps=(),
            version=version,
            contents=contents_prints((rows,)),
            named=False,
            other_caps=True,
        )

    def refuse_encoded(self) -> None:
        """AlreadyReleased where something left of this pool before."""
        with self._opened.account.reading() as now:
            _refuse(now)

    def take(self, words: str) -> None:
        """Write down that the pool is encoded now; of two at once, one is refused."""
        with self._opened.account.writing() as now:
            _refuse(now)
            told = {
                "question": words,
                "analyst": "",
                "group": budgets.EVERYBODY,
                "at": datetime.now(UTC).isoformat(timespec="seconds"),
                "numbers": [],
                "pool_made": True,
                "encoded": True,
            }
            now.append("release", told, charge=int(now.state["allowance"]))
        self._opened.account.remember()


def _refuse(now: Open) -> None:
    if any(entry.charge or entry.kind == "alone" for entry in now.entries()):
        raise AlreadyReleased(ENCODED)
