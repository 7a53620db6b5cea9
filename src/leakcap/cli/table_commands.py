"""Commands that read a table: release, labels and party. Each imports what it runs when it is called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from leakcap.cli.endings import ending
from leakcap.cli.options import Backend, Data, Insecure, Issuer, Json, Out, Quiet, Read, Title

__all__ = ["labels_command", "party_command", "release_command"]


def release_command(
    context: typer.Context,
    data: Data,
    fn: Annotated[
        str,
        typer.Option(
            help="mean, sum, count, share, median, quantile, covariance, histogram; a model such as KMeans; Distilled, "
            "for any other classifier; or module:function (not heard).",
            show_default=False,
            metavar="NAME",
        ),
    ],
    cap: Annotated[
        list[str],
        typer.Option(
            "--cap",
            help="What to cap, for example membership=0.55. Repeat it for several.",
            show_default=False,
            metavar="CAP",
        ),
    ],
    out: Out,
    columns: Annotated[
        list[str] | None, typer.Option(help="Columns to use: age,height.", show_default=False, metavar="NAMES")
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="What a model predicts: the name of a column.", metavar="NAME")
    ] = None,
    setting: Annotated[
        list[str] | None, typer.Option(help="Of a model: n_clusters=3, alpha=10.", metavar="NAME=VALUE")
    ] = None,
    teacher: Annotated[
        str | None,
        typer.Option(
            help="Of --fn Distilled, any classifier: module:class; boosted trees if left out.", metavar="MODULE:CLASS"
        ),
    ] = None,
    public_rows: Annotated[
        Path | None, typer.Option(help="On which teachers vote: a file with the same features.", metavar="FILE")
    ] = None,
    public_share: Annotated[
        float | None,
        typer.Option(help="In place of it: of the people, whose features are public.", metavar="SHARE"),
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(help="Groups, for mean, sum, count and share: ward=A,B,C.", show_default=False, metavar="GROUPS"),
    ] = None,
    bounds: Annotated[
        list[str] | None,
        typer.Option(help="For a pool cap, known without the data: 0,100 or age=0,120.", metavar="LOW,HIGH"),
    ] = None,
    rows_per_unit: Annotated[
        int | None, typer.Option(help="The most rows of one unit that count.", metavar="NUMBER")
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
    grid: Annotated[
        list[str] | None,
        typer.Option(help="Cut points for a median or quantiles: 0:100:5 or age=0:100:5.", metavar="POINTS"),
    ] = None,
    missing: Annotated[str, typer.Option(help="Rows with missing values: refuse or drop.", metavar="WHAT")] = "refuse",
    read: Read = None,
    worlds: Annotated[
        str,
        typer.Option(
            help="Possible worlds to simulate: a number; auto: 1,024 to 4,096, by sizes; doubling: while noise falls.",
            metavar="NUMBER",
        ),
    ] = "auto",
    design: Annotated[
        str,
        typer.Option(
            help="How the secret is drawn: worlds; bits (a coin for everybody, for sums, means, counts); matched (one "
            "of every two like people); central (halves near the pool's mean); auto: bits where it can be, worlds "
            "otherwise.",
            metavar="NAME",
        ),
    ] = "auto",
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
    backend: Backend = None,
    insecure: Insecure = False,
    title: Title = "",
    data_set: Annotated[
        str, typer.Option(help="What you call the data, for the public page.", metavar="WORDS", show_default=False)
    ] = "",
    issuer: Issuer = "",
    preview: Annotated[bool, typer.Option("--preview", help="Show expected errors and release nothing.")] = False,
    compare: Annotated[
        bool, typer.Option("--compare", help="Show what each promise would cost and release nothing.")
    ] = False,
    forget: Annotated[bool, typer.Option("--forget", help="Remove the plan after the release.")] = False,
    ledger: Annotated[
        str | None,
        typer.Option(help="Where releases are counted: sqlite:///file; beside the key if left out.", metavar="PLACE"),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="What the ledger calls the data; by their contents if left out.", metavar="NAME")
    ] = None,
    alone: Annotated[
        bool, typer.Option("--alone", help="Release once more, uncounted; the ledger writes it down.")
    ] = False,
    session: Annotated[
        bool, typer.Option("--session", help="Ask in the session of these data: one cap for all its answers.")
    ] = False,
    share: Annotated[
        float | None, typer.Option(help="In a session: of the clock, .01 if left out.", metavar="SHARE")
    ] = None,
    where: Annotated[
        str | None, typer.Option(help='In a session: which rows, as in "age > 40".', metavar="CONDITION")
    ] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Release a statistic or a model of a file, certified.

    Run the same command again to resume a run that was stopped or killed.

    Caps: membership=SUCCESS, pool=SUCCESS, mip=ETA, name=SUCCESS, precision=CLAIMS:AT_MOST, identification=SUCCESS,
    any=PRIOR:SUCCESS, mi=NATS, tpr=FPR:AT_MOST.
    """
    with ending("The same command goes on from here."):
        from leakcap.cli.release import ReleaseOrder, run
        from leakcap.tables.distilled import DISTILLED

        order = ReleaseOrder.of(_ordered(context))
        if order.fn == DISTILLED:
            from leakcap.cli.distil import run_distilled

            run_distilled(order, quiet, json)
            return
        if order.session:
            from leakcap.cli.session import run_in_session

            run_in_session(order, quiet, json)
            return
        run(order, quiet, json)


def labels_command(
    context: typer.Context,
    data: Data,
    column: Annotated[str, typer.Option(help="The column of labels.", show_default=False, metavar="NAME")],
    epsilon: Annotated[
        float, typer.Option(help="What a label may give away: 1 is private, 8 hardly.", show_default=False)
    ],
    out: Out,
    method: Annotated[
        str,
        typer.Option(
            help="responses (labels, one by one), statistics (a model of noised sums) or pate (noised votes of "
            "teachers).",
            metavar="NAME",
        ),
    ] = "responses",
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
        float | None, typer.Option(help="How often epsilon may fail; 1e-5 if left out.", metavar="SHARE")
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
    model: Annotated[
        str | None, typer.Option(help="For statistics: ridge (if left out), logistic, lda or bayes.", metavar="NAME")
    ] = None,
    teachers: Annotated[
        int | None, typer.Option(help="For pate: how many; by rows and classes if left out.", metavar="NUMBER")
    ] = None,
    features: Annotated[
        list[str] | None,
        typer.Option(help="Columns to learn from; all others if left out.", metavar="NAMES", show_default=False),
    ] = None,
    read: Read = None,
    missing_as: Annotated[
        str | None, typer.Option(help="Missing labels are a class of this name; refused if left out.", metavar="NAME")
    ] = None,
    title: Title = "",
    issuer: Issuer = "",
    again: Annotated[
        bool, typer.Option("--again", help="Privatise once more in the same folder, and count all of it.")
    ] = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Privatise the label column of a file, certified; or learn a model from it.

    This is for features that are public and labels that are not. By responses, all other columns leave as they are.
    By statistics and pate a model leaves, and what it predicts for every row.
    """
    with ending():
        from leakcap.cli.labels import LabelsOrder, run

        order = LabelsOrder(**_ordered(context))
        order.refuse_idle()
        if order.method != "responses":
            from leakcap.cli.label_models import run_model

            run_model(order, quiet, json)
            return
        run(order, quiet, json)


def _ordered(context: typer.Context) -> dict[str, Any]:
    """What was asked for; how much to say is not part of it. Some versions of typer leave paths as text."""
    order = {name: value for name, value in context.params.items() if name not in ("quiet", "json")}
    return order | {name: Path(order[name]) for name in ("data", "out")}


def party_command(
    data: Data,
    question: Annotated[
        Path,
        typer.Option(help="The agreed question, .json or .toml; the same at all.", show_default=False, metavar="FILE"),
    ],
    join: Annotated[
        str,
        typer.Option(
            help="Where all parties listen, in their order: a.org:7001,b.org:7001,c.org:7001.",
            show_default=False,
            metavar="HOST:PORT,...",
        ),
    ],
    party: Annotated[int, typer.Option(help="Which of them this is, from 1 on.", show_default=False, metavar="NUMBER")],
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the answer and its certificate.", show_default=False, metavar="FOLDER"),
    ] = None,
    tls: Annotated[
        Path | None,
        typer.Option(help="Folder with party.crt, party.key, parties.crt.", show_default=False, metavar="FOLDER"),
    ] = None,
    plain: Annotated[bool, typer.Option("--plain", help="No TLS: for networks that are closed to others.")] = False,
    seconds: Annotated[float, typer.Option(help="The longest that all of it may take.")] = 600.0,
    read: Read = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Answer a question together with other parties, without showing rows.

    Every party runs it at the same time, with rows of its own. All get the noisy answer and a certificate, and
    nobody anything else.
    """
    with ending():
        from leakcap.cli.party import PartyOrder, run

        order = PartyOrder(
            data=data,
            question=question,
            join=join,
            party=party,
            out=out,
            tls=tls,
            plain=plain,
            seconds=seconds,
            read=tuple(read or ()),
        )
        run(order, quiet, json)
