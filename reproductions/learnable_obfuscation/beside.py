"""Others' accounts of the same cells, what learnable noise adds, and the mask itself: tables of the page."""

from __future__ import annotations

from functools import cache

import numpy as np

from leakcap.obfuscation.comparators import best_valid, compared
from leakcap.obfuscation.reverse import AssumedRows, IfAssumptionsHeld, reverse_engineering
from leakcap.obfuscation.sampled import MixingLaw, all_class_pairs
from reproductions.learnable_obfuscation.cells import Cell, cells_of
from reproductions.learnable_obfuscation.published import COLUMNS, POOL, RECONSTRUCTION_PRIOR, TABLES, Setting
from reproductions.learnable_obfuscation.told import Measured, named, number, success
from reproductions.marked import grid

__all__ = ["comparators", "law_of_setting", "learnable", "mask_itself"]

CLASSES, FEATURES = 10, 1280
# Theorem 7: a map that is off by a tenth of a row's length, for all but a row in a hundred; rows as if they were even
# over the sphere, which embeddings are not.
ERROR, MISSED = 0.1, 0.01
EVEN = AssumedRows(spread=FEATURES**-0.5, tail=(2 / FEATURES) ** 0.5)


@cache
def law_of_setting(setting: Setting, pool: int = POOL) -> MixingLaw:
    """The public rules of a setting on a pool with as many rows of every class."""
    n, m, k = setting
    labels = np.repeat(np.arange(CLASSES), pool // CLASSES)
    return MixingLaw(labels, n // CLASSES, k, all_class_pairs(CLASSES, m // CLASSES**2), COLUMNS)


def comparators(records: Measured) -> str:
    """Cells of Table 3: balanced success by every valid account, and others' figures beside what is printed."""
    rows = []
    for cell in cells_of(4):
        found = records("member", cell)
        bounds = compared(
            law_of_setting(cell.setting),
            cell.noise,
            certified=found.get("success_certified"),
            log_det_nats=found.get("log_det_nats_estimate"),
            trace_nats=found.get("trace_nats_estimate"),
            prior=RECONSTRUCTION_PRIOR,
        )
        told = {bound.name: bound.success for bound in bounds}
        printed = {table: TABLES[table][cell.setting][cell.noise].beside for table in (1, 3)}
        best = best_valid(bounds)
        rows.append(
            [
                named(cell.setting),
                f"{cell.noise:g}",
                *(success(told.get(name)) for name in ("pairs", "log-det", "Type I", "RDP")),
                f"{best.name}: {success(best.success)}" if found else "",
                number(printed[3]),
                number(1 - told["DP"]),
                number(printed[1]),
                number(1 - told["RDP printed"], 2),
                number(1 - told["RDP rebuilt"], 2),
                success(told["DP-CDA"]),
            ]
        )
    heads = ["(n, m, k)", "noise", "pairs (ours, certified)", "log-det (ours)", "Type I", "RDP", "lowest valid"]
    heads += ["(14), paper", "(14), valid", "(3), paper", "(3), its account", "(3), valid", "DP-CDA"]
    return grid(heads, rows)


def learnable(records: Measured) -> str:
    """Settings that both kinds have: the same noise with public rows, and the accuracy at equal certified success."""
    rows = []
    for cell in cells_of(5):
        plain = Cell(cell.setting, cell.noise)
        if cell.noise == 0 or cell.setting not in TABLES[3]:
            continue
        pair = [records("member", one) for one in (plain, cell)]
        right = [records("accuracy", one).get("network") for one in (plain, cell)]
        mean = pair[1].get("mean_success_certified")
        equal = _accuracy_at(records, cell.setting, mean)
        gain = "" if equal is None or right[1] is None else f"{100 * (right[1] - equal):+.1f}"
        rows.append(
            [
                named(cell.setting),
                f"{cell.noise:g}",
                *(success(one.get("success_certified")) for one in pair),
                *(success(one.get("mean_success_certified")) for one in pair),
                *("" if one is None else f"{100 * one:.1f}" for one in right),
                gain,
            ]
        )
    heads = ["(n, m, k)", "noise", "worst row", "with public rows", "mean", "with public rows", "accuracy"]
    return grid([*heads, "with public rows", "points at equal mean success"], rows)


def _accuracy_at(records: Measured, setting: Setting, mean: float | None) -> float | None:
    """Accuracy of plain cells of the setting at this certified mean success, on straight lines between noises."""
    points = []
    for noise in TABLES[3][setting]:
        cell = Cell(setting, noise)
        told, right = records("member", cell), records("accuracy", cell)
        if told and right:
            points.append((told["mean_success_certified"], right["network"]))
    points.sort()
    if mean is None or len(points) < 2 or not points[0][0] <= mean <= points[-1][0]:
        return None
    return float(np.interp(mean, *zip(*points, strict=True)))


def mask_itself(records: Measured) -> str:
    """Theorem 7 for the cells of Table 1, if its assumptions held."""
    rows, last = [], None
    for cell in cells_of(1):
        found = records("whole", cell)
        if cell.noise == 0 or not found:
            continue
        nats = min(found["trace_nats_estimate"], found["log_det_nats_estimate"]) + found["mask_nats_estimate"]
        last = imitated(nats)
        rows.append(
            [named(cell.setting), f"{cell.noise:g}", number(nats), f"{last.log_prior:,.0f}", number(last.success)]
        )
    if last is None:
        return "*Not measured yet.*\n"
    return grid(["(n, m, k)", "noise", "nats about the mask", "log of the prior", "success, if"], rows) + f"\n{last}\n"


def imitated(nats: float) -> IfAssumptionsHeld:
    return reverse_engineering(nats, shape=(FEATURES, COLUMNS), error=ERROR, missed=MISSED, assumed=EVEN)
