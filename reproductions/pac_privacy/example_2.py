"""Example 2: two averages of the same half, each at half a nat, and both together at one.

The paper takes 100 patients that it does not give. Here it is heart disease (Cleveland): the averages of age and
cholesterol, and those of blood pressure and heart rate, over halves of one size. What the paper shows is seen on any
table: analysed together, the two need less noise than one by one. `--patients FILE.csv` makes the same of other
patients, with the paper's figures beside; its columns must begin with age, weight, and two of blood pressure.

By Algorithm 2, which knows distances alone, noise is the same in every direction. "Joint" there and by the other rules
is one noise on all four averages. leakcap's parts are those of `plan_together`: `compose` adds up their certificates.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

import leakcap as lc
from leakcap.certificates.layout import rounded_up
from leakcap.datasets import heart_disease
from leakcap.errors import InputError
from reproductions.pac_privacy.output import Row, arguments, bars, printed, written
from reproductions.pac_privacy.rules import (
    Floats,
    algorithm_2,
    least_noise,
    norm,
    papers_noise,
    share_in_halves,
)

__all__ = ["closed_forms", "main", "patients"]

COLUMNS = ("age", "chol", "trestbps", "thalach")
EACH, BOTH = 0.5, 1.0
PARTS = {"first": slice(0, 2), "second": slice(2, 4)}
# Of the paper: the two alone, both beside each other, and jointly.
PRINTED = {"first": 6.85, "second": 2.60, "beside each other": 7.32, "joint": 4.57}


def patients(path: Path | None = None) -> Floats:
    """`(patients, 4)`: the columns of both averages."""
    if path is None:
        return np.asarray(heart_disease()[list(COLUMNS)].dropna().to_numpy(dtype=float))
    table = pd.read_csv(path).iloc[:, :4]
    if table.shape[1] != 4 or not all(kind.kind in "if" for kind in table.dtypes):
        raise InputError("the first four columns must be numbers: age, weight, and two of blood pressure")
    return np.asarray(table.dropna().to_numpy(dtype=float))


def closed_forms(rows: Floats, papers: bool = False) -> list[Row]:
    """By Algorithm 2, by the paper's other rule and by log-det, from the covariance over halves of one size.

    With `papers`, also over halves drawn with replacement: the paper does not say, and its figures are larger.
    """
    chosen = len(rows) // 2
    ways = {"halves": share_in_halves(len(rows), chosen)} | ({"with replacement": 1 / chosen} if papers else {})
    found = []
    for game, share in ways.items():
        covariance = share * np.cov(rows.T, bias=True)
        for rule, noise in (
            ("Algorithm 2", lambda part, nats: algorithm_2(np.trace(part), len(part), nats)),
            ("the paper's rule", lambda part, nats: papers_noise(np.linalg.eigvalsh(part).clip(0), nats)),
            ("log-det", lambda part, nats: least_noise(np.linalg.eigvalsh(part).clip(0), nats)),
        ):
            alone = {name: noise(covariance[place, place], EACH) for name, place in PARTS.items()}
            norms = {name: norm(one) for name, one in alone.items()}
            norms["beside each other"] = norm(np.concatenate(list(alone.values())))
            norms["joint"] = norm(noise(covariance, BOTH))
            for what, size in norms.items():
                printed_norm = PRINTED[what] if papers and _is_papers(rule, what) else None
                found.append(
                    Row(what, f"{rule}, {game}", EACH if what in PARTS else BOTH, size, printed_norm, "information")
                )
    return found


def _is_papers(rule: str, what: str) -> bool:
    """Whether the paper's figure is of this rule: it names Algorithm 2 for each alone, and none for the joint one."""
    return rule == ("the paper's rule" if what == "joint" else "Algorithm 2")


def certified(rows: Floats, worlds: int = 1024) -> list[Row]:
    """`plan_together`: each alone, both beside each other by `compose`, and jointly."""
    both = lc.plan_together(
        [_first, _second],
        rows,
        cap=lc.mutual_information(BOTH),
        worlds=worlds,
        weights="equal",
        progress=False,
    )
    parts = both.apart(lc.mutual_information(EACH))
    noise = [part.noise.output_deviations**2 for part in parts]
    rule = f"leakcap, {worlds:,} known halves"
    found = [
        Row(
            name,
            rule,
            EACH,
            norm(one),
            None,
            f"certified: {rounded_up(part.certificate.mutual_information, 4):.4f} nats",
        )
        for name, part, one in zip(PARTS, parts, noise, strict=True)
    ]
    told = f"certified: {rounded_up(both.composed().mutual_information, 4):.4f} nats, added up from covariances"
    found.append(Row("beside each other", rule, BOTH, norm(np.concatenate(noise)), None, told))
    told = f"certified: {rounded_up(both.certificate.mutual_information, 4):.4f} nats"
    found.append(Row("joint", rule, BOTH, norm(both.noise.output_deviations**2), None, told))
    return found


def _first(rows: Floats) -> Floats:
    return np.asarray(rows[:, PARTS["first"]].mean(axis=0))


def _second(rows: Floats) -> Floats:
    return np.asarray(rows[:, PARTS["second"]].mean(axis=0))


def main(given: Sequence[str] | None = None) -> list[Row]:
    """`example_2.csv`, a picture, and a table."""
    options = arguments("Example 2 of PAC Privacy", given, patients="CSV file of other patients")
    rows = patients(options.patients)
    table = closed_forms(rows, papers=options.patients is not None) + certified(rows, 64 if options.quick else 1024)
    written("example2", table, options)
    bars(table, "Example 2: two averages of one half", options.out / "example_2")
    printed(table)
    return table


if __name__ == "__main__":
    main()
