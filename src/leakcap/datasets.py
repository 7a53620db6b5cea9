"""Loaders for public data sets kept in the folder that the variable LEAKCAP_DATA names. Nothing is downloaded."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError, MissingExtra

Bytes = npt.NDArray[np.uint8]

__all__ = ["adult", "cifar10", "data_path", "diabetes130", "dry_bean", "heart_disease", "rice"]


def data_path(name: str) -> Path:
    """Where a file of the data folder lies.

    Args:
        name: file name inside the folder that the environment variable LEAKCAP_DATA names.

    Returns:
        The path of the file.

    Raises:
        InputError: LEAKCAP_DATA is not set, or the folder has no such file.
    """
    folder = os.environ.get("LEAKCAP_DATA")
    if not folder:
        raise InputError("set the variable LEAKCAP_DATA to the folder that holds the data sets")
    path = Path(folder) / name
    if not path.is_file():
        raise InputError(f"the data folder has no file {name}")
    return path


def dry_bean() -> Any:
    """Dry Bean: 13,611 beans, 16 measurements and the column `Class`.

    Returns:
        A pandas DataFrame.

    Raises:
        InputError: the data folder does not hold the file.
    """
    return _pandas().read_csv(data_path("dry_bean.csv.gz"))


def rice() -> Any:
    """Rice (Cammeo and Osmancik): 3,810 grains, 7 measurements and the column `Class`.

    Returns:
        A pandas DataFrame.

    Raises:
        InputError: the data folder does not hold the file.
    """
    return _pandas().read_csv(data_path("rice_cammeo_osmancik.csv.gz"))


def adult() -> Any:
    """Adult: 48,842 people of the 1994 census, 14 columns, `income` and `split`.

    Returns:
        A pandas DataFrame; missing entries are NaN.

    Raises:
        InputError: the data folder does not hold the file.
    """
    return _pandas().read_csv(data_path("adult.csv.gz"), na_values="?")


def heart_disease() -> Any:
    """Heart Disease (Cleveland): 303 patients, 13 measurements and the column `num`; six entries are missing.

    Returns:
        A pandas DataFrame.

    Raises:
        InputError: the data folder does not hold the file.
    """
    return _pandas().read_csv(data_path("heart_disease_cleveland.csv.gz"))


def diabetes130() -> Any:
    """Diabetes 130-US: 101,766 hospital stays of 71,518 patients (`patient_nbr`), 50 columns.

    Returns:
        A pandas DataFrame.

    Raises:
        InputError: the data folder does not hold the file.
    """
    return _pandas().read_parquet(data_path("diabetes130.parquet"))


def cifar10() -> tuple[Bytes, Bytes, Bytes, Bytes]:
    """CIFAR-10: 50,000 pictures to train on and 10,000 to test on, with their labels.

    Returns:
        Four arrays of uint8: training pictures `(50000, 32, 32, 3)`, their labels, test pictures
        `(10000, 32, 32, 3)`, their labels.

    Raises:
        InputError: the data folder does not hold the files.
        MissingExtra: Pillow is not installed.
    """
    labels = np.load(data_path("cifar10_labels.npz"))
    train = np.concatenate([_pictures(f"cifar10_train_{part}.webp") for part in range(1, 6)])
    return train, labels["y_train"], _pictures("cifar10_test.webp"), labels["y_test"]


def _pictures(name: str) -> Bytes:
    """The pictures of a mosaic of 100 x 100, row by row."""
    path = data_path(name)
    try:
        from PIL import Image
    except ImportError:
        raise MissingExtra("pictures need Pillow: pip install pillow") from None
    with Image.open(path) as mosaic:
        pixels = np.asarray(mosaic.convert("RGB"))
    return pixels.reshape(100, 32, 100, 32, 3).swapaxes(1, 2).reshape(-1, 32, 32, 3)


def _pandas() -> Any:
    """Loaded on first use: it is slow to import."""
    import pandas

    return pandas
