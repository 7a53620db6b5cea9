"""CIFAR-10 and CIFAR-100 as arrays of bytes, from files that need no picture library.

`python -m reproductions.label_dp.pictures FOLDER` writes CIFAR-10 as four `.npy` files, which a machine without Pillow
can read and several processes can share.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError

PARTS = ("x_train", "y_train", "x_test", "y_test")
CLASSES = {"cifar10": 10, "cifar100": 100}


@dataclass(frozen=True)
class Pictures:
    """Training and test pictures `(n, 32, 32, 3)` in bytes, and their labels."""

    x_train: npt.NDArray[np.uint8]
    y_train: npt.NDArray[np.int64]
    x_test: npt.NDArray[np.uint8]
    y_test: npt.NDArray[np.int64]
    n_classes: int


def at_hand(name: str) -> bool:
    """Whether the data set can be read here."""
    folder = os.environ.get("LEAKCAP_DATA")
    if not folder:
        return False
    files = [f"{name}.npz", f"{name}_x_train.npy", *(["cifar10_test.webp"] if name == "cifar10" else [])]
    return any((Path(folder) / file).is_file() for file in files)


def pictures(name: str) -> Pictures:
    """A data set by name: from `name.npz`, or `name_x_train.npy` and its three companions, or the packed pictures."""
    if name not in CLASSES:
        raise InputError(f"choose one of the data sets {', '.join(CLASSES)}")
    if not at_hand(name):
        raise InputError(f"put {name}.npz ({', '.join(PARTS)}) into the folder that LEAKCAP_DATA names")
    folder = Path(os.environ["LEAKCAP_DATA"])
    if (folder / f"{name}.npz").is_file():
        packed = np.load(folder / f"{name}.npz")
        arrays = [packed[part] for part in PARTS]
    elif (folder / f"{name}_x_train.npy").is_file():
        arrays = [np.load(folder / f"{name}_{part}.npy") for part in PARTS]
    else:
        from leakcap.datasets import cifar10  # noqa: PLC0415  (needs Pillow)

        arrays = list(cifar10())
    x_train, y_train, x_test, y_test = arrays
    return Pictures(x_train, y_train.astype(np.int64), x_test, y_test.astype(np.int64), CLASSES[name])


def main(folder: Path) -> None:
    """Write CIFAR-10 as `.npy` files."""
    found = pictures("cifar10")
    folder.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        array = getattr(found, part)
        np.save(folder / f"cifar10_{part}.npy", array.astype(np.uint8))
    print(f"written: {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
