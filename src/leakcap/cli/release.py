"""`leakcap release`: from a file to a public and a custodian's folder. The same command resumes it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.markup import escape

from leakcap.cli.answers import custodian_files, public_files, table_of
from leakcap.cli.folders import Folders
from leakcap.cli.limits import limits
from leakcap.cli.questions import Question, ask
from leakcap.cli.terminal import Terminal, seconds_in_words
from leakcap.cores import threads as cores
from leakcap.errors import AlreadyReleased, InputError
from leakcap.planning import plan
from leakcap.releases import Plan
from leakcap.report.numbers import decimals_for, neat, outward, shown
from leakcap.report.page import Answer
from leakcap.wording import in_short
from leakcap.worlds.draw import as_share

__all__ = ["Order", "run"]

SHOWN = 20  # outputs on the terminal


@dataclass(frozen=True, kw_only=True)
class Order:
    """What is asked on the command line."""

    data: Path
    fn: str
    cap: tuple[str, ...]
    out: Path
    columns: tuple[str, ...] = ()
    unit: str | None = None
    strata: tuple[str, ...] = ()
    q: tuple[float, ...] = ()
    bins: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    missing: str = "refuse"
    worlds: str | None = None
    rate: str = "1/2"
    mode: str = "exact"
    confidence: float = 1 - 1e-6
    draws: int | None = None
    clip: str | None = None
    drop: tuple[str, ...] = ()
    public: tuple[str, ...] = ()
    workers: int | None = None
    title: str = ""
    issuer: str = ""
    preview: bool = False
    forget: bool = False

    @classmethod
    def of(cls, given: dict[str, Any]) -> Order:
        """From the command's parameters; what was not given keeps its default."""
        known: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in given.items()
            if value is not None
        }
        return cls(**known)

    def question(self) -> Question:
        asked = {"q": self.q} if self.q else {}
        columns, strata = _split(self.columns), _split(self.strata)
        return ask(
            self.data, self.fn, columns, self.unit, strata, self.missing, bins=self.bins, levels=self.levels, **asked
        )


def run(order: Order, quiet: bool = False, json: bool = False) -> None:
    """Plan, release once, write; all that was done before is taken up."""
    started = time.monotonic()
    terminal = Terminal(quiet, json)
    caps = limits(order.cap)
    rate, clip = _share(order.rate), _bounds(order.clip)
    refuse_second(order.out)
    question = order.question()
    terminal.heading(question.title)
    for note in question.notes:
        terminal.note(note)
    folders = Folders.under(order.out)
    folders.sweep()
    with terminal.watching() as watch:
        made = plan(
            question.fn,
            question.data,
            cap=caps,
            worlds=_worlds(order.worlds, rate),
            rate=rate,
            unit=question.unit,
            strata=question.strata,
            clip=clip,
            mode=order.mode,
            confidence=order.confidence,
            draws=order.draws,
            public=(*question.public, *order.public),
            drop=_split(order.drop),
            workers=cores() if order.workers is None else order.workers,
            progress=watch,
            checkpoint=folders.plan,
        )
    if order.preview:
        _tell_costs(made, question, terminal)
        return
    seconds = time.monotonic() - started  # before the release: how long that takes is nobody's business
    released = made.release()
    answer = table_of(released, order.title or question.title, question.names, order.issuer)
    people = None if question.unit is None else np.unique(question.unit)
    for name, text in custodian_files(made, answer, caps, people).items():
        folders.keep(name, text)
    folders.publish(public_files(released, answer))
    if order.forget:
        made.forget()
    _tell(made, answer, folders, terminal, seconds, order.forget)


def _split(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.strip() for word in words for name in word.split(",") if name.strip())


def _worlds(worlds: str | None, rate: float) -> int | str:
    if worlds is None:
        parts = as_share(rate).denominator
        return -(-1024 // parts) * parts
    if worlds.strip() == "auto":
        return "auto"
    try:
        return int(worlds.replace(",", ""))
    except ValueError:
        raise InputError("--worlds must be a number, such as 1024, or auto") from None


def _share(rate: str) -> float:
    top, _, bottom = rate.partition("/")
    try:
        return float(top) / float(bottom or 1)
    except (ValueError, ZeroDivisionError):
        raise InputError("--rate must be a share such as 1/2, 1/3, 2/3 or 0.25") from None


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


def _tell(made: Plan, answer: Answer, folders: Folders, terminal: Terminal, seconds: float, forgotten: bool) -> None:
    certificate = made.certificate
    terminal.say("")
    terminal.table(("released", "answer", f"{100 * answer.level:g} % interval"), _rows(answer))
    if len(answer.names) > SHOWN:
        terminal.say(f"... and {len(answer.names) - SHOWN:,} more in answer.csv")
    terminal.heading("What the best attacker can do with it")
    terminal.table(
        ("", "before", "after, at most"),
        in_short(certificate),
    )
    if certificate.posterior(0.01) > 0.2:
        terminal.say("Caps on one person say little about questions that concern many at once: see the last line.")
    for one in certificate.capped:
        kept = "kept" if one.certified <= one.limit else "NOT KEPT"
        terminal.say(f"Cap {kept}: {one.meaning}")
    terminal.heading(f"Planned in {seconds_in_words(seconds)}, released and written")
    published = ", ".join(sorted(path.name for path in folders.public.iterdir()))
    terminal.say(f"[bold]{escape(str(folders.public))}[/bold]: may be published. {published}")
    kept = "report.html, exposure.csv" + ("" if forgotten else ", plan")
    terminal.say(f"[bold]{escape(str(folders.custodian))}[/bold]: for you alone. {kept}")
    terminal.result(
        {
            "public": str(folders.public),
            "custodian": str(folders.custodian),
            "kind": certificate.kind,
            "membership_success_at_most": certificate.membership_success,
            "caps": [{"cap": one.cap, "limit": one.limit, "certified": one.certified} for one in certificate.capped],
            "outputs": len(answer.names),
            "units": certificate.units,
        }
    )


def _rows(answer: Answer) -> list[tuple[str, str, str]]:
    if answer.low is None or answer.high is None:
        return [(name, neat(float(answer.values[i]), 6), "") for i, name in enumerate(answer.names[:SHOWN])]
    rows = []
    for i, name in enumerate(answer.names[:SHOWN]):
        value, low, high = float(answer.values[i]), float(answer.low[i]), float(answer.high[i])
        places = decimals_for((high - low) / 2)
        if low == high:
            rows.append((name, neat(value, 6), "exact"))
        else:
            rows.append((name, shown(value, places), " to ".join(outward(low, high, places))))
    return rows


def _tell_costs(made: Plan, question: Question, terminal: Terminal) -> None:
    """What the answer will be worth, before anything leaves."""
    summary = made.summary()
    names = question.names or summary.names
    rows = [
        (name, *(neat(float(x[i])) for x in (summary.answer, summary.error, summary.halving, summary.noise)))
        for i, name in enumerate(names[:SHOWN])
    ]
    terminal.say("")
    terminal.table(("expected errors (for you alone)", "whole pool", "error", "halving", "noise"), rows)
    if len(summary.answer) > SHOWN:
        terminal.say(f"... and {len(summary.answer) - SHOWN:,} more")
    terminal.say("Nothing was released. The same command without --preview releases, and runs no world again.")
    errors = {name: float(error) for name, error in zip(names, summary.error, strict=False)}
    terminal.result({"preview": True, "expected_errors": errors})
