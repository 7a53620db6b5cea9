"""The owner's key: the mask, the order of the labels, and nothing else that a prediction does not need.

Neither the sample nor its mixing is in it. The file is sealed like a checkpoint, and its owner's alone.
"""

from __future__ import annotations

import json
import os
import secrets
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.custody import keys
from leakcap.custody.private_files import read_private, write_private
from leakcap.custody.sealing import SEALED, Seal
from leakcap.errors import InputError
from leakcap.ground.arrays import Floats, Ints
from leakcap.obfuscation.masking import BARE_STEP, masked
from leakcap.obfuscation.models import checked_scores, scores_of
from leakcap.obfuscation.rows import RowRule, numbers
from leakcap.obfuscation.whitening import Whitening

__all__ = ["Key"]

MAGIC = b"leakcap obfuscation key 1\n"
SALT = 32  # bytes
BOUND = b"leakcap obfuscation key"
ROWS_AT_ONCE = 2**22  # numbers of encoded queries in memory


@dataclass(frozen=True, eq=False)
class Key:
    """What the owner keeps: without it the server's model says nothing.

    Attributes:
        id: which encoding it belongs to; the certificate has the same.
        classes: names of the classes, in the owner's order.
    """

    id: str
    classes: tuple[Any, ...]
    rule: RowRule  # how a query comes into the unit ball
    columns: tuple[Ints, ...] = field(repr=False)  # of every block
    mask: tuple[Floats, ...] = field(repr=False)
    order: Ints = field(repr=False)  # the server's column `order[i]` is the owner's class i
    voters: Floats | None = field(default=None, repr=False)  # masked public rows that queries are added to
    recipe: str = ""  # how a file becomes rows, where the command line made them

    def encode(self, X: Any) -> Floats:
        """Queries as the server's model takes them: `(n, mask_dim)`, or `(n, voters, mask_dim)` with public rows."""
        rows = numbers(X, self.wide)
        # On a grid: the same query gives the same numbers, whichever others come with it.
        found = np.rint(masked(self.rule(rows), self.columns, self.mask) / BARE_STEP) * BARE_STEP
        return found if self.voters is None else found[:, None, :] + self.voters

    def decode(self, scores: Any) -> npt.NDArray[Any]:
        """The owner's classes from the server's scores, `(n, classes)`, or `(n, voters, classes)` of voters."""
        given = np.asarray(scores)
        if given.ndim not in (1, 2, 3):
            raise InputError("give the server's scores as the model returned them: a row for every query")
        flat = given if given.ndim == 1 else given.reshape(-1, given.shape[-1])
        owned = checked_scores(flat, len(self.classes), len(flat))[:, self.order]
        return self._named(_elected(owned.reshape(len(given), -1, len(self.classes))))

    def predict(self, model: Any, X: Any) -> npt.NDArray[Any]:
        """The classes of new rows, at the owner's side: nothing leaves."""
        rows = np.asarray(X) if not hasattr(X, "shape") else X
        step = max(1, ROWS_AT_ONCE // self._width)
        parts = [self._predicted(model, rows[start : start + step]) for start in range(0, len(rows), step)]
        return self._named(np.concatenate(parts) if parts else self._predicted(model, rows))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the key to a file of its owner's alone, sealed; an error if there is one already."""
        salt, sealed = secrets.token_bytes(SALT), keys.can_seal()
        closed = Seal(keys.derived_key(salt, sealed), sealed).closed(self._content(), BOUND)
        try:
            write_private(Path(path), MAGIC + salt + closed, exclusive=True)
            return
        except FileExistsError:
            pass
        raise InputError(f"{path} is there already: a key is never overwritten, the model is lost without it")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Key:
        """The key in a file; altered, foreign and readable ones are refused."""
        place = Path(path)
        try:
            if stat.S_IMODE(place.stat().st_mode) & 0o077:
                raise InputError(f"others may read the key {place}: chmod 600 it, and ask who has read it")
            stored = read_private(place)
        except OSError as error:
            stored, reason = b"", f" ({error.strerror})"
        else:
            reason = ""
        if not stored.startswith(MAGIC) or len(stored) < len(MAGIC) + SALT:
            raise InputError(f"{place} is no key of an encoding{reason}: without the key the model says nothing")
        salt, closed = stored[len(MAGIC) :][:SALT], stored[len(MAGIC) + SALT :]
        sealed = closed.startswith(SEALED)
        content = Seal(keys.derived_key(salt, sealed), sealed).opened(closed, BOUND)
        if content is None:
            raise InputError(
                f"{place} does not open: it was changed, or sealed by somebody else's key. Bring it back from a copy, "
                "or set LEAKCAP_KEY to the key that sealed it"
            )
        return cls._of(content)

    @property
    def wide(self) -> int:
        """Columns of a row, before anything is done to it."""
        if self.rule.whitening is not None:
            return len(self.rule.whitening.centre)
        return sum(map(len, self.columns))

    @property
    def _width(self) -> int:
        wide = sum(one.shape[1] for one in self.mask)
        return wide * (1 if self.voters is None else len(self.voters))

    def _predicted(self, model: Any, rows: Any) -> Ints:
        encoded = self.encode(rows)
        scores = scores_of(model, encoded.reshape(-1, encoded.shape[-1]), len(self.classes))[:, self.order]
        return _elected(scores.reshape(len(encoded), -1, len(self.classes)))

    def _named(self, codes: Ints) -> npt.NDArray[Any]:
        return np.asarray(self.classes)[codes]

    def _content(self) -> bytes:
        blocks = [block.tolist() for block in self.columns]
        head = {
            "id": self.id,
            "classes": list(self.classes),
            "norm": self.rule.norm,
            "scale": self.rule.scale,
            "columns": blocks,
            "block_dim": self.mask[0].shape[1],
            "order": self.order.tolist(),
            "voters": None if self.voters is None else len(self.voters),
            "recipe": self.recipe,
        }
        arrays = [*self.mask, *(() if self.voters is None else (self.voters,))]
        if self.rule.whitening is not None:
            head["whitened"] = list(self.rule.whitening.turn.shape)
            arrays += [self.rule.whitening.centre, self.rule.whitening.turn]
        return json.dumps(head).encode() + b"\n" + b"".join(np.asarray(one, dtype="<f8").tobytes() for one in arrays)

    @classmethod
    def _of(cls, content: bytes) -> Key:
        """From what was sealed: nobody else can have written it."""
        line, _, body = content.partition(b"\n")
        head = json.loads(line)
        values = np.frombuffer(body, dtype="<f8").astype(np.float64)
        columns = tuple(np.asarray(block, dtype=np.intp) for block in head["columns"])
        wide, mask, start = head["block_dim"], [], 0
        for block in columns:
            mask.append(values[start : start + len(block) * wide].reshape(len(block), wide))
            start += len(block) * wide
        voters = None
        if head["voters"] is not None:
            end = start + head["voters"] * wide * len(columns)
            voters, start = values[start:end].reshape(head["voters"], -1), end
        whitening = None
        if "whitened" in head:  # in keys of encoders that whiten
            given, kept = head["whitened"]
            whitening = Whitening(values[start : start + given], values[start + given :].reshape(given, kept))
        return cls(
            head["id"],
            tuple(head["classes"]),
            RowRule(head["norm"], head["scale"], whitening),
            columns=columns,
            mask=tuple(mask),
            order=np.asarray(head["order"], dtype=np.intp),
            voters=voters,
            recipe=head["recipe"],
        )

    def __reduce__(self) -> Any:
        raise InputError("a key is not pickled: save() seals it")


def _elected(scores: Floats) -> Ints:
    """The class with the most votes, `(n, voters, classes)`; of several the one with the most score."""
    if scores.shape[1] == 1:
        return np.asarray(scores[:, 0].argmax(axis=1))
    votes = np.eye(scores.shape[2])[scores.argmax(axis=2)].sum(axis=1)
    total = scores.sum(axis=1)
    spread = np.ptp(total, axis=1, keepdims=True)
    tie = (total - total.min(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1.0)
    return np.asarray((votes + tie / 2).argmax(axis=1))
