"""`python -m reproductions.label_dp.fixmatch --labels 250 --seconds 480 --out FOLDER`: a few true labels of CIFAR-10.

No privacy: this is what teachers and student of PATE-FM can do by themselves. One JSON a run; a run whose file exists
is not repeated. As many labelled pictures of each class, drawn by the seed. `--smoke`: toys, on two cores. `--told`:
what the kept runs reached, for the docs.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from benchmarks.records import record

import leakcap as lc
from reproductions.label_dp.central.__main__ import toy_pictures
from reproductions.label_dp.central.store import write_json
from reproductions.label_dp.network import network
from reproductions.label_dp.pictures import Pictures, pictures

MEASURED = Path(__file__).parent / "measured"
SMOKE = {"steps": 20, "batch_size": 16, "mu": 2}


def some_labels(y: np.ndarray, labels: int, classes: int, seed: int) -> np.ndarray:
    """The labels with all but `labels` of them unknown, as many of each class."""
    draw, known = np.random.default_rng(seed), np.full(len(y), -1)
    for name in range(classes):
        rows = draw.choice(np.flatnonzero(y == name), labels // classes, replace=False)
        known[rows] = name
    return known


def classifier(kind: str, width: float, device: str, **settings: Any) -> Any:
    """FixMatch with a network of this folder."""
    module = network(kind, 10, width, torch.device("cpu"))
    return lc.labels.FixMatch(module, device=device, **settings)


def run(data: Pictures, model: Any, labels: int, seed: int) -> dict[str, Any]:
    """Train and judge on the test pictures, with and without their mirror images."""
    began = time.perf_counter()
    model.fit(data.x_train, some_labels(data.y_train, labels, data.n_classes, seed))
    passed = time.perf_counter() - began
    alone = model.predict_proba(data.x_test)
    both = alone + model.predict_proba(np.ascontiguousarray(data.x_test[:, :, ::-1]))
    return {
        "labels": labels,
        "seed": seed,
        "accuracy": float((both.argmax(1) == data.y_test).mean()),
        "accuracy_without_flip": float((alone.argmax(1) == data.y_test).mean()),
        "judged_on": "test pictures",
        "steps": model.n_steps_,
        "taught_share": model.taught_share_,
        "seconds": passed,
        "pictures_per_second": model.n_steps_ * model.batch_size * (1 + 2 * model.mu) / passed,
        "settings": {name: value for name, value in model.get_params(deep=False).items() if name != "module"},
        "torch": torch.__version__,
        "leakcap": lc.__version__,
    }


def told(folder: Path = MEASURED) -> str:
    """The kept runs in words."""
    runs = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("fixmatch-*.json"))]
    return ", ".join(
        f"{100 * run['accuracy']:.1f} % with {run['labels']} labels ({run['steps']:,} steps, {run['seconds']:.0f} s)"
        for run in runs
    )


def keep_told() -> None:
    """The row of docs/benchmarks.md."""
    record(
        "label-dp-fixmatch",
        told(),
        machine="one H200",
        topic="Reproductions",
        claim="FixMatch on CIFAR-10, no privacy: what teachers and student of PATE-FM can do in eight minutes",
        command="python -m reproductions.label_dp.fixmatch",
        asked="at least 88 % with 250 labels",
    )


def prepared(device: str) -> None:
    """The fast ways of a GPU."""
    if device == "cuda":
        torch.backends.cudnn.benchmark = True
        torch.set_float32_matmul_precision("high")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--labels", type=int, default=250)
    parser.add_argument("--seconds", type=float, default=480.0, help="of training")
    parser.add_argument("--out", type=Path, default=Path("reproductions/out/label_dp_fixmatch"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--network", default="resnet9")
    parser.add_argument("--width", type=float, default=1.0)
    parser.add_argument("--learning-rate", type=float, default=0.03)
    parser.add_argument("--steps", type=int, default=2**20)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--told", action="store_true")
    given = parser.parse_args(arguments)
    if given.told:
        keep_told()
        return 0
    given.out.mkdir(parents=True, exist_ok=True)
    path = given.out / f"fixmatch-{given.labels}-seed{given.seed}.json"
    if path.is_file():
        print(f"{path.name}: done before")
        return 0
    prepared(given.device)
    torch.manual_seed(given.seed)
    settings = {"steps": given.steps, "seconds": given.seconds, "learning_rate": given.learning_rate}
    settings |= {"random_state": given.seed, "compiled": given.compile, **(SMOKE if given.smoke else {})}
    model = classifier(given.network, 0.125 if given.smoke else given.width, given.device, **settings)
    found = run(toy_pictures() if given.smoke else pictures("cifar10"), model, given.labels, given.seed)
    found |= {"network": given.network, "width": given.width}
    write_json(path, found)
    print(f"accuracy {found['accuracy']:.4f}, {found['accuracy_without_flip']:.4f}; {found['steps']} steps, ")
    print(f"{found['pictures_per_second']:,.0f} pictures/s, took part {found['taught_share']:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
