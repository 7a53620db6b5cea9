"""A rung of the ladder as files: a later call goes on from a schooled network and spends nothing again."""

from __future__ import annotations

import copy
from pathlib import Path

from reproductions.label_dp.central.encoder import PictureClassifier
from reproductions.label_dp.central.ladder import Ladder, Rung
from reproductions.label_dp.central.releases import Sums
from reproductions.label_dp.central.store import load_weights, save_weights


def save_rung(folder: Path, name: str, rung: Rung) -> None:
    """The network in half precision, what was released for it, and what it cost."""
    save_weights(folder, name, rung.net, facts=rung.facts, sums=[sums.to_record() for sums in rung.sums])


def load_rung(folder: Path, name: str, ladder: Ladder) -> Rung | None:
    """The rung of that name, or None where there is none that fits the ladder's network."""
    net = PictureClassifier(copy.deepcopy(ladder.encoder), ladder.classes)
    found = load_weights(folder, name, net)
    if found is None:
        return None
    sums = tuple(Sums.from_record(record) for record in found["sums"])
    return ladder.rung(net.requires_grad_(False), sums, found["facts"])
