"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["Backend", "Data", "Insecure", "Issuer", "Json", "Out", "Quiet", "Read", "Title"]

Backend = Annotated[
    str | None,
    typer.Option(
        help="Where the work runs: serial, threads, processes, dask (workers of this machine) or dask://host:port.",
        metavar="PLACE",
        show_default=False,
    ),
]
Insecure = Annotated[
    bool,
    typer.Option("--insecure", help="With --backend: take a cluster of other machines without TLS."),
]
Data = Annotated[
    Path,
    typer.Argument(help="A CSV or Parquet file, or a folder of Parquet files.", metavar="DATA", show_default=False),
]
Out = Annotated[
    Path,
    typer.Option(help="Folder for what is written: public/ and custodian/.", show_default=False, metavar="FOLDER"),
]
Read = Annotated[
    list[str] | None,
    typer.Option(
        help="How the file is written: decimal=, thousands=. missing=n/a encoding=cp1252 delimiter=tab dates=parts. "
        "Repeat it for several.",
        metavar="KEY=VALUE",
        show_default=False,
    ),
]
Title = Annotated[str, typer.Option(help="Title of the public page.", metavar="WORDS", show_default=False)]
Issuer = Annotated[
    str, typer.Option(help="Who publishes it, for the public page.", metavar="WORDS", show_default=False)
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output, for programs.")]
