"""What the audit of a distilled model needs: the model, and the rows that its teachers were taught. Custodian side.

Votes are of teachers that are not kept: whoever attacks them teaches again, with other coins. All of it lies sealed in
the custodian's folder of the release.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leakcap.custody.vault import Vault
from leakcap.errors import InputError
from leakcap.tables.distilled import DistilledQuestion

if TYPE_CHECKING:
    from leakcap.estimators import Distilled

__all__ = ["KeptVotes"]

ROWS, MODEL = "rows", "model"
OF_AUDITS = "rows_per_unit"  # the one option that an audit needs: others say where a ledger lies


@dataclass(frozen=True)
class KeptVotes:
    """A distilled model and its rows, in one sealed file."""

    vault: Vault

    @classmethod
    def of(cls, folder: Path, question: DistilledQuestion) -> KeptVotes:
        """Keep the rows, before anything is spent: a disk that is full says so in time."""
        kept = cls(Vault.open(folder))
        whose = () if question.unit is None else (question.unit,)
        kept.vault.write(ROWS, pickle.dumps((question.features, question.target, *whose)))
        return kept

    def add(self, model: Distilled) -> None:
        """Keep the model, once it is fitted."""
        options = {name: value for name, value in (model.options or {}).items() if name == OF_AUDITS}
        settings = model.get_params(deep=False) | {"options": options}
        kept = type(model)(**settings)
        kept.estimator_, kept.certificate_ = model.estimator_, model.certificate_
        self.vault.write(MODEL, pickle.dumps(kept))

    @classmethod
    def stored(cls, folder: Path) -> tuple[Distilled, tuple[Any, ...]]:
        """The model, and its rows, classes and whose rows they are."""
        vault = Vault.existing(folder)
        model, rows = vault.read(MODEL), vault.read(ROWS)
        if model is None or rows is None:
            raise InputError(f"{folder} holds no model: its release was cut off, run the command again in a new folder")
        return pickle.loads(model), pickle.loads(rows)
