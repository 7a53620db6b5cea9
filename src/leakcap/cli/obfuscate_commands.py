"""The commands of `leakcap obfuscate`. Each imports what it runs when it is called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leakcap.cli.endings import CHECK_FAILED, ending
from leakcap.cli.options import Json, Quiet, Read, Title

__all__ = ["obfuscate_app"]

obfuscate_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Encode data for a server that is not trusted, and use the model that it trains.",
)


@obfuscate_app.command("encode")
def encode_command(
    data: Annotated[
        Path,
        typer.Argument(
            help="A CSV or Parquet file; with --embedding a folder of pictures, in folders by class.",
            metavar="DATA",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for server/ and owner/.", metavar="FOLDER", show_default=False)],
    label: Annotated[str | None, typer.Option(help="Column that holds the classes.", metavar="NAME")] = None,
    cap: Annotated[
        str | None, typer.Option(help="The most success about any row: membership=0.60.", metavar="CAP")
    ] = None,
    noise: Annotated[
        float | None, typer.Option(help="Noise in every cell instead; its figures are certified.", metavar="NUMBER")
    ] = None,
    embedding: Annotated[
        str | None,
        typer.Option(help="module:function that turns a list of picture files into rows of numbers.", metavar="NAME"),
    ] = None,
    bounds: Annotated[
        list[str] | None,
        typer.Option(help="Scale of a column, known without the data: age=0,120; the pool's own if left out."),
    ] = None,
    levels: Annotated[
        list[str] | None,
        typer.Option(help="Categories of a column, known without the data: sex=f,m; the pool's own if left out."),
    ] = None,
    mask_dim: Annotated[int | None, typer.Option(help="Columns that leave; 500 at most.", metavar="NUMBER")] = None,
    mix: Annotated[int | None, typer.Option(help="Rows of each of two classes in a mean.", metavar="NUMBER")] = None,
    rows_sampled: Annotated[int | None, typer.Option(help="Rows that are drawn.", metavar="NUMBER")] = None,
    rows_released: Annotated[int, typer.Option(help="Rows that leave.", metavar="NUMBER")] = 2000,
    blocks: Annotated[
        str | None,
        typer.Option(help="Parts of a row with masks of their own: a number, or 4,4 for patches.", metavar="NUMBER"),
    ] = None,
    whiten: Annotated[
        int | None, typer.Option(help="Principal components of the pool that rows are whitened to.", metavar="NUMBER")
    ] = None,
    draws: Annotated[
        int, typer.Option(help="Most draws of a certification; 0 claims nothing.", metavar="NUMBER")
    ] = 1024,
    backend: Annotated[str | None, typer.Option(help="torch:cuda certifies on a GPU.", metavar="DEVICE")] = None,
    read: Read = None,
    ledger: Annotated[
        str | None,
        typer.Option(help="Where it is written down: sqlite:///file; beside the key if left out.", metavar="PLACE"),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="What the ledger calls the data; by their contents if left out.", metavar="NAME")
    ] = None,
    title: Title = "",
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Encode a table or pictures: an encoded set for the server, and a sealed key for you.

    Once for a pool: the ledger refuses a second time, with any key.
    """
    with ending():
        from leakcap.cli.obfuscate import EncodeOrder, run_encode

        order = EncodeOrder(
            data=data,
            out=out,
            label=label,
            embedding=embedding,
            cap=cap,
            noise=noise,
            mask_dim=mask_dim,
            mix=mix,
            rows_sampled=rows_sampled,
            rows_released=rows_released,
            blocks=blocks,
            whiten=whiten,
            draws=draws,
            backend=backend,
            bounds=tuple(bounds or ()),
            levels=tuple(levels or ()),
            read=tuple(read or ()),
            ledger=ledger,
            name=name,
            title=title,
        )
        run_encode(order, quiet, json)


@obfuscate_app.command("predict")
def predict_command(
    model: Annotated[
        Path, typer.Argument(help="The server's model.npz or model.pt.", metavar="MODEL", show_default=False)
    ],
    data: Annotated[
        Path, typer.Argument(help="New rows: a file, or a folder of pictures.", metavar="DATA", show_default=False)
    ],
    key: Annotated[Path, typer.Option(help="The key in owner/.", metavar="FILE", show_default=False)],
    out: Annotated[Path, typer.Option(help="CSV file for the predictions.", metavar="FILE", show_default=False)],
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Predict new rows with the server's model, on this machine: nothing leaves."""
    with ending():
        from leakcap.cli.obfuscate import run_predict

        run_predict(model, data, key, out=out, quiet=quiet, json=json)


@obfuscate_app.command("check")
def check_command(
    folder: Annotated[Path, typer.Argument(help="The folder that --out named.", metavar="FOLDER", show_default=False)],
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Check that the server's files and the key belong together. Exit code 1 if not."""
    with ending():
        from leakcap.cli.obfuscate_check import run_check

        if not run_check(folder, quiet, json):
            raise SystemExit(CHECK_FAILED)
