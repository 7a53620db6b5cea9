"""The `leakcap` command: thin skins over the library. Heavy imports happen inside the commands.

Exit codes: 0 done; 1 a check failed; 2 a wrong command or wrong input; 3 this cannot be released as asked; 4 released
already; 70 a defect of leakcap; 130 stopped by the user.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from leakcap.errors import AlreadyReleased, LeakcapError, NumericalError, OutputError
from leakcap.version import __version__

__all__ = ["app", "main"]

# Typer's own tracebacks can show local variables, and those hold the data.
app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output, for programs.")]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"leakcap {__version__}")
        raise typer.Exit


@app.callback()
def leakcap(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Release any computation on private data, and cap what any adversary can learn from it."""


@app.command("demo")
def demo_command(
    out: Annotated[Path, typer.Option(help="Folder for pictures and certificates.")] = Path("leakcap-demo"),
    cap: Annotated[float, typer.Option(help="Most success at guessing whether a person took part.")] = 0.55,
    worlds: Annotated[int, typer.Option(help="Possible worlds to simulate.")] = 1024,
) -> None:
    """Two private releases, start to end, on bundled data.

    Means and a K-Means on data that scikit-learn ships, with pages, pictures and certificates.
    """
    with _ending():
        from leakcap.cli.demo import run

        run(out, cap, worlds)


@app.command("release")
def release_command(
    context: typer.Context,
    data: Annotated[Path, typer.Argument(help="A CSV or Parquet file.", metavar="DATA", show_default=False)],
    fn: Annotated[
        str,
        typer.Option(
            help="mean, median, quantile, covariance, histogram, or module:function (whose prints are not shown).",
            show_default=False,
            metavar="NAME",
        ),
    ],
    cap: Annotated[
        list[str],
        typer.Option(
            help="What to cap, for example membership=0.55. Repeat it for several.", show_default=False, metavar="CAP"
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(help="Folder for what is written: public/ and custodian/.", show_default=False, metavar="FOLDER"),
    ],
    columns: Annotated[
        list[str] | None, typer.Option(help="Columns to use: age,height.", show_default=False, metavar="NAMES")
    ] = None,
    unit: Annotated[
        str | None, typer.Option(help="Column that says whose row it is, such as a patient number.", metavar="NAME")
    ] = None,
    strata: Annotated[
        list[str] | None, typer.Option(help="Columns whose groups every world holds in proportion.", metavar="NAMES")
    ] = None,
    q: Annotated[
        list[float] | None, typer.Option("--q", help="Which quantiles, for --fn quantile.", metavar="SHARE")
    ] = None,
    bins: Annotated[
        list[str] | None, typer.Option(help="Bins of a histogram: 0,18,65,120 or 0:100:10.", metavar="ENDS")
    ] = None,
    levels: Annotated[
        list[str] | None, typer.Option(help="Categories of a column: sex=female,male.", metavar="NAMES")
    ] = None,
    missing: Annotated[str, typer.Option(help="Rows with missing values: refuse or drop.", metavar="WHAT")] = "refuse",
    worlds: Annotated[
        str | None,
        typer.Option(
            help="Possible worlds to simulate: 1,024, or what divides evenly; auto: as many as lower the noise.",
            metavar="NUMBER",
        ),
    ] = None,
    rate: Annotated[
        str, typer.Option(help="Share of the pool in a world: 1/2, 1/k or (k-1)/k.", metavar="SHARE")
    ] = "1/2",
    mode: Annotated[str, typer.Option(help="exact, confidence or empirical.", metavar="NAME")] = "exact",
    confidence: Annotated[float, typer.Option(help="That all certified figures hold together.", metavar="SHARE")] = 1
    - 1e-6,
    draws: Annotated[
        int | None, typer.Option(help="Releases to certify with; chosen if left out.", metavar="NUMBER")
    ] = None,
    clip: Annotated[str | None, typer.Option(help="Bounds of the outputs: LOW,HIGH.", metavar="LOW,HIGH")] = None,
    drop: Annotated[
        list[str] | None, typer.Option(help="Attributes of an estimator to leave out.", metavar="NAME")
    ] = None,
    public: Annotated[
        list[str] | None, typer.Option(help="A fact you declare public, for the certificate.", metavar="WORDS")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes; all cores where it pays, if left out.", metavar="NUMBER")
    ] = None,
    title: Annotated[str, typer.Option(help="Title of the public page.", metavar="WORDS", show_default=False)] = "",
    issuer: Annotated[
        str, typer.Option(help="Who publishes it, for the public page.", metavar="WORDS", show_default=False)
    ] = "",
    preview: Annotated[bool, typer.Option("--preview", help="Show expected errors and release nothing.")] = False,
    forget: Annotated[bool, typer.Option("--forget", help="Remove the plan after the release.")] = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Release a statistic or a model of a file, certified.

    Run the same command again to resume a run that was stopped or killed.

    Caps: membership=SUCCESS, mip=ETA, name=SUCCESS, precision=CLAIMS:AT_MOST, identification=SUCCESS,
    any=PRIOR:SUCCESS, mi=NATS, tpr=FPR:AT_MOST.
    """
    with _ending("The same command goes on from here."):
        from leakcap.cli.release import Order, run

        given = {name: value for name, value in context.params.items() if name not in ("quiet", "json")}
        run(Order.of(given), quiet, json)


@app.command("explain")
def explain_command(
    given: Annotated[
        list[str],
        typer.Argument(
            help="One of mi=, eps=, eta=, success=; with eps also delta= and n=; prior=.",
            metavar="KEY=NUMBER",
            show_default=False,
        ),
    ],
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Bare lines without sentences.")] = False,
    json: Json = False,
) -> None:
    """Turn privacy figures into each other.

    For example: mi=0.05; eps=1 delta=1e-6; success=0.55 prior=0.5.
    """
    with _ending():
        from leakcap.cli.explain import run

        run(given, json, quiet)


@app.command("check")
def check_command(
    certificate: Annotated[Path, typer.Argument(help="A certificate.json.", metavar="CERT", show_default=False)],
    custodian: Annotated[Path, typer.Option(help="The custodian's folder of the same release.", show_default=False)],
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Recompute a certificate and say whether it holds.

    From the plan that the custodian keeps; and the best attacker is tried on fresh draws. Exit code 1 if it does not
    hold.
    """
    with _ending():
        from leakcap.cli.check import run

        if not run(certificate, custodian, quiet, json):
            raise SystemExit(1)


@app.command("audit")
def audit_command(
    custodian: Annotated[
        Path, typer.Argument(help="The folder of a release, or its custodian's part.", show_default=False)
    ],
    trials: Annotated[int, typer.Option(help="Releases to make and to attack.")] = 10_000,
    out: Annotated[
        Path | None, typer.Option(help="File for the report, .html or .json; the custodian's.", show_default=False)
    ] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Attack your own release: measured success beside the certified one.

    Makes many releases from the stored plan by the very code of a release, each with a secret of its own, and lets
    attackers loose on them. Exit code 1 if any of them does what the certificate rules out.
    """
    with _ending():
        from leakcap.cli.audit import run

        if not run(custodian, trials, out, quiet, json):
            raise SystemExit(1)


@app.command("labels")
def labels_command(
    context: typer.Context,
    data: Annotated[Path, typer.Argument(help="A CSV or Parquet file.", metavar="DATA", show_default=False)],
    column: Annotated[str, typer.Option(help="The column of labels.", show_default=False, metavar="NAME")],
    epsilon: Annotated[
        float, typer.Option(help="What a label may give away: 1 is private, 8 hardly.", show_default=False)
    ],
    out: Annotated[
        Path,
        typer.Option(help="Folder for what is written: public/ and custodian/.", show_default=False, metavar="FOLDER"),
    ],
    classes: Annotated[
        str | None, typer.Option(help="Every class there may be: no,yes. Never read from the data.", metavar="NAMES")
    ] = None,
    mechanism: Annotated[
        str,
        typer.Option(
            help="auto (what tells most), krr, unary, subset, laplace, gaussian or bins.",
            metavar="NAME",
        ),
    ] = "auto",
    delta: Annotated[
        float | None, typer.Option(help="For gaussian: how often epsilon may fail; 1e-5 if left out.", metavar="SHARE")
    ] = None,
    prior: Annotated[
        str | None, typer.Option(help="How likely each class is, as publicly known: 0.76,0.24.", metavar="SHARES")
    ] = None,
    low: Annotated[
        float | None, typer.Option(help="For labels that are numbers: the least there may be.", metavar="NUMBER")
    ] = None,
    high: Annotated[
        float | None, typer.Option(help="For labels that are numbers: the largest there may be.", metavar="NUMBER")
    ] = None,
    missing_as: Annotated[
        str | None, typer.Option(help="Missing labels are a class of this name; refused if left out.", metavar="NAME")
    ] = None,
    title: Annotated[str, typer.Option(help="Title of the public page.", metavar="WORDS", show_default=False)] = "",
    issuer: Annotated[
        str, typer.Option(help="Who publishes it, for the public page.", metavar="WORDS", show_default=False)
    ] = "",
    again: Annotated[
        bool, typer.Option("--again", help="Privatise once more in the same folder, and count all of it.")
    ] = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Privatise the label column of a file, certified.

    All other columns leave as they are: this is for features that are public and labels that are not.
    """
    with _ending():
        from leakcap.cli.labels import Order, run

        run(
            Order(**{name: value for name, value in context.params.items() if name not in ("quiet", "json")}),
            quiet,
            json,
        )


@contextmanager
def _ending(after_stop: str = "") -> Iterator[None]:
    """What leakcap raises on purpose is told in its own words; other errors without their text: it may quote data."""
    try:
        yield
        return
    except AlreadyReleased as error:
        code, words = 4, str(error)
    except (OutputError, NumericalError) as error:
        code, words = 3, _as_options(str(error))
    except LeakcapError as error:
        code, words = 2, str(error)
    except KeyboardInterrupt:
        code, words = 130, f"stopped. {after_stop}".rstrip()
    except SystemExit:
        raise
    except BaseException as error:
        code, words = 70, _defect(error)
    _fail(words, code)


def _as_options(words: str) -> str:
    """What the library says of its arguments, as options of the command line."""
    words = re.sub(r"drop=\[([^\]]*)\]", lambda found: "--drop " + re.sub(r"['\s]", "", found[1]), words)
    return words.replace("clip=(low, high)", "--clip LOW,HIGH").replace("draws=", "--draws")


def _defect(error: BaseException) -> str:
    place, trace = "", error.__traceback__
    while trace is not None:
        if "leakcap" in trace.tb_frame.f_code.co_filename:
            place = f" in {Path(trace.tb_frame.f_code.co_filename).name}, line {trace.tb_lineno}"
        trace = trace.tb_next
    return (
        f"{type(error).__name__}{place}: a defect of leakcap, please report it. The text of the error is withheld: it "
        "may quote the data"
    )


def _fail(words: str, code: int) -> NoReturn:
    print(f"leakcap: {words}", file=sys.stderr)
    raise SystemExit(code)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command."""
    app(args=arguments, prog_name="leakcap")
