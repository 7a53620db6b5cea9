"""Where a command's work runs: on this machine, or on workers of a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from leakcap.cluster.connecting import connect
from leakcap.errors import InputError

__all__ = ["backend_of"]

HERE = ("serial", "threads", "processes")


@contextmanager
def backend_of(name: str | None, workers: int | None, insecure: bool) -> Iterator[Any]:
    """What `--backend`, `--workers` and `--insecure` name, for as long as the command runs."""
    if name is None or name in HERE:
        if insecure:
            raise InputError("--insecure is for clusters of other machines: add --backend dask://host:port")
        yield name
        return
    where = None if name == "dask" else name
    with connect(where, workers=workers, insecure=insecure) as there:
        yield there
