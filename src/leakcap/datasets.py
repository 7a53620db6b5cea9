"""Loaders for public data sets kept in the folder that the variable LEAKCAP_DATA names. Nothing is downloaded."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from leakcap.errors import InputError, MissingExtra

__all__ = ["adult", "data_path", "diabetes130", "dry_bean", "heart_disease", "rice"]


def data_path(name: str) -> Path:
    """Where a file of the data folder lies."""
    folder = os.environ.get("LEAKCAP_DATA")
    if not folder:
        raise InputError("set the variable LEAKCAP_DATA to the folder that holds the data sets")
    path = Path(folder) / name
    if not path.is_file():
        raise InputError(f"the data folder has no file {name}")
    return path


def dry_bean() -> Any:
    """13,611 beans, 16 measurements and `Class`."""
    return _pandas().read_csv(data_path("dry_bean.csv.gz"))


def rice() -> Any:
    """3,810 grains of rice, 7 measurements and `Class`."""
    return _pandas().read_csv(data_path("rice_cammeo_osmancik.csv.gz"))


def adult() -> Any:
    """48,842 people of the 1994 census, 14 columns, `income` and `split`."""
    return _pandas().read_csv(data_path("adult.csv.gz"), na_values="?")


def heart_disease() -> Any:
    """303 patients, 13 measurements and `num`; six entries are missing."""
    return _pandas().read_csv(data_path("heart_disease_cleveland.csv.gz"))


def diabetes130() -> Any:
    """101,766 hospital stays of 71,518 patients (`patient_nbr`), 50 columns."""
    return _pandas().read_parquet(data_path("diabetes130.parquet"))


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise MissingExtra("tables need pandas: pip install 'leakcap[tables]'") from None
    return pandas
