"""Rows for docs/benchmarks.md from the files in `measured/`: what was asked and what was seen, in a line each."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.records import FOLDER as RECORDS
from benchmarks.records import Record

from leakcap.certificates.layout import rounded_up
from reproductions.pac_privacy.output import MEASURED, RUNS

__all__ = ["made", "store"]

Lines = Sequence[dict[str, str]]


def made(folder: Path = MEASURED) -> list[Record]:
    """A record for each file that is kept, with the machine and the date of its run."""
    runs = {line["file"]: line for line in _read(folder / RUNS)} if (folder / RUNS).is_file() else {}
    found = []
    for name, (claim, asked, seen) in TOLD.items():
        path = folder / f"{name}.csv"
        if path.is_file():
            run = runs[path.name]
            found.append(
                Record(
                    name=f"pac-privacy-{name.replace('_', '-')}",
                    topic="Reproductions",
                    claim=claim,
                    command=run["command"],
                    machine=run["machine"],
                    date=run["date"],
                    asked=asked,
                    seen=seen(_read(path)),
                )
            )
    return found


def store(folder: Path = RECORDS) -> None:
    """Write them; `python -m benchmarks page` shows them."""
    for one in made():
        one.store(folder)


def _read(path: Path) -> Lines:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _norm(lines: Lines, game: str, rule: str) -> str:
    (found,) = [float(line["noise_norm"]) for line in lines if (line["game"], line["rule"]) == (game, rule)]
    return f"{found:,.0f}" if found >= 100 else f"{found:.3g}"


def _example_1(lines: Lines) -> str:
    at = {line["n"]: line for line in lines}
    figures = float(at["1"]["theorem_1"]), float(at["10"]["theorem_2"]), float(at["50"]["theorem_2"])
    return ", ".join(f"{rounded_up(figure, 5):.5f}" for figure in figures)


def _example_2(lines: Lines) -> str:
    told = []
    for rule in ("Algorithm 2, halves", "the paper's rule, halves", "log-det, halves", "leakcap, 1,024 known halves"):
        apart, joint = (_norm(lines, game, rule) for game in ("beside each other", "joint"))
        told.append(f"{rule}: {apart} one by one, {joint} jointly")
    return "; ".join(told)


def _example_3(lines: Lines) -> str:
    rules = ("the paper's rule", "log-det", "Algorithm 2")
    coins, sized = ([_norm(lines, game, rule) for rule in rules] for game in ("coins", "halves of one size"))
    pairs = "; ".join(f"{rule} {a} and {b}" for rule, a, b in zip(rules, coins, sized, strict=True))
    plug = _norm(lines, "halves of one size", "the paper's rule, plug-in of 100 halves")
    ours = "; ".join(
        f"{line['rule']}: {float(line['noise_norm']):.3g}" for line in lines if line["rule"].startswith("leakcap")
    )
    return f"{pairs}; zCDP {_norm(lines, 'coins', 'zCDP')}; plug-in of 100 halves {plug}; {ours}"


def _example_4(lines: Lines) -> str:
    rules = [line for line in lines if line["rule"].startswith("exact") or line["rule"].endswith(" 16 halves")]
    return "; ".join(
        f"{line['pixels']}, {line['rule']}: norm {float(line['noise_norm']):.3g}, {float(line['before']):.1%} to "
        f"{float(line['after']):.1%}" + (f", {float(line['seconds']):.0f} s" if line.get("seconds") else "")
        for line in rules
    )


def _example_5(lines: Lines) -> str:
    return "; ".join(
        f"{float(line['nats']):g} nats: (14) {float(line['equation_14']):.3g} of a difference of "
        f"{float(line['difference']):.3g}"
        + (
            f", which half {float(line['known_half']):.3g}, optimised {float(line['known_half_optimised']):.3g}, no "
            f"less than {float(line['known_half_lower_bound']):.3g}"
            if line["known_half"]
            else ""
        )
        for line in lines
    )


def _example_6(lines: Lines) -> str:
    games = list(dict.fromkeys(line["game"] for line in lines))
    all_of_them = games[0]
    told = [
        f"{_norm(lines, all_of_them, rule)} by {rule}" for rule in ("the paper's rule", "local DP (zCDP)", "log-det")
    ]
    ours = [f"{game}: {_norm(lines, game, 'leakcap.local.publish')}" for game in games[1:]]
    return ", ".join(told) + "; leakcap.local.publish, " + ", ".join(ours)


def _composition(lines: Lines) -> str:
    first, second = lines
    times = float(first["told_by_each"]) / float(first["charged_for_each"])
    return (
        f"a question tells {times:.0f} times what it is charged; {float(first['success']):.1%} of coins right where "
        f"{float(first['charged']):.0f} nats were charged and {float(first['told_at_least']):.0f} told at least; with "
        f"a fixed pattern {float(second['success']):.1%}; a session: {first['session_answers']}"
    )


# For each file: the claim, what was asked, and how the figures are said.
TOLD: dict[str, tuple[str, str, Callable[[Lines], str]]] = {
    "example_1": (
        "PAC Privacy, Example 1: success at one of n records, one nat; n = 1, 10, 50",
        ".35730, .14893, .06791 (the paper: .36, .17, .06)",
        _example_1,
    ),
    "example_2": (
        "PAC Privacy, Example 2, on heart disease: noise on two averages, half a nat each, and jointly at one nat",
        "less noise jointly (the paper, other patients: 7.32 and 4.57)",
        _example_2,
    ),
    "example_3": (
        "PAC Privacy, Example 3: norm of the noise on the mean of half of 60,000 pictures, one nat; coins and halves "
        "of one size",
        "the paper's rule .718 and .658, log-det .713 and .657, Algorithm 2 6.73 and 3.12, zCDP 17.7, plug-in .281 "
        "(the paper: .28, 3.94, 17.7)",
        _example_3,
    ),
    "example_4": (
        "PAC Privacy, Example 4: a network of 784-30-30-10 on half of MNIST, 1,024 halves on a GPU",
        "under five minutes (the paper: norm 3.7, 94.8 % to 93.5 %)",
        _example_4,
    ),
    "example_5": (
        "PAC Privacy, Example 5: noise for all records less noise for one, against (14) of the mean's covariance; "
        "total variances",
        "the difference is at least (14)",
        _example_5,
    ),
    "example_6": (
        "PAC Privacy, Example 6: norm of the noise on a published picture, one nat",
        "161 by the paper's rule, 2,172 by local DP (the paper: 1.6e2, 2.2e3)",
        _example_6,
    ),
    "composition": (
        "PAC Privacy, Algorithm 4: questions in the light of noisy answers",
        "undercharged 69-fold; a session refuses",
        _composition,
    ),
}
