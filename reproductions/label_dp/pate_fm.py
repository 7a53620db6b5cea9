"""`python -m reproductions.label_dp.pate_fm --teachers 40 --epsilon 8 --out FOLDER`: a line of Table 1, in small.

Every teacher is FixMatch on the labels of its part and all pictures. What it says of the training pictures is a file,
so a call makes as many teachers as its seconds allow and a later one goes on. These files are the custodian's: they are
not noised. Once all are there, `lc.labels.PATE` releases noised votes, once, and a student learns from the answers. The
paper has 200 and more teachers of hours each; with fewer of them the same noise costs a larger epsilon.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.utils import check_random_state

import leakcap as lc
from reproductions.label_dp.central.__main__ import toy_pictures
from reproductions.label_dp.central.store import write_json
from reproductions.label_dp.fixmatch import SMOKE, classifier, prepared
from reproductions.label_dp.pictures import Pictures, pictures


class KeptTeacher(ClassifierMixin, BaseEstimator):
    """A teacher trained before. Its features are numbers of rows; the first row of its part names its file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fit(self, X: np.ndarray, y: np.ndarray) -> KeptTeacher:
        self.classes_ = np.unique(y)
        path = kept(self.folder, int(X[0, 0]))
        # Labels that are made up, in a rehearsal, have no teacher.
        self._said = np.load(path).astype(np.int64) if path.is_file() else None
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.zeros(len(X), dtype=np.int64) if self._said is None else self._said[X[:, 0]]


def kept(folder: Path, first: int) -> Path:
    return folder / f"teacher-{first}.npy"


def parts_of(rows: int, teachers: int, seed: int) -> list[np.ndarray]:
    """The parts that `PATE` will make with this seed."""
    return np.array_split(check_random_state(seed).permutation(rows), teachers)


def train_teachers(data: Pictures, model: Any, parts: Sequence[np.ndarray], folder: Path, *, deadline: float) -> int:
    """Train teachers that have no file, while one more ends before `deadline`; how many have a file then."""
    longest = 0.0
    for part in parts:
        path, began = kept(folder, int(part[0])), time.perf_counter()
        if path.is_file() or began + longest > deadline:
            continue
        known = np.full(len(data.y_train), -1)
        known[part] = data.y_train[part]
        said = model.fit(data.x_train, known).predict(data.x_train)
        np.save(path, said.astype(np.uint8))
        longest = max(longest, time.perf_counter() - began)
        print(f"{path.name}: {model.n_steps_} steps, took part {model.taught_share_:.2f}", flush=True)
    return sum(kept(folder, int(part[0])).is_file() for part in parts)


def voted(data: Pictures, folder: Path, teachers: int, epsilon: float, seed: int) -> Any:
    """Noised votes of the teachers that were kept. Spends epsilon."""
    numbers = np.arange(len(data.y_train))[:, None]
    votes = lc.labels.PATE(
        *(KeptTeacher(folder), DummyClassifier()),
        epsilon=epsilon,
        n_teachers=teachers,
        n_classes=data.n_classes,
        random_state=seed,
    )
    return votes.fit(numbers, data.y_train)


def line(data: Pictures, votes: Any, student: Any) -> dict[str, Any]:
    """The student on the answers, and what it cost."""
    known = np.full(len(data.y_train), -1)
    answered = votes.answers_ >= 0
    known[votes.queries_[answered]] = votes.answers_[answered]
    student.fit(data.x_train, known)
    right = votes.answers_[answered] == data.y_train[votes.queries_[answered]]  # told to the custodian only
    return {
        "epsilon": votes.certificate_.epsilon,
        "delta": votes.certificate_.delta,
        "accuracy": float((student.predict(data.x_test) == data.y_test).mean()),
        "judged_on": "test pictures",
        "answers": int(answered.sum()),
        "answers_right": float(right.mean()),
        "steps_of_the_student": student.n_steps_,
        "torch": torch.__version__,
        "leakcap": lc.__version__,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--teachers", type=int, default=40)
    parser.add_argument("--epsilon", type=float, default=8.0)
    parser.add_argument("--teacher-seconds", type=float, default=30.0)
    parser.add_argument("--student-seconds", type=float, default=240.0)
    parser.add_argument("--seconds", type=float, default=math.inf, help="for the whole call")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("reproductions/out/label_dp_pate_fm"))
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--smoke", action="store_true")
    given = parser.parse_args(arguments)
    began = time.perf_counter()
    folder = given.out / f"teachers-{given.teachers}-seed{given.seed}"
    folder.mkdir(parents=True, exist_ok=True)
    path = given.out / f"pate-fm-{given.teachers}-eps{given.epsilon:g}-seed{given.seed}.json"
    if path.is_file():
        print(f"{path.name}: done before")
        return 0
    prepared(given.device)
    data = toy_pictures() if given.smoke else pictures("cifar10")
    torch.manual_seed(given.seed)

    def model(seconds: float) -> Any:
        settings = {"steps": 2**20, "seconds": seconds, "random_state": given.seed, **(SMOKE if given.smoke else {})}
        return classifier("resnet9", 0.125 if given.smoke else 1.0, given.device, **settings)

    parts = parts_of(len(data.y_train), given.teachers, given.seed)
    deadline = began + given.seconds
    done = train_teachers(data, model(given.teacher_seconds), parts, folder, deadline=deadline)
    print(f"{done} of {given.teachers} teachers; {time.perf_counter() - began:.0f} s", flush=True)
    if done < given.teachers or time.perf_counter() + given.student_seconds > deadline:
        return 1
    votes = voted(data, folder, given.teachers, given.epsilon, given.seed)
    record = {**line(data, votes, model(given.student_seconds)), "teachers": given.teachers, "seed": given.seed}
    write_json(path, record)
    print(record)
    return 0


if __name__ == "__main__":
    sys.exit(main())
