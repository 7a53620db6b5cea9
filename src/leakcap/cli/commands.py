"""Commands that need no table: demo, explain, check and audit. Each imports what it runs when it is called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leakcap.cli.endings import CHECK_FAILED, ending
from leakcap.cli.options import Backend, Insecure, Json, Quiet
from leakcap.errors import InputError

__all__ = ["audit_command", "check_command", "demo_command", "explain_command", "open_command", "serve_command"]


def demo_command(
    out: Annotated[Path, typer.Option(help="Folder for pictures and certificates.")] = Path("leakcap-demo"),
    cap: Annotated[float, typer.Option(help="Most success at guessing whether a person took part.")] = 0.55,
    worlds: Annotated[int, typer.Option(help="Possible worlds to simulate.")] = 1024,
) -> None:
    """Two private releases, start to end, on bundled data.

    Means and a K-Means on data that scikit-learn ships, with pages, pictures and certificates.
    """
    with ending():
        from leakcap.cli.demo import run

        run(out, cap, worlds)


def explain_command(
    given: Annotated[
        list[str],
        typer.Argument(
            help="One of mi=, eps=, eta=, success=; with eps also delta= and n=; prior=. In tables also rho=, with n=.",
            metavar="KEY=NUMBER",
            show_default=False,
        ),
    ],
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Bare lines without sentences.")] = False,
    json: Json = False,
    table: Annotated[bool, typer.Option("--table", help="One table: every currency, and what it assumes.")] = False,
) -> None:
    """Turn privacy figures into each other.

    For example: mi=0.05; eps=1 delta=1e-6; success=0.55 prior=0.5; --table rho=0.1 n=1000.
    """
    with ending():
        from leakcap.cli.explain import run

        run(given, json, quiet, table)


def check_command(
    certificate: Annotated[Path, typer.Argument(help="A certificate.json.", metavar="CERT", show_default=False)],
    custodian: Annotated[
        Path | None, typer.Option(help="The custodian's folder of the same release.", show_default=False)
    ] = None,
    public: Annotated[bool, typer.Option("--public", help="Check what a reader can, without the plan.")] = False,
    signer: Annotated[
        str | None,
        typer.Option(help="The issuer's public key, a file or its digits; with --public.", metavar="KEY"),
    ] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Recompute a certificate and say whether it holds.

    From the plan that the custodian keeps; and the best attacker is tried on fresh draws. With --public, from the
    published files alone: who signed them, that none was exchanged, and that every figure follows from the others.
    Exit code 1 if it does not hold.
    """
    with ending():
        if public == (custodian is not None) or (signer is not None and not public):
            raise InputError("check either --public, with --signer KEY if you have it, or with --custodian FOLDER")
        if custodian is None:
            from leakcap.cli.check_public import run_public

            holds = run_public(certificate, signer, quiet, json)
        else:
            from leakcap.cli.check import run

            holds = run(certificate, custodian, quiet, json)
        if not holds:
            raise SystemExit(CHECK_FAILED)


def audit_command(
    custodian: Annotated[
        Path | None,
        typer.Argument(
            help="The folder of a release, or registered tables (.duckdb); with --plant a file of labels.",
            show_default=False,
        ),
    ] = None,
    trials: Annotated[int, typer.Option(help="Releases to make and to attack.")] = 60_000,
    out: Annotated[
        Path | None, typer.Option(help="File for the report, .html or .json; the custodian's.", show_default=False)
    ] = None,
    plant: Annotated[
        int | None, typer.Option(help="Labels to make wrong on purpose; --out is a folder then.", metavar="NUMBER")
    ] = None,
    column: Annotated[
        str | None, typer.Option(help="The column of labels, for --plant; or of predicted classes.", metavar="NAME")
    ] = None,
    classes: Annotated[str | None, typer.Option(help="Every class, for --plant: no,yes.", metavar="NAMES")] = None,
    canaries: Annotated[
        Path | None, typer.Option(help="The key that --plant wrote, to judge a model by.", metavar="KEY")
    ] = None,
    predictions: Annotated[
        Path | None,
        typer.Option(help="Scores of all rows, a column for each class; or their predicted classes.", metavar="FILE"),
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(help="With --canaries: a certificate.json of private labels.", metavar="CERT")
    ] = None,
    looks: Annotated[
        int | None, typer.Option(help="With --canaries: how many models this key will judge in all.", metavar="NUMBER")
    ] = None,
    ledger: Annotated[
        str | None,
        typer.Option(help="Of registered tables: the ledger that counts their answers.", metavar="URL"),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Of registered tables: what they are called in the ledger.", metavar="NAME")
    ] = None,
    backend: Backend = None,
    insecure: Insecure = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Attack your own release: measured success beside the certified one.

    Makes many releases from the stored plan by the code of a release, each with a secret of its own, and attacks
    them. Exit code 1 if an attacker does what the certificate rules out.

    Of registered tables, all questions that were answered so far are asked again, in accounts of their own: nothing is
    charged.

    Of a distilled model the teachers vote again, each time with another coin for the person who moves the votes most:
    begin with --trials 1000, which take some minutes.

    Of models that learnt from private labels: --plant makes some labels wrong before the training, --canaries asks
    afterwards whether the model tells which.
    """
    with ending():
        from leakcap.cli.canaries import CanaryOrder, run_canaries
        from leakcap.custody.folders import votes_folder

        order = CanaryOrder(
            data=custodian,
            plant=plant,
            column=column,
            classes=classes,
            canaries=canaries,
            predictions=predictions,
            certificate=certificate,
            looks=looks,
            out=out,
        )
        if order.is_asked:
            holds = run_canaries(order, quiet, json)
        elif custodian is None:
            raise InputError("name the folder of a release, or --canaries KEY with --predictions FILE")
        elif custodian.is_file():
            from leakcap.cli.audit import SessionAt, run_of_session

            if backend is not None:
                raise InputError("questions of a session are asked again on this machine: leave --backend out")
            holds = run_of_session(SessionAt(custodian, ledger, name), trials, out, quiet=quiet, json=json)
        elif ledger is not None or name is not None:
            raise InputError("--ledger and --name are for registered tables, as in: leakcap audit clinic.duckdb")
        elif votes := votes_folder(custodian):
            from leakcap.cli.audit import run_of_votes

            if backend is not None:
                raise InputError("teachers are asked again on this machine: leave --backend out")
            holds = run_of_votes(votes, trials, out, quiet=quiet, json=json)
        else:
            from leakcap.cli.audit import run

            holds = run(custodian, trials, out, backend=backend, insecure=insecure, quiet=quiet, json=json)
        if not holds:
            raise SystemExit(CHECK_FAILED)


def open_command(
    folder: Annotated[Path, typer.Argument(help="The folder of a release.", show_default=False)],
    browser: Annotated[bool, typer.Option(help="Show the certificate's page in a browser, too.")] = True,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Show a release: the answer, what it promises, and its page.

    Reads the public part of the folder alone, as anybody can who gets it.
    """
    with ending():
        from leakcap.cli.opened import run

        run(folder, browser=browser, quiet=quiet, json=json)


def serve_command(
    home: Annotated[
        Path | None, typer.Option(help="The server's own folder; leakcap-server if left out.", metavar="FOLDER")
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(
            help="postgresql://... for accounts, answers and ledger; files in the folder if left out.", metavar="URL"
        ),
    ] = None,
    ledger: Annotated[
        str | None,
        typer.Option(
            help="sqlite:///FILE or postgresql://...; beside accounts and answers if left out.", metavar="URL"
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to listen at.", min=0, max=65535)] = 8017,
    name: Annotated[
        list[str] | None, typer.Option(help="A name under which others reach the server. Repeat it.", metavar="HOST")
    ] = None,
    tls_certificate: Annotated[
        Path | None, typer.Option(help="A PEM file. Without one the server answers this machine alone.", metavar="FILE")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(help="The certificate's key, a PEM file.", metavar="FILE")] = None,
    seconds: Annotated[float, typer.Option(help="After which a question is stopped.", min=0.1)] = 60.0,
    flight: Annotated[
        str | None,
        typer.Option(help="Also listen for Arrow Flight SQL: pandas, ADBC, JDBC.", metavar="[HOST:]PORT"),
    ] = None,
    move: Annotated[
        bool, typer.Option("--move", help="First move the folder's accounts, answers and audit log into --database.")
    ] = False,
    demo: Annotated[
        bool, typer.Option("--demo", help="Sample data, two accounts and a guided tour, gone at the end.")
    ] = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Let analysts ask by browser, by JSON or from Python, under one cap for all answers.

    The first start opens an account for the custodian, and shows its password once. --demo shows all of it in a
    minute, by a tour that leads through the pages.
    """
    with ending():
        from leakcap.cli.serve import ServeOrder, run

        order = ServeOrder(
            home=home,
            database=database,
            ledger=ledger,
            host=host,
            port=port,
            names=tuple(name or ()),
            tls_certificate=tls_certificate,
            tls_key=tls_key,
            seconds=seconds,
            flight=flight,
            demo=demo,
            move=move,
        )
        run(order, quiet, json)
