"""What a run of sums leaves in its checkpoint, so that its certificate can be checked without the data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from leakcap.custody.checkpoint import Checkpoint
from leakcap.errors import InputError
from leakcap.kernels.blocks import Blocks, InBlocks
from leakcap.kernels.bounded import Bounded
from leakcap.kernels.contributions import Contributions
from leakcap.planning.finishing import Finishing
from leakcap.planning.request import Request, stream
from leakcap.simulate import Outputs
from leakcap.worlds import Units, Worlds, fair_bits

__all__ = ["Brings", "StoredSums", "keep_sums", "kept_sums"]

Brings: TypeAlias = Contributions | Bounded | InBlocks | None  # to a sum over people; of any other function, None
MOST = 2**28  # bytes of what people bring: more than that is not written twice
NAME = "sums"


def keep_sums(stored: Checkpoint | None, request: Request, brings: Brings, outputs: Outputs) -> None:
    """Store what everybody brings, without what is made of it; nothing for any other function."""
    if stored is None or brings is None or request.design not in ("bits", "pool") or stored.committed() is not None:
        return
    if isinstance(brings, InBlocks):
        of = Blocks(_gone, brings.of.blocks, brings.of.low, brings.of.high)
        plain: Brings = InBlocks(of, (), Units(0, 0), np.empty(0, dtype=np.intp))
    else:
        plain = replace(brings, finish=None if brings.finish is None else _gone)  # type: ignore[arg-type]
        if brings.values.nbytes > MOST:
            return
    stored.keep(NAME, (request, plain, outputs))


@dataclass(frozen=True, eq=False)
class StoredSums:
    """A run of sums, as its checkpoint knows it."""

    request: Request
    brings: Brings
    worlds: Worlds  # the coins that error bars are made with, or everybody
    outputs: Outputs
    finishing: Finishing | None  # refuses: what is made of sums is the user's, and is not stored


def kept_sums(stored: Checkpoint) -> StoredSums | None:
    """What `keep_sums` stored, or None."""
    held = stored.kept(NAME)
    if held is None:
        return None
    request, brings, outputs = held
    worlds = Worlds.everybody(request.units)
    if request.design == "bits":
        worlds = fair_bits(request.units, len(outputs.table), stream(stored.entropy, 0, 1))
    made = isinstance(brings, InBlocks) or brings.finish is not None
    return StoredSums(
        request, brings, worlds, outputs, finishing=Finishing(_gone, outputs.node, outputs.table) if made else None
    )


def _gone(*_: Any) -> Any:
    raise InputError("this needs the data and the function: call plan() with them and this checkpoint")
