"""An owner's file, the commands of `leakcap obfuscate` as they are typed, and what a server does with what it gets."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from leakcap.cli import main
from tests.unit.obfuscation.pools import pool

__all__ = ["ENCODE", "run", "trained", "write_pool"]

SIZES = ("--mix", "3", "--rows-released", "180")
ENCODE = ["encode", "pool.csv", "--label", "kind", "--draws", "0", "--noise", "0.001", *SIZES]


def write_pool(folder: Path, name: str = "pool.csv") -> Path:
    """Three kinds of trees: numbers, a category and the label."""
    X, y = pool()
    colours = np.array(["red", "green"])[(X[:, 0] > 1).astype(int)]
    with (folder / name).open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow([f"c{i}" for i in range(12)] + ["colour", "kind"])
        rows.writerows([*row, colour, kind] for row, colour, kind in zip(X.tolist(), colours, y, strict=True))
    return folder / name


def run(*words: str) -> int:
    """The exit status of `leakcap obfuscate ...`."""
    with pytest.raises(SystemExit) as ended:
        main(["obfuscate", *words])
    return int(ended.value.code or 0)


def trained(server: Path, to: str = "model.npz") -> None:
    """What the server does, with what it got."""
    ridge = Ridge(0.01).fit(np.load(server / "features.npy"), np.load(server / "labels.npy"))
    np.savez(to, weight_0=ridge.coef_.T, bias_0=ridge.intercept_)
