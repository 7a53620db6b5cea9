"""What is said to the server, and how its model comes back: plain numbers, never a file that runs its code."""

from __future__ import annotations

import zipfile
import zlib
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from leakcap.certificates.obfuscation import EncodingFacts
from leakcap.errors import InputError
from leakcap.ground.arrays import Floats
from leakcap.obfuscation.state_dict import ENDINGS, layers_of_torch

__all__ = ["LayeredModel", "advice"]

MOST_BYTES = 2**31  # of a model, unpacked
ADVICE = """How to train on this encoded set
=================================

features.npy  {rows:,} x {columns:,} numbers
labels.npy    {rows:,} x {classes:,} shares of classes: a half for each of two, or 1 for one{public}

Nothing else is needed, and no key. Three dense layers ({columns} -> {wide} -> {wide} -> {classes}, ReLU between) with
cross-entropy against the shares do well, and so does ridge regression on the shares. Rows of {block} columns belong to
each of {blocks} block(s), in order. Hold some rows back to choose how long to train.

Send back the layers as model.npz: weight_0 (inputs x outputs), bias_0, weight_1, ... with ReLU between, none after the
last. From torch, torch.save(network.state_dict(), "model.pt") of such layers will do, or:

    layers = [one for one in network if isinstance(one, torch.nn.Linear)]
    numpy.savez("model.npz", **{{f"weight_{{i}}": one.weight.detach().numpy().T for i, one in enumerate(layers)}},
                **{{f"bias_{{i}}": one.bias.detach().numpy() for i, one in enumerate(layers)}})

From scikit-learn's Ridge: numpy.savez("model.npz", weight_0=ridge.coef_.T, bias_0=ridge.intercept_)
"""
PUBLIC = ", then of the public rows"


def advice(certificate: EncodingFacts, label_columns: int) -> str:
    """What the server needs to know to train; facts of the certificate alone."""
    return ADVICE.format(
        rows=certificate.rows_released,
        columns=certificate.mask_dim,
        classes=label_columns,
        wide=2 * max(64, min(certificate.mask_dim, 512)),
        block=certificate.mask_dim // certificate.blocks,
        blocks=certificate.blocks,
        public=PUBLIC if certificate.public_rows else "",
    )


@dataclass(frozen=True)
class LayeredModel:
    """Dense layers with ReLU between them, from a file of plain numbers."""

    weights: tuple[Floats, ...]
    biases: tuple[Floats, ...]

    @classmethod
    def load(cls, path: Path) -> LayeredModel:
        """The model that a server sent back. Its file can hold numbers only: nothing of the server's is run."""
        if not path.is_file():
            raise InputError(
                f"{path} is not there: ask the server for it again. A lost model is trained anew from what the server "
                "has, and your key fits that one, too"
            )
        arrays = layers_of_torch(path, MOST_BYTES) if path.suffix in ENDINGS else _numbers_in(path)
        count = len(arrays) // 2
        wanted = [f"{what}_{place}" for place in range(count) for what in ("weight", "bias")]
        if not count or sorted(arrays) != sorted(wanted):
            raise InputError(f"{path.name} must hold weight_0, bias_0, weight_1, ... as network.txt says")
        weights = tuple(arrays[f"weight_{place}"] for place in range(count))
        biases = tuple(arrays[f"bias_{place}"] for place in range(count))
        fitting = all(w.ndim == 2 and b.shape == w.shape[1:] for w, b in zip(weights, biases, strict=True))
        if not fitting or any(a.shape[1] != b.shape[0] for a, b in pairwise(weights)):
            raise InputError(f"the layers in {path.name} do not fit each other")
        return cls(weights, biases)

    def __call__(self, encoded: Floats) -> Floats:
        if encoded.shape[1] != len(self.weights[0]):
            raise InputError("the model takes rows of another width: it was trained on another encoded set")
        found = encoded
        for place, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            found = (np.maximum(found, 0.0) if place else found) @ weight + bias
        return found


def _numbers_in(path: Path) -> dict[str, Floats]:
    try:
        with zipfile.ZipFile(path) as packed:
            if sum(one.file_size for one in packed.infolist()) > MOST_BYTES:
                raise InputError(f"{path.name} is larger than a model of dense layers can be")
        with np.load(path, allow_pickle=False) as file:
            arrays: dict[str, Any] = {name: np.asarray(file[name]) for name in file.files}
        if all(one.dtype.kind in "iuf" for one in arrays.values()):
            found = {name: one.astype(np.float64) for name, one in arrays.items()}
            if all(np.isfinite(one).all() for one in found.values()):
                return found
    except (OSError, ValueError, KeyError, EOFError, RuntimeError, MemoryError, zipfile.BadZipFile, zlib.error):
        pass  # of a kind, a size or a packing that no model of ours has
    raise InputError(
        f"{path.name} is no model of plain numbers: ask the server for model.npz as network.txt says. Files of other "
        "kinds can run the server's code when they are opened"
    )
