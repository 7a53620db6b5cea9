"""The tables of the page, from the records: what is printed, what was measured, and what either says.

A cell without a record is empty; `missing` says how many there are. Failures and successes are shares.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from leakcap import convert
from leakcap.certificates.layout import rounded_up
from reproductions.learnable_obfuscation.arithmetic import (
    nats_behind,
    papers_failure,
    printed_members,
    right_failure,
    trials_of,
)
from reproductions.learnable_obfuscation.cells import KINDS, Cell, cells_of, read_record
from reproductions.learnable_obfuscation.insider import RELEASES
from reproductions.learnable_obfuscation.published import (
    ATTACKED,
    POOL,
    RECONSTRUCTION_PRIOR,
    TABLES,
    PrintedCell,
    Setting,
)
from reproductions.marked import NOT_RUN, grid

__all__ = [
    "Measured",
    "accuracy",
    "attacked",
    "attacked_again",
    "attacked_words",
    "missing",
    "named",
    "number",
    "one_member",
    "printed_figures",
    "reconstruction",
    "shared_out",
    "success",
    "trials",
    "unencoded",
]

NATS, GAMMA = 0.01, 1e-6  # of Theorem 6: the error that is allowed, and how often it may be exceeded
POINTS = 3.0  # accuracy of encoded rows without noise, beside the same rows un-encoded


class Measured:
    """Records in a folder: `records("member", cell)` is a record, or one in which every figure is missing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, kind: str, cell: Cell) -> dict[str, Any]:
        return read_record(self.folder, kind, cell) or {}


def named(setting: Setting) -> str:
    """`(1K, 2K, 5)`."""
    n, m, k = setting
    return f"({n // 1000}K, {m // 1000}K, {k})"


def number(value: float | None, digits: int = 3) -> str:
    """So many digits, and whole numbers from a thousand on; nothing where nothing was measured."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.{digits}g}"


def success(value: float | None) -> str:
    """A bound, rounded up."""
    return "" if value is None else f"{rounded_up(value, 4):.4f}"


def _per_cent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f}"


def _share(value: float | None) -> str:
    return "" if value is None else f"{max(value, 0.0):.2f}"


def wanted() -> Iterator[tuple[str, Cell]]:
    """Every record that the page is made of."""
    found: dict[tuple[str, Cell], None] = {}
    for table, kinds in KINDS.items():
        for kind in kinds:
            found |= {(kind, cell): None for cell in cells_of(table) if kind == "accuracy" or cell.noise > 0}
    return iter(found)


def missing(records: Measured) -> str:
    """What has not been measured."""
    every = list(wanted())
    lost = [(kind, cell) for kind, cell in every if not records(kind, cell)]
    if not lost:
        return f"All {len(every)} records are there.\n"
    each = {kind: [cell.name for other, cell in lost if other == kind] for kind, _ in lost}
    words = "; ".join(
        f"{kind}: {len(names)} ({', '.join(sorted(names)[:4])}{', ...' if len(names) > 4 else ''})"
        for kind, names in each.items()
    )
    return f"*Not measured yet: {len(lost)} of {len(every)} records. {words}.*\n"


def _plain(table: int, setting: Setting, noise: float) -> PrintedCell | None:
    return TABLES[table].get(setting, {}).get(noise)


def accuracy(records: Measured, first: int, second: int) -> str:
    """Accuracies of two tables that share their cells, as printed and as measured."""
    rows = []
    for cell in cells_of(first):
        found = records("accuracy", cell)
        printed = [_plain(table, cell.setting, cell.noise) for table in (first, second)]
        bare = [_per_cent(found.get(name)) for name in ("unencoded_network", "unencoded_ridge")]
        rows.append(
            [
                named(cell.setting),
                f"{cell.noise:g}",
                *("" if one is None else f"{one.accuracy:.1f}" for one in printed),
                _per_cent(found.get("network")),
                _per_cent(found.get("ridge")),
                *([] if cell.learnable else bare),
            ]
        )
    heads = ["(n, m, k)", "noise", f"Table {first}", f"Table {second}", "network", "ridge"]
    return grid(heads + ([] if first == 2 else ["network, un-encoded", "ridge, un-encoded"]), rows)


def unencoded(records: Measured) -> str:
    """Whether encoding alone costs little: in words."""
    found = [(cell, records("accuracy", cell)) for cell in cells_of(1) if cell.noise == 0]
    have = [(cell, one) for cell, one in found if "unencoded_network" in one]
    if not have:
        return NOT_RUN
    lines = []
    for name in ("network", "ridge"):
        lost = [100 * (one[f"unencoded_{name}"] - one[name]) for _, one in have]
        within = sum(value <= POINTS for value in lost)
        lines.append(
            f"* {name}: {min(lost):.1f} to {max(lost):.1f} points below the same rows un-encoded; within "
            f"{POINTS:.0f} points in {within} of {len(have)} settings."
        )
    return "\n".join(lines) + "\n"


def reconstruction(records: Measured, table: int) -> str:
    """Tables 1 and 2: whole-sample nats, shared out over the pool as the paper does, and over the sampled."""
    rows = []
    prior = RECONSTRUCTION_PRIOR
    for cell in cells_of(table):
        printed = TABLES[table][cell.setting][cell.noise]
        if printed.failure is None:
            continue
        found = records("whole", cell)
        nats = min(found["trace_nats_estimate"], found["log_det_nats_estimate"]) if found else None
        each = None if nats is None else nats / POOL
        sampled = None if nats is None else nats / cell.setting[0]
        behind = nats_behind(printed.failure, prior)
        rows.append(
            [
                named(cell.setting),
                f"{cell.noise:g}",
                _share(printed.failure),
                number(behind * POOL),
                number(nats),
                _share(None if each is None else 1 - float(convert.posterior(each, prior))),
                number(sampled),
                _share(None if sampled is None else 1 - float(convert.posterior(sampled, prior))),
            ]
        )
    heads = ["(n, m, k)", "noise", "failure, paper", f"nats behind it, times {POOL:,}", "nats, ours"]
    return grid([*heads, f"failure, over {POOL:,}", "nats, over n", "failure, over n"], rows)


def shared_out(records: Measured) -> str:
    """How the nats behind Tables 1 and 2 compare with the whole sample's, in words."""
    lines = []
    for table in (1, 2):
        ratios = []
        for cell in cells_of(table):
            printed, found = TABLES[table][cell.setting][cell.noise], records("whole", cell)
            if printed.failure is not None and found:
                nats = min(found["trace_nats_estimate"], found["log_det_nats_estimate"])
                ratios.append(nats / (POOL * nats_behind(printed.failure, RECONSTRUCTION_PRIOR)))
        if ratios:
            lines.append(
                f"* Table {table}: ours are {min(ratios):.2g} to {max(ratios):.2g} times those behind the printed "
                f"figures ({len(ratios)} cells, half of them below {float(np.median(ratios)):.2g})."
            )
    return "\n".join(lines) + "\n" if lines else NOT_RUN


def printed_figures() -> str:
    """What is wrong with Tables 3 and 5, in words."""
    every = list(printed_members())
    above = [cell for cell in every if cell.nats > cell.entropy]
    times = [cell.nats / cell.entropy for cell in every]
    return (
        f"In {len(above)} of {len(every)} cells the nats behind the printed figure are more than the entropy of the "
        f"bit: {min(times):.2f} to {max(times):.1f} times as many. Put right, every one of the {len(above)} says "
        '"an attacker who claims as often as rows are sampled is wrong in 0 % of claims, or more".\n'
    )


def one_member(records: Measured, table: int) -> str:
    """Tables 3 and 5: the figure, both conversions, the entropy of the bit, and balanced success as certified."""
    rows = []
    for printed in printed_members():
        if printed.table != table:
            continue
        cell = Cell(printed.setting, printed.noise, table == 5)
        found = records("member", cell)
        nats = found.get("trace_nats_estimate")
        rows.append(
            [
                named(cell.setting),
                f"{cell.noise:g}",
                _share(printed.failure),
                number(printed.nats),
                number(printed.entropy),
                _share(right_failure(printed.nats, printed.rate)),
                number(nats),
                _share(None if nats is None else papers_failure(nats, found["rate"])),
                _share(None if nats is None else right_failure(nats, found["rate"])),
                number(found.get("log_det_nats_estimate")),
                success(found.get("success_certified")),
                success(found.get("mean_success_certified")),
            ]
        )
    heads = ["(n, m, k)", "noise", "failure, paper", "nats behind it", "entropy of the bit", "put right"]
    heads += ["nats, ours", "paper's conversion", "right conversion", "log-det nats", "certified, worst row", "mean"]
    return grid(heads, rows)


def attacked(records: Measured) -> str:
    """Table 4: how often the paper's attack failed, and what ours got, beside what is certified."""
    rows = []
    for cell in cells_of(4):
        found, member = records("attack", cell), records("member", cell)
        seen = f"{found['balanced_success']:.3f} ± {found['error']:.3f}" if found else ""
        size = f"{found['releases']} x {found['simulated']}" if "simulated" in found else ""
        below = _compared(found["balanced_success"], found["error"], member) if found and member else ""
        rows.append(
            [
                named(cell.setting),
                f"{cell.noise:g}",
                _share(ATTACKED[cell.setting][cell.noise]),
                _share(1 - cell.setting[0] / POOL),
                size,
                seen,
                _share(found.get("recognised")),
                _share(found.get("false_alarms")),
                success(member.get("success_certified")),
                below,
            ]
        )
    heads = [
        "(n, m, k)",
        "noise",
        "failed, paper",
        "a blind claim fails",
        "releases x samples",
        "balanced success, ours",
    ]
    return grid([*heads, "recognised", "false alarms", "certified", "below"], rows)


def attacked_again(records: Measured) -> str:
    """Who knows all but one row, and the paper's attack as printed, in every cell of Tables 3 and 5."""
    rows = []
    for cell in (one for table in (3, 5) for one in cells_of(table) if one.noise > 0):
        inside, printed, member = (records(kind, cell) for kind in ("insider", "printed", "member"))
        rows.append(
            [
                named(cell.setting) + (" and public rows" if cell.learnable else ""),
                f"{cell.noise:g}",
                _interval(inside),
                _interval(printed),
                _share(printed.get("failed_as_printed")),
                _share(printed.get("claimed_of_others")),
                success(member.get("success_certified")),
                success(member.get("mean_success_certified")),
                "yes" if _all_below(cell, records) else "" if not (inside and member) else "NO",
            ]
        )
    heads = ["(n, m, k)", "noise", "insider", "as printed", "its failures, counted as printed"]
    return grid([*heads, "its claims of others", "certified, worst row", "mean", "below"], rows)


def attacked_words(records: Measured) -> str:
    """What these attacks show, in words."""
    cells = [one for table in (3, 5) for one in cells_of(table) if one.noise > 0]
    inside = [(cell, records("insider", cell)) for cell in cells if records("insider", cell)]
    printed = [records("printed", cell) for cell in cells if records("printed", cell)]
    if not inside or not printed:
        return NOT_RUN
    seen = [one["balanced_success"] for _, one in inside]
    shows = sum(one["low"] > 0.5 for _, one in inside)
    below = sum(_all_below(cell, records) for cell, _ in inside)
    failures = [one["failed_as_printed"] for one in printed]
    apart = [abs(one["failed_as_printed"] - 1 + one["claimed_of_others"]) for one in printed]
    chance = sum(one["low"] <= 0.5 <= one["high"] for one in printed)
    return (
        f"The insider gets {min(seen):.3f} to {max(seen):.3f} ({len(inside)} cells of {len(cells)}, {RELEASES} "
        f"releases of 100 targets each), above a coin flip beyond its interval in {shows} and "
        f"not above the bound in {below}. "
        f"The attack as printed is at chance in {chance} of {len(printed)} cells. Counted as the paper counts it fails "
        f"in {min(failures):.2f} to {max(failures):.2f} of claims, far less than a blind one, and claims others as "
        f"often as members (the two differ by {max(apart):.3f} at most).\n"
    )


def _all_below(cell: Cell, records: Measured) -> bool:
    """Whether what the insider got is not above what is certified."""
    inside, member = records("insider", cell), records("member", cell)
    return bool(inside and member) and inside["balanced_success"] <= member["success_certified"]


def _interval(found: dict[str, Any]) -> str:
    return f"{found['balanced_success']:.3f} ({found['low']:.3f} to {found['high']:.3f})" if found else ""


def _compared(seen: float, error: float, member: dict[str, Any]) -> str:
    """Whether an attack got no more than is certified; its own error is three deviations at most."""
    over = seen - member["success_certified"]
    return "yes" if over <= 0 else "within its error" if over <= 3 * error else "NO"


def trials(records: Measured) -> str:
    """Draws by Theorem 6, printed and mended, beside those that were made here, for the largest noise of Table 3."""
    rows = []
    for cell in cells_of(3):
        if cell.noise != max(TABLES[3][cell.setting]):
            continue
        found = trials_of(cell.setting, cell.noise, nats=NATS, gamma=GAMMA)
        asked = (found.nine, found.nine_mended, found.nine_traces, found.ten, found.ten_mended, found.ten_tangent)
        made = records("member", cell).get("draws")
        rows.append([named(cell.setting), *map(_of_ten, asked), "" if made is None else f"{made:,}"])
    heads = ["(n, m, k)", "(9), printed", "(9), m for its root", "(9), by traces"]
    heads += ["(10), printed", "(10), corrected", "(10), by the tangent", "our draws"]
    return grid(heads, rows)


def _of_ten(logarithm: float) -> str:
    """A number by its decimal logarithm; the next power of ten where it has more than twenty digits."""
    if logarithm > 20:
        return f"10^{int(np.ceil(logarithm)):,}"
    return f"{10**logarithm:.1e}"
