"""Run a list of recipes, one JSON a run; runs whose file exists are not repeated.

`python -m reproductions.label_dp.runs --list table --out FOLDER --workers 3 --seconds 540`: several processes share one
GPU (each fills the others' gaps) and take the next run of the list in turn. No run starts that would end after
`--seconds`. A run that fails leaves `NAME.error.txt`, and the others go on. Files of several occasions may lie in one
folder. `--set epochs=30 prior=own` changes settings of every run in the list.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import multiprocessing
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from leakcap.errors import InputError
from reproductions.label_dp.pictures import at_hand, pictures
from reproductions.label_dp.recipe import Recipe
from reproductions.label_dp.tuning import LISTS

POLL_SECONDS = 0.2


def train(recipe: Recipe, data: Any, conditions: Conditions, say: Callable[[str], None]) -> dict[str, Any]:
    """One run with torch, which is loaded here and nowhere earlier."""
    torch = importlib.import_module("torch")
    experiment = importlib.import_module("reproductions.label_dp.experiment")
    device = torch.device(conditions.device)
    return experiment.Experiment(recipe, data, device, compiled=conditions.compiled, say=say).run()


@dataclass(frozen=True)
class Conditions:
    """Where results go and how runs are made; none of it changes what a run is."""

    out: Path
    device: str
    compiled: bool
    deadline: float  # by time.time()
    quiet: bool = False
    make: Callable[..., dict[str, Any]] = train


def result(folder: Path, recipe: Recipe) -> Path:
    """The file of a run."""
    return folder / f"{recipe.name}.json"


def write(path: Path, record: dict[str, Any]) -> None:
    """All of the file or none of it."""
    half = path.with_suffix(f".{os.getpid()}.half")
    half.write_text(json.dumps(record, indent=1), encoding="utf-8")
    os.replace(half, path)


def run_one(recipe: Recipe, conditions: Conditions, data: Any) -> dict[str, Any]:
    """Train by one recipe and write its file."""

    def say(line: str) -> None:
        if not conditions.quiet:
            print(f"{recipe.name}: {line}", flush=True)

    record = conditions.make(recipe, data, conditions, say)
    write(result(conditions.out, recipe), record)
    result(conditions.out, recipe).with_suffix(".error.txt").unlink(missing_ok=True)
    say(
        f"accuracy {record['accuracy']:.4f} (last weights {record['accuracy_last_weights']:.4f}), "
        f"{record['seconds']:.0f} s, {record['pictures_per_second']:,.0f} pictures/s"
    )
    return record


def _work(recipes: list[Recipe], conditions: Conditions, following: Any, pace: Any) -> None:
    """A worker process: take the next run until none is left or none would end in time.

    A failure ends the process (a GPU in error stays in error); another takes its place.
    """
    loaded: dict[str, Any] = {}
    while True:
        with following.get_lock():
            place = following.value
            following.value += 1
        if place >= len(recipes):
            return
        recipe = recipes[place]
        forecast = pace.value * recipe.passes
        if time.time() + forecast > conditions.deadline:
            print(f"{recipe.name}: not started, needs about {forecast:.0f} s", flush=True)
            continue
        try:
            if recipe.data not in loaded:
                loaded[recipe.data] = pictures(recipe.data)
            record = run_one(recipe, conditions, loaded[recipe.data])
        except BaseException as error:
            text = "".join(traceback.format_exception(error))
            result(conditions.out, recipe).with_suffix(".error.txt").write_text(text, encoding="utf-8")
            print(f"{recipe.name}: failed, {type(error).__name__}; see its .error.txt", flush=True)
            sys.exit(1)
        pace.value = max(pace.value, record["seconds"] / recipe.passes)


def run_all(recipes: Sequence[Recipe], conditions: Conditions, workers: int = 1) -> list[Recipe]:
    """Make the runs that have no file yet, in order, and return those that still have none."""
    conditions.out.mkdir(parents=True, exist_ok=True)
    todo = []
    for recipe in recipes:
        if result(conditions.out, recipe).is_file() or recipe in todo:
            continue
        if at_hand(recipe.data):
            todo.append(recipe)
        else:
            print(f"{recipe.name}: data not at hand", flush=True)
    context = multiprocessing.get_context("spawn")
    following, pace = context.Value("i", 0), context.Value("d", 0.0)

    def hire() -> Any:
        worker = context.Process(target=_work, args=(todo, conditions, following, pace))
        worker.start()
        return worker

    staff = [hire() for _ in range(min(workers, len(todo)))]
    while staff:
        time.sleep(POLL_SECONDS)
        for worker in [worker for worker in staff if not worker.is_alive()]:
            staff.remove(worker)
            if worker.exitcode and following.value < len(todo):
                staff.append(hire())
    return [recipe for recipe in recipes if not result(conditions.out, recipe).is_file()]


def changed(recipes: Sequence[Recipe], settings: Sequence[str]) -> list[Recipe]:
    """The recipes with `name=value` settings applied to each."""
    known = {field.name for field in fields(Recipe)}
    values: dict[str, Any] = {}
    for setting in settings:
        name, _, text = setting.partition("=")
        if name not in known:
            raise InputError(f"there is no setting {name}; there are {', '.join(sorted(known))}")
        try:
            values[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            values[name] = text
    return [replace(recipe, **values) for recipe in recipes]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--list", nargs="+", choices=sorted(LISTS), default=["table"], help="which runs, in this order")
    parser.add_argument("--out", type=Path, default=Path("reproductions/out/label_dp"))
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start nothing that ends later")
    parser.add_argument("--device", default=None, help="cuda if there is one")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--first", type=int, default=None, help="only so many runs of the list")
    parser.add_argument("--epsilons", type=float, nargs="+", default=None, help="only runs at these epsilons")
    parser.add_argument("--seeds", type=int, nargs="+", default=None, help="only runs with these seeds")
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="change settings of every run")
    parser.add_argument("--show", action="store_true", help="print the list and its state, run nothing")
    given = parser.parse_args(arguments)
    recipes = changed([recipe for name in given.list for recipe in LISTS[name]()], given.set)
    recipes = [r for r in recipes if given.epsilons is None or r.epsilon in given.epsilons]
    recipes = [r for r in recipes if given.seeds is None or r.seed in given.seeds][: given.first]
    if given.show:
        for recipe in recipes:
            print("done" if result(given.out, recipe).is_file() else "    ", recipe.name)
        return 0
    began = time.time()
    device = given.device or ("cuda" if importlib.import_module("torch").cuda.is_available() else "cpu")
    left = run_all(recipes, Conditions(given.out, device, given.compile, began + given.seconds), given.workers)
    print(f"{len(recipes) - len(left)} of {len(recipes)} runs have a file; {time.time() - began:.0f} s")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
