"""`python -m reproductions.label_dp.fixmatch --labels 250 --seconds 480 --out FOLDER`: a few true labels of CIFAR-10.

No privacy: this is what teachers and student of PATE-FM can do by themselves. One JSON a run; a run whose file exists
is not repeated. As many labelled pictures of each class, drawn by the seed. `--smoke`: toys, on two cores.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

import leakcap as lc
from reproductions.label_dp.central.__main__ import toy_pictures
from reproductions.label_dp.central.store import write_json
from reproductions.label_dp.network import network
from reproductions.label_dp.pictures import Pictures, pictures

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
    parser.add_argument("--smoke", action="store_true")
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    path = given.out / f"fixmatch-{given.labels}-seed{given.seed}.json"
    if path.is_file():
        print(f"{path.name}: done before")
        return 0
    prepared(given.device)
    torch.manual_seed(given.seed)
    settings = {"steps": given.steps, "seconds": given.seconds, "learning_rate": given.learning_rate}
    settings |= {"random_state": given.seed, **(SMOKE if given.smoke else {})}
    model = classifier(given.network, 0.125 if given.smoke else given.width, given.device, **settings)
    record = run(toy_pictures() if given.smoke else pictures("cifar10"), model, given.labels, given.seed)
    record |= {"network": given.network, "width": given.width}
    write_json(path, record)
    print(f"accuracy {record['accuracy']:.4f}, {record['accuracy_without_flip']:.4f}; {record['steps']} steps, ")
    print(f"{record['pictures_per_second']:,.0f} pictures/s, took part {record['taught_share']:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
