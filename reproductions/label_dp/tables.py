"""Tables 1, 2, 4 and 6 of the paper beside what was measured, from the files of all runs so far.

Only runs by a preset as it stands today enter a table; runs by other settings are listed below the tables, so that
nothing is chosen by its test accuracy without being seen.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from reproductions.label_dp import curator, published
from reproductions.label_dp.evidence import mechanism
from reproductions.label_dp.pictures import CLASSES, at_hand
from reproductions.label_dp.recipe import PRESETS, Recipe

NAMES = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}
METHODS = {"alibi": "ALIBI", "agibi": "AGIBI", "ours": "ours", "ceiling": "true labels", "naive": "naive k-RR"}

MECHANISMS = {"unary": "bits", "krr": "k-RR"}


def called(recipe: Recipe) -> str:
    """The method of a run in words, with the mechanism where it is not the preset's own."""
    with_it = f", {MECHANISMS[recipe.mechanism]}" if recipe.preset == "ours" and recipe.mechanism in MECHANISMS else ""
    return METHODS[recipe.preset] + with_it


@dataclass(frozen=True)
class Run:
    """One file: its recipe and what came out."""

    recipe: Recipe
    record: dict[str, Any]

    @property
    def per_cent(self) -> float:
        return 100 * float(self.record["accuracy"])

    @property
    def single_view(self) -> float:
        """The same without the mirror image: the paper speaks of none."""
        return 100 * float(self.record["accuracy_without_flip"])


def read(folders: Iterable[Path]) -> list[Run]:
    """All runs of all folders (and folders within); the same run found twice counts once."""
    found: dict[str, Run] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*.json")):
            record = json.loads(path.read_text(encoding="utf-8"))
            if isinstance(record, dict) and "recipe" in record and "accuracy" in record:
                found.setdefault(record["name"], Run(Recipe.from_dict(record["recipe"]), record))
    return list(found.values())


def standing(preset: str, epsilon: float | None, data: str, canaries: int = 0) -> Recipe:
    """The preset as the code has it now, seed 0."""
    return replace(PRESETS[preset](epsilon, 0, data), canaries=canaries)


def of(runs: Sequence[Run], recipe: Recipe) -> list[Run]:
    """The runs by this recipe, any seed."""
    return [run for run in runs if replace(run.recipe, seed=recipe.seed) == recipe]


def cell(runs: Sequence[Run], data: str) -> str:
    """Mean and spread over seeds, or why there is none."""
    if not runs:
        return "not run" if at_hand(data) else "data not at hand"
    values = [run.per_cent for run in runs]
    if len(values) == 1:
        return f"{values[0]:.1f} (1 seed)"
    return f"{statistics.mean(values):.1f} ± {statistics.stdev(values):.1f} ({len(values)} seeds)"


def single_view(runs: Sequence[Run]) -> str:
    """Mean over seeds of the accuracy without mirror images."""
    return f"{statistics.mean(run.single_view for run in runs):.1f}" if runs else "-"


def measured(runs: Sequence[Run], data: str) -> str:
    """The attacker's interval of epsilon at each threshold that was fixed beforehand."""
    if not runs:
        return "not run" if at_hand(data) else "data not at hand"
    parts = []
    found = runs[0].record["memorisation"]
    if isinstance(found, dict):
        return f"{found['epsilon_lower']:.1f} or more ({found['canaries']:,} canaries)"
    for attack in found:  # of runs before the audit was in the library
        upper = "∞" if attack["epsilon_upper"] is None else f"{attack['epsilon_upper']:.1f}"
        parts.append(f"{attack['epsilon_lower']:.1f}-{upper} ({attack['guesses']} guesses, τ {attack['threshold']:g})")
    return "; ".join(parts)


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def summary(runs: Sequence[Run]) -> str:
    """CIFAR-10 at each epsilon: ours, naive training, the best published with labels one by one; last, true labels."""
    rows = []
    for epsilon, (name, figure) in published.ONE_BY_ONE_CIFAR10.items():
        mine = of(runs, standing("ours", epsilon, "cifar10"))
        plain = cell(of(runs, standing("naive", epsilon, "cifar10")), "cifar10")
        used = ", ".join(sorted({run.record["mechanism"] for run in mine})) or "-"
        posteriors = [100 * run.record["posterior_accuracy"] for run in mine]
        right = f"{statistics.mean(posteriors):.1f}" if posteriors else "-"
        attack = measured(of(runs, standing("ours", epsilon, "cifar10", 1000)), "cifar10")
        best = f"{figure:.1f} ({name})"
        rows.append((f"{epsilon:g}", cell(mine, "cifar10"), single_view(mine), used, right, attack, plain, best))
    top = of(runs, standing("ceiling", None, "cifar10"))
    attack = measured(of(runs, standing("ceiling", None, "cifar10", 1000)), "cifar10")
    rows.append(("true labels", cell(top, "cifar10"), single_view(top), "-", "-", attack, "-", "-"))
    head = (
        "ε",
        "ours",
        "single view",
        "mechanism",
        "training labels recovered",
        "εm",
        "naive k-RR",
        "published, labels one by one",
    )
    return markdown(head, rows)


def short(runs: Sequence[Run]) -> str:
    """The table of docs/reproductions-labels.md: ours, naive training and what others published, by epsilon."""
    ours, curator = published.ONE_BY_ONE_CIFAR10, published.pate_fm("cifar10")
    rows = []
    for epsilon in sorted({*ours, *curator}):
        trusted = f"{curator[epsilon]:.1f}" if epsilon in curator else ""
        if epsilon not in ours:
            rows.append((f"{epsilon:g}", "", "", "", "", "", trusted))
            continue
        mine = of(runs, standing("ours", epsilon, "cifar10"))
        used = _described(mine[0].recipe) if mine else "-"
        naive = cell(of(runs, standing("naive", epsilon, "cifar10")), "cifar10")
        name, figure = ours[epsilon]
        alone = f"{figure:.1f} ({name})"
        rows.append((f"{epsilon:g}", cell(mine, "cifar10"), single_view(mine), used, naive, alone, trusted))
    top = of(runs, standing("ceiling", None, "cifar10"))
    rows.append(("true labels, same recipe", cell(top, "cifar10"), single_view(top), "", "", "", ""))
    head = (
        "ε",
        "ours",
        "single view",
        "mechanism (by `auto`)",
        "naive",
        "published, labels privatised one by one",
        f"published, trusted curator (PATE-FM, δ = {published.PATE_DELTA:.0e})".replace("e-05", "e-5"),
    )
    return markdown(head, rows)


def _described(recipe: Recipe) -> str:
    """The mechanism of a recipe in words."""
    chosen = mechanism(recipe, CLASSES[recipe.data])
    return f"subsets of {chosen.size}" if hasattr(chosen, "size") else "k-ary response"


def table_1_or_6(runs: Sequence[Run], table: int, folders: tuple[Path, ...] = curator.FOLDERS) -> str:
    """Accuracy and measured epsilon of each line, beside ours at the same epsilon in Table 1."""
    lines = published.TABLE_1 if table == 1 else published.TABLE_6
    rows = []
    for line in sorted(lines, key=lambda line: (line.data, -(line.accuracy or 0))):
        told = f"{line.epsilon:g}"
        if line.method == "PATE-FM":
            told, here, plain, attack = curator.pate_fm(line, folders)
        else:
            mine = of(runs, standing(line.method, line.epsilon, line.data))
            here, plain = cell(mine, line.data), single_view(mine)
            attack = measured(of(runs, standing(line.method, line.epsilon, line.data, 1000)), line.data)
        printed = f"{line.accuracy:.1f}" if line.accuracy is not None else "-"
        method = METHODS.get(line.method, line.method)
        rows.append((NAMES[line.data], line.level, method, told, printed, here, plain, line.measured or "-", attack))
        beside = curator.ours(line, folders) if line.method == "PATE-FM" else None
        if beside is not None:
            rows.append((NAMES[line.data], "", "ours, a curator", f"{line.epsilon:g}", "-", *beside, "-", "not run"))
    head = ("data", "level", "method", "ε", "published", "here", "single view", "εm, published", "εm, here")
    return markdown(head, rows)


def table_2(runs: Sequence[Run]) -> str:
    """CIFAR-100 at equal epsilon."""
    levels = list(published.TABLE_2["ALIBI"])
    rows = [(f"{name}, published", *(f"{row[e]:.1f}" for e in levels)) for name, row in published.TABLE_2.items()]
    for preset in ("alibi", "ours"):
        cells = (cell(of(runs, standing(preset, e, "cifar100")), "cifar100") for e in levels)
        rows.append((f"{METHODS[preset]}, here", *cells))
    return markdown(("method", *(f"ε = {e:g}" for e in levels)), rows)


def table_4(runs: Sequence[Run]) -> str:
    """Settings of ALIBI: the paper's, tuned for each accuracy, and ours, one for all."""
    rows = []
    for data, lr, decay, accuracy, epsilon in published.TABLE_4:
        mine = standing("alibi", epsilon, data)
        here = (f"{mine.peak_lr:g} (peak)", f"{mine.weight_decay:g}", cell(of(runs, mine), data))
        rows.append((NAMES[data], f"{epsilon:g}", f"{lr:g}", f"{decay:.3g}", f"{accuracy:.1f}", *here))
    head = ("data", "ε", "rate", "decay", "accuracy, published", "rate here", "decay here", "accuracy, here")
    return markdown(head, rows)


def others(runs: Sequence[Run]) -> str:
    """Runs whose settings differ from today's preset: tuning, toy runs, earlier settings."""
    groups: dict[Recipe, list[Run]] = {}
    for run in runs:
        recipe = replace(run.recipe, seed=0)
        if recipe != standing(recipe.preset, recipe.epsilon, recipe.data, recipe.canaries):
            groups.setdefault(recipe, []).append(run)
    rows = []
    for recipe, mine in sorted(groups.items(), key=lambda pair: pair[0].name):
        change = recipe.against(standing(recipe.preset, recipe.epsilon, recipe.data))
        level = "-" if recipe.epsilon is None else f"{recipe.epsilon:g}"
        rows.append((recipe.preset, level, change, mine[0].record["judged_on"], cell(mine, recipe.data)))
    return markdown(("preset", "ε", "differs in", "judged on", "accuracy"), rows) if rows else "none\n"


def page(runs: Sequence[Run]) -> str:
    """All tables as one Markdown page."""
    devices = ", ".join(sorted({str(run.record["device"]) for run in runs})) or "nothing yet"
    seconds = sum(float(run.record["seconds"]) for run in runs)
    gaussian = (
        "The Gaussian lines take the printed ε with δ = 1e-5 and the right sensitivity: other noise than the paper's.\n"
    )
    parts = [
        "# Training on private labels: the paper's tables beside ours\n",
        f"{len(runs)} runs on {devices}, {seconds:.0f} s in all (runs that share a GPU overlap). Accuracy: averaged "
        "last weights, mean of a picture and its mirror image; no checkpoint is chosen.\n",
        "## CIFAR-10 in short\n",
        summary(runs),
        "## Table 1\n",
        table_1_or_6(runs, 1),
        "## Table 2 (CIFAR-100)\n",
        table_2(runs),
        "## Table 4\n",
        table_4(runs),
        "## Table 6\n",
        table_1_or_6(runs, 6),
        gaussian,
        "## Other settings\n",
        others(runs),
    ]
    return "\n".join(parts)
