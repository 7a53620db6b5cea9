"""The command `leakcap sql`. It imports what it runs when it is called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leakcap.cli.endings import ending
from leakcap.cli.options import Backend, Insecure, Json, Quiet

__all__ = ["sql_command"]


def sql_command(
    data: Annotated[
        Path,
        typer.Argument(
            help="A CSV, Parquet or DuckDB file, a folder of such files, or what --store made.",
            metavar="DATA",
            show_default=False,
        ),
    ],
    question: Annotated[
        str | None, typer.Argument(help="One SELECT. Left out, a prompt opens.", metavar="QUESTION", show_default=False)
    ] = None,
    cap: Annotated[
        list[str] | None,
        typer.Option(help="What all answers together may tell: membership=0.60, or pool=0.55.", metavar="CAP"),
    ] = None,
    unit: Annotated[
        str | None, typer.Option(help="Whose row it is: patient, or customer.id.", metavar="COLUMN")
    ] = None,
    link: Annotated[
        list[str] | None, typer.Option(help="A key: orders.customer=customer.id. Repeat it.", metavar="COLUMN=KEY")
    ] = None,
    bounds: Annotated[
        list[str] | None, typer.Option(help="The range of a column: age=0,120. Repeat it.", metavar="COLUMN=LOW,HIGH")
    ] = None,
    rows_per_unit: Annotated[
        list[str] | None, typer.Option(help="The most rows of one person: 10, or stays=10.", metavar="NUMBER")
    ] = None,
    keys: Annotated[
        list[str] | None, typer.Option(help="Values to group by: ward=A,B. Repeat it.", metavar="COLUMN=VALUES")
    ] = None,
    noised_keys: Annotated[
        list[str] | None,
        typer.Option(help="Group by what so many people have, by a noised count: town=50.", metavar="COLUMN=PEOPLE"),
    ] = None,
    public: Annotated[
        list[str] | None, typer.Option(help="Tables that hold nobody's data.", metavar="TABLE,TABLE")
    ] = None,
    design: Annotated[
        str,
        typer.Option(
            help="bits: a coin for everybody. worlds: a list of halves, for min, max and different values. cohorts: "
            "the same, faster, for people in groups that share a coin.",
            metavar="DESIGN",
        ),
    ] = "bits",
    worlds: Annotated[int | None, typer.Option(help="How many halves are listed; 1024.", metavar="NUMBER")] = None,
    cohorts: Annotated[int | None, typer.Option(help="How many cohorts: 1024 to 4096.", metavar="NUMBER")] = None,
    share: Annotated[
        float | None, typer.Option(help="Of the clock, for this question; 0.01 if left out.", metavar="SHARE")
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(
            help="Rows of one person that are enough for this question: noise is made for so many, and whoever brings "
            "more is cut to that.",
            metavar="NUMBER",
        ),
    ] = None,
    ledger: Annotated[
        str | None, typer.Option(help="sqlite:///FILE or postgresql://...; yours if left out.", metavar="URL")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Of the data in the ledger.", metavar="NAME")] = None,
    store: Annotated[
        Path | None, typer.Option(help="Keep the tables as they are registered, for the next question.", metavar="FILE")
    ] = None,
    backend: Backend = None,
    insecure: Insecure = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Ask private tables in SQL, under one cap.

    For example: leakcap sql stays.csv "select age, count(*) from stays group by age" --unit patient --rows-per-unit 10
    --cap 0.6. Every number comes with its interval, and the ledger counts what was told.
    """
    with ending():
        from leakcap.cli.sql import SqlOrder, run

        order = SqlOrder(
            data=data,
            question=question,
            cap=tuple(cap or ()),
            unit=unit,
            link=tuple(link or ()),
            bounds=tuple(bounds or ()),
            rows_per_unit=tuple(rows_per_unit or ()),
            keys=tuple(keys or ()),
            noised_keys=tuple(noised_keys or ()),
            design=design,
            worlds=worlds,
            cohorts=cohorts,
            public=tuple(public or ()),
            share=share,
            rows=rows,
            ledger=ledger,
            name=name,
            store=store,
            backend=backend,
            insecure=insecure,
        )
        run(order, quiet, json)
