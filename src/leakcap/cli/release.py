"""`leakcap release`: from a file to a public and a custodian's folder. The same command resumes it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from rich.markup import escape

from leakcap.caps import Cap, PoolMembership
from leakcap.certificates.release import Certificate
from leakcap.certificates.text import in_short, promise
from leakcap.cli.limits import limits
from leakcap.cli.promises import print_promises
from leakcap.cli.terminal import Terminal, plain, seconds_in_words
from leakcap.cli.workers import backend_of
from leakcap.custody.folders import Folders
from leakcap.custody.ledger import AccountAt, default_place, open_book
from leakcap.custody.ledger.accounts import checked_name, record_alone
from leakcap.custody.signing import own_signer
from leakcap.errors import AlreadyReleased, BudgetError, InputError
from leakcap.ground.cores import threads as cores
from leakcap.planning.plans import Plan
from leakcap.report.numbers import decimals_for, neat, outward, shown
from leakcap.report.release.files import custodian_files, public_files, table_of
from leakcap.report.release.page import Answer
from leakcap.tables.distilled import DISTILLED
from leakcap.tables.files import digest_of
from leakcap.tables.models import MODELS, ask_model
from leakcap.tables.questions import ON_GRID, Question, ask

__all__ = ["ReleaseOrder", "account_of", "print_answer", "print_certificate", "refuse_second", "run"]

MAX_ROWS = 20  # outputs on the terminal
BOUNDED = ("mean", "sum", "covariance")  # need bounds under a pool cap; what is counted needs none


@dataclass(frozen=True, kw_only=True)
class ReleaseOrder:
    """What is asked on the command line."""

    data: Path
    fn: str
    cap: tuple[str, ...]
    out: Path
    columns: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    bounds: tuple[str, ...] = ()
    rows_per_unit: int | None = None
    unit: str | None = None
    strata: tuple[str, ...] = ()
    q: tuple[float, ...] = ()
    bins: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    grid: tuple[str, ...] = ()
    missing: str = "refuse"
    read: tuple[str, ...] = ()
    worlds: str = "auto"
    design: str = "auto"
    rate: str = "1/2"
    mode: str = "exact"
    confidence: float = 1 - 1e-6
    draws: int | None = None
    clip: str | None = None
    drop: tuple[str, ...] = ()
    public: tuple[str, ...] = ()
    workers: int | None = None
    backend: str | None = None
    insecure: bool = False
    title: str = ""
    data_set: str = ""
    issuer: str = ""
    preview: bool = False
    compare: bool = False
    forget: bool = False
    ledger: str | None = None
    name: str | None = None
    alone: bool = False
    session: bool = False
    share: float | None = None
    where: str | None = None
    target: str | None = None
    setting: tuple[str, ...] = ()
    teacher: str | None = None
    public_rows: Path | None = None
    public_share: float | None = None

    @classmethod
    def of(cls, given: dict[str, Any]) -> ReleaseOrder:
        """From the command's parameters; what was not given keeps its default."""
        known: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in given.items()
            if value is not None
        }
        return cls(**known)

    @property
    def is_of_own(self) -> bool:
        """Whether it is neither counted nor added up by leakcap itself."""
        return ":" in self.fn or self.fn in MODELS

    def _refuse_what_models_lack(self) -> None:
        idle = [name for name in ("by", "strata", "q", "bins", "levels", "grid", "drop") if getattr(self, name)]
        if idle or self.compare:
            raise InputError(f"leave out --{idle[0] if idle else 'compare'}: it is for statistics, and this is a model")

    def question(self, caps: Sequence[Cap]) -> Question:
        """What is asked of the file, which is read for it."""
        if self.teacher or self.public_rows or self.public_share is not None:
            raise InputError(f"--teacher, --public-rows and --public-share are for --fn {DISTILLED}")
        if self.fn in MODELS:
            self._refuse_what_models_lack()
            return ask_model(
                self.data,
                self.fn,
                columns=self.columns,
                target=self.target,
                settings=self.setting,
                unit=self.unit,
                missing=self.missing,
                read=self.read,
            )
        if self.target is not None or self.setting:
            raise InputError(f"--target and --setting are for models: --fn {', '.join(MODELS)}")
        quantiles = {"q": self.q} if self.q else {}
        return ask(
            self.data,
            self.fn,
            columns=_split(self.columns),
            unit=self.unit,
            strata=_split(self.strata),
            missing=self.missing,
            read=self.read,
            bins=self.bins,
            levels=self.levels,
            grid=self.grid,
            by=self.by,
            declared=any(isinstance(cap, PoolMembership) for cap in caps),
            **quantiles,
        )


def run(order: ReleaseOrder, quiet: bool = False, json: bool = False) -> None:
    """Plan, release once, write; all that was done before is taken up."""
    if order.share is not None or order.where is not None:
        raise InputError("--share and --where are for questions in a session: add --session")
    started = time.monotonic()
    terminal = Terminal(quiet, json)
    caps = limits(order.cap)
    rate, clip = _share(order.rate), _bounds(order.clip)
    _refuse_undeclared(order, caps)
    refuse_second(order.out)
    signer = own_signer()  # before anything is spent: a key that cannot be used must not cost a release
    terminal.tell(signer.news())
    question = order.question(caps)
    terminal.heading(question.title)
    for note in question.notes:
        terminal.note(note)
    folders = Folders.under(order.out)
    folders.sweep()
    bounds = _declared(order, question.columns)
    account = account_of(order)
    for_table = order.compare and not _of_pool(caps)
    with (
        terminal.heeding(),
        terminal.watching() as watch,
        backend_of(order.backend, order.workers, order.insecure) as backend,
    ):
        planned = question.planned(
            cap=caps,
            worlds=_worlds(order.worlds),
            design=order.design,
            bounds=None if for_table else bounds,
            rows_per_unit=None if for_table else order.rows_per_unit,
            rate=rate,
            ledger=None if order.alone else account,
            clip=clip,
            mode=order.mode,
            confidence=order.confidence,
            draws=order.draws,
            public=order.public,
            **_dropped(order),
            workers=cores() if order.workers is None else order.workers,
            backend=backend,
            progress=watch,
            checkpoint=folders.plan,
        )
    if order.compare:
        print_promises(planned.compare(bounds, order.rows_per_unit), terminal)
        return
    if order.preview:
        _print_costs(planned, question, terminal)
        return
    seconds = time.monotonic() - started  # before the release: how long that takes is nobody's business
    if order.alone and planned.released_certificate is None:
        record_alone(open_book(account.place), account.name, account.version, question.title)
    with terminal.heeding(), _way_on(account):
        released = question.finished(planned.release())
    answer = table_of(
        released,
        order.title or question.title,
        question.names,
        issuer=order.issuer,
        data_set=order.data_set,
        date=date.today().isoformat(),
        scaled=not order.is_of_own,  # what leakcap counts or adds up itself
    )
    people = None if question.unit is None else np.unique(question.unit)
    for name, text in custodian_files(planned, answer, caps, people).items():
        folders.keep(name, text)
    folders.publish(signer.signed(public_files(released, answer, signer.fingerprint)))
    if order.forget:
        planned.forget()
    print_answer(answer, terminal)
    for note in released.notes:
        terminal.note(note)
    print_certificate(planned.certificate, terminal)
    terminal.heading(f"Planned in {seconds_in_words(seconds)}, released and written")
    _print_folders(folders, order.forget, terminal)
    terminal.result(_facts(planned.certificate, answer, folders))


def account_of(order: ReleaseOrder) -> AccountAt:
    """Of the file: known by its contents, whichever columns are asked for, however it is read, wherever it lies."""
    version = digest_of(order.data)
    name = checked_name(order.name) if order.name else f"file {version[:32]}"
    return AccountAt(order.ledger or default_place(), name, version, by_rows=order.unit is None)


@contextmanager
def _way_on(account: AccountAt) -> Iterator[None]:
    """What the ledger refuses, with what can be done on the command line."""
    try:
        yield
        return
    except (AlreadyReleased, BudgetError) as error:
        words = str(error)
    raise AlreadyReleased(
        f"{words}. The ledger knows these data as {account.name!r}. --session asks in a session of these data, from "
        "the first question on; --alone releases them nevertheless, uncounted, and writes that down"
    )


def _of_pool(caps: Iterable[Cap]) -> bool:
    return any(isinstance(cap, PoolMembership) for cap in caps)


def _split(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.strip() for word in words for name in word.split(",") if name.strip())


def _worlds(worlds: str) -> int | str:
    if worlds.strip() in ("auto", "doubling"):
        return worlds.strip()
    try:
        return int(worlds.replace(",", ""))
    except ValueError:
        raise InputError("--worlds must be a number, such as 1024, or auto, or doubling") from None


def _share(rate: str) -> float:
    top, _, bottom = rate.partition("/")
    try:
        return float(top) / float(bottom or 1)
    except (ValueError, ZeroDivisionError):
        raise InputError("--rate must be a share such as 1/2, 1/3, 2/3 or 0.25") from None


def _refuse_undeclared(order: ReleaseOrder, caps: Sequence[Cap]) -> None:
    """What a pool cap and coins for everybody need beside the data, in the words of the command."""
    sums = _of_pool(caps) or (order.design, order.mode) == ("bits", "exact")
    if sums and order.fn in ON_GRID and not order.grid and not order.by:
        raise InputError(
            f"a {order.fn} under a pool cap or with --design bits is made of counts between cut points that are known "
            "without looking at the data: --grid 0:100:5 for all columns, or --grid age=0:100:5 for one"
        )
    if not _of_pool(caps):
        return
    if order.fn in BOUNDED and not order.bounds:
        raise InputError(
            f"a pool cap on a {order.fn} needs the least and the largest value of every column, known without looking "
            "at the data: --bounds 0,100 for all columns, or --bounds age=0,120 for one"
        )
    if order.unit is not None and order.rows_per_unit is None and ":" not in order.fn:  # blocks need none
        raise InputError(
            "a pool cap with --unit needs --rows-per-unit, the most rows that one unit may bring: further ones are "
            "left out"
        )


def _declared(order: ReleaseOrder, columns: tuple[str, ...]) -> Any:
    """Bounds as `plan` takes them, from `0,100` for all columns or `age=0,120` for one."""
    pairs = [_pair(word) for word in order.bounds]
    if not pairs:
        return None
    if order.fn in MODELS:
        return _of_model(pairs, columns)
    if ":" in order.fn:
        return _of_own(pairs)
    if order.fn not in BOUNDED:
        raise InputError(
            f"--bounds are for {', '.join(BOUNDED)}, and for additive functions of your own, under a pool cap: leave "
            "them out"
        )
    ends: dict[str, tuple[float, float]] = {}
    for name, pair in pairs:
        if name and name not in columns:
            raise InputError(f"--bounds names column {name!r}, which is not among those asked about")
        ends |= {column: pair for column in ([name] if name else columns) if name or column not in ends}
    absent = [column for column in columns if column not in ends]
    if absent:
        raise InputError(
            f"no bounds for column {absent[0]!r}: every column needs some, such as --bounds {absent[0]}=0,100"
        )
    return [ends[column][0] for column in columns], [ends[column][1] for column in columns]


def _of_model(pairs: list[tuple[str, tuple[float, float]]], columns: tuple[str, ...]) -> Any:
    """By name, so that the range of the target is told apart; one pair without a name is for all columns."""
    of_all = next((pair for name, pair in pairs if not name), None)
    found = {} if of_all is None else dict.fromkeys(columns, of_all)
    return found | {name: pair for name, pair in pairs if name}


def _of_own(pairs: list[tuple[str, tuple[float, float]]]) -> Any:
    """Bounds of what a function of one's own adds up: by name, one pair for all, or one for each number."""
    names = [name for name, _ in pairs]
    if all(names):
        return dict(pairs)
    if any(names):
        raise InputError("--bounds of a function of your own go either all by name or all by their order")
    ends = [pair for _, pair in pairs]
    return ends[0] if len(ends) == 1 else ([low for low, _ in ends], [high for _, high in ends])


def _pair(word: str) -> tuple[str, tuple[float, float]]:
    name, _, ends = word.rpartition("=")
    try:
        low, high = (float(end) for end in ends.split(","))
    except ValueError:
        raise InputError("--bounds must be two numbers, such as --bounds 0,100 or --bounds age=0,120") from None
    return name.strip(), (low, high)


def _dropped(order: ReleaseOrder) -> dict[str, Any]:
    """What an estimator does not release; models of ours know that themselves."""
    return {} if order.fn in MODELS else {"drop": _split(order.drop)}


def _bounds(clip: str | None) -> tuple[float, float] | None:
    if clip is None:
        return None
    try:
        low, high = map(float, clip.split(","))
    except ValueError:
        raise InputError("--clip must be two numbers, such as --clip 0,100") from None
    return low, high


def refuse_second(out: Path) -> None:
    """A finished release is never made again in its place."""
    if (out / "public").exists():
        raise AlreadyReleased(
            f"{out} holds a finished release: nothing was done. Keep that answer. A second release of the same data, "
            "in another folder, would have a secret of its own, and neither certificate covers both"
        )


def print_answer(answer: Answer, terminal: Terminal) -> None:
    """The released numbers and their error bars."""
    terminal.say("")
    terminal.table(("released", "answer", f"{100 * answer.level:g} % interval"), _rows(answer))
    if len(answer.names) > MAX_ROWS:
        terminal.say(f"... and {len(answer.names) - MAX_ROWS:,} more in answer.csv")


def print_certificate(certificate: Certificate, terminal: Terminal) -> None:
    """What is promised, in short."""
    terminal.heading("What the best attacker can do with it")
    if certificate.is_guarantee and (certificate.of_inputs or 0.5 < certificate.membership_success < 1):
        terminal.say(promise(certificate))
    terminal.table(("", "before", "after, at most"), in_short(certificate))
    if not certificate.only_one_person and certificate.posterior(0.01) > 0.2:
        terminal.say("Caps on one person say little about questions that concern many at once: see the last line.")
    for figure in certificate.capped:
        kept = "kept" if figure.certified <= figure.limit else "NOT KEPT"
        terminal.say(f"Cap {kept}: {figure.meaning}")


def _print_folders(folders: Folders, forgotten: bool, terminal: Terminal) -> None:
    published = ", ".join(sorted(path.name for path in folders.public.iterdir()))
    terminal.say(f"[bold]{escape(str(folders.public))}[/bold]: may be published. {published}")
    kept = "report.html, exposure.csv" + ("" if forgotten else ", plan")
    terminal.say(f"[bold]{escape(str(folders.custodian))}[/bold]: for you alone. {kept}")


def _facts(certificate: Certificate, answer: Answer, folders: Folders) -> dict[str, Any]:
    return {
        "public": str(folders.public),
        "custodian": str(folders.custodian),
        "kind": certificate.kind,
        "membership_success_at_most": certificate.membership_success,
        "caps": [
            {"cap": figure.cap, "limit": figure.limit, "certified": figure.certified} for figure in certificate.capped
        ],
        "outputs": len(answer.names),
        **({} if certificate.mode == "pool" else {"units": certificate.units}),
    }


def _rows(answer: Answer) -> list[tuple[str, str, str]]:
    if answer.low is None or answer.high is None:
        return [(name, neat(float(answer.values[i]), 6), "") for i, name in enumerate(answer.names[:MAX_ROWS])]
    rows = []
    for i, name in enumerate(answer.names[:MAX_ROWS]):
        value, low, high = float(answer.values[i]), float(answer.low[i]), float(answer.high[i])
        places = decimals_for((high - low) / 2)
        if low == high:
            rows.append((name, neat(value, 6), "exact"))
        else:
            rows.append((name, shown(value, places), " to ".join(outward(low, high, places))))
    return rows


def _print_costs(planned: Plan, question: Question, terminal: Terminal) -> None:
    """What the answer will be worth, before anything leaves."""
    summary = planned.summary()
    names = question.names or summary.names
    rows = [
        (name, *(neat(float(x[i])) for x in (summary.answer, summary.error, summary.halving, summary.noise)))
        for i, name in enumerate(names[:MAX_ROWS])
    ]
    terminal.say("")
    terminal.table(("expected errors (for you alone)", "whole pool", "error", "halving", "noise"), rows)
    if len(summary.answer) > MAX_ROWS:
        terminal.say(f"... and {len(summary.answer) - MAX_ROWS:,} more")
    for hint in summary.hints:
        terminal.say(plain(hint.replace("plan.compare()", "--compare")))
    terminal.say("Nothing was released. The same command without --preview releases, and runs no world again.")
    errors = {name: float(error) for name, error in zip(names, summary.error, strict=False)}
    terminal.result({"preview": True, "expected_errors": errors, "hints": list(summary.hints)})
