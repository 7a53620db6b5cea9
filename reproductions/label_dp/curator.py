"""Runs in which a curator is trusted with all labels, beside the lines of Table 1: PATE-FM, and sums of ours."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

from reproductions.label_dp.published import Row
from reproductions.label_dp.table3 import SETTINGS

HERE = Path(__file__).parent
FOLDERS = (HERE / "measured", HERE / "central" / "measured")
NOT_RUN = ("not run", "-", "not run")


def pate_fm(line: Row, folders: tuple[Path, ...] = FOLDERS) -> tuple[str, str, str, str]:
    """Of a line of PATE-FM: its epsilons, accuracy, that of a single view, and the measured epsilon."""
    setting = next((one for one in SETTINGS if (one.data, one.epsilon) == (_name(line), line.epsilon)), None)
    mine = [] if setting is None else [run for run in _runs(folders, "pate-fm-*.json") if _is(run, setting)]
    if not mine:
        return (f"{line.epsilon:g}", *NOT_RUN)
    first = mine[0]
    epsilons = (
        f"{first['epsilon']:.3g} certified, {first['epsilon_by_votes']:.3g} by the votes ({line.epsilon:g} printed)"
    )
    attacked = [run["memorisation"] for run in mine if "memorisation" in run]
    lower = (
        f"{attacked[0]['epsilon_lower']:.1f} or more ({attacked[0]['canaries']:,} canaries)" if attacked else "not run"
    )
    return epsilons, _mean(mine, "accuracy"), _mean(mine, "accuracy_without_flip"), lower


def ours(line: Row, folders: tuple[Path, ...] = FOLDERS) -> tuple[str, str] | None:
    """Sums and self-training at the epsilon of a line: accuracy, and that of a single view; None if it was not run."""
    if line.data != "cifar10":
        return None
    found = _runs(folders, "central-eps*.json")
    mine = [run for run in found if run["epsilon"] == line.epsilon and run["judged_on"] == "test pictures"]
    return (_mean(mine, "accuracy"), _mean(mine, "accuracy_without_flip")) if mine else None


def _runs(folders: tuple[Path, ...], pattern: str) -> list[dict[str, Any]]:
    return [json.loads(path.read_text(encoding="utf-8")) for folder in folders for path in sorted(folder.glob(pattern))]


def _is(run: dict[str, Any], setting: Any) -> bool:
    """Whether a run has the teachers and the noise of a line."""
    wanted = {name: getattr(setting, name) for name in ("teachers", "sigma1", "sigma2", "threshold", "answers")}
    return all(run["settings"].get(name) == value for name, value in wanted.items())


def _mean(runs: list[dict[str, Any]], name: str) -> str:
    count = f"{len(runs)} seed{'s' if len(runs) > 1 else ''}"
    return f"{100 * statistics.mean(run[name] for run in runs):.1f} ({count})"


def _name(line: Row) -> str:
    return {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}[line.data]
