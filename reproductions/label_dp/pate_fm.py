"""`python -m reproductions.label_dp.pate_fm --teachers 40 --epsilon 8 --out FOLDER`: a line of Table 1, in small.

`--paper .29`: with the paper's teachers, noise, threshold and questions (Table 3), as far as time allows; or give
`--sigma1`, `--sigma2`, `--threshold`, `--queries` and `--answers`. `--canaries 1000` plants labels, which measure it.
`--encoder FOLDER`: teachers and student start from the encoder that `reproductions.label_dp.central` left there.

Every teacher is FixMatch on the labels of its part and all pictures. What it says of the training pictures is a file,
so a call makes as many teachers as its seconds allow and a later one goes on. These files are the custodian's: they are
not noised. Once all are there, `lc.labels.PATE` releases noised votes, once; the answers are a file before a student
learns from them, so a call that is stopped later releases nothing again. Teachers of another pace are others, with
files and a release of their own; epsilons of releases add up. The paper has 200 and more teachers of hours
each; with fewer of them the same noise costs a larger epsilon.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.utils import check_random_state

import leakcap as lc
from leakcap.certificates.labels import LabelCertificate
from leakcap.errors import InputError
from leakcap.labels.learning.data_dependent import data_dependent
from leakcap.labels.learning.vote_costs import VoteCosts
from reproductions.label_dp.central.__main__ import toy_pictures
from reproductions.label_dp.central.store import save_array, write_json
from reproductions.label_dp.fixmatch import SMOKE, classifier, prepared, started
from reproductions.label_dp.judge import memorisation
from reproductions.label_dp.pictures import Pictures, pictures
from reproductions.label_dp.started import StartedFixMatch
from reproductions.label_dp.table3 import SETTINGS


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
        save_array(path, said.astype(np.uint8))
        longest = max(longest, time.perf_counter() - began)
        print(f"{path.name}: {model.n_steps_} steps, took part {model.taught_share_:.2f}", flush=True)
    return sum(kept(folder, int(part[0])).is_file() for part in parts)


def voted(data: Pictures, labels: np.ndarray, folder: Path, path: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """Noised votes of the teachers that were kept: released once, and read from their file from then on."""
    if not path.is_file():
        numbers = np.arange(len(labels))[:, None]
        votes = lc.labels.PATE(KeptTeacher(folder), DummyClassifier(), n_classes=data.n_classes, **settings)
        try:
            votes.fit(numbers, labels)
        except InputError:
            if not hasattr(votes, "answers_"):  # nothing was released
                raise
        answers = {"queries": votes.queries_.tolist(), "answers": votes.answers_.tolist()}
        write_json(path, {"certificate": votes.certificate_.to_json(), **answers})
    held = json.loads(path.read_text(encoding="utf-8"))
    places = {name: np.asarray(held[name], dtype=np.int64) for name in ("queries", "answers")}
    return {"certificate": LabelCertificate.from_json(held["certificate"]), **places}


def by_the_votes(folder: Path, parts: Sequence[np.ndarray], asked: np.ndarray, costs: VoteCosts, threshold: Any) -> Any:
    """The epsilon that looks at votes: told beside the one that is certified, to the custodian alone."""
    votes = np.zeros((len(asked), 10), dtype=np.int64)
    for part in parts:
        np.add.at(votes, (np.arange(len(asked)), np.load(kept(folder, int(part[0])))[asked]), 1)
    return data_dependent(votes, costs, threshold=0.0 if threshold is None else threshold).epsilon


def costs_of(certificate: LabelCertificate) -> VoteCosts:
    """Questions, answers and noise of the votes that a certificate is about."""
    facts = dict(certificate.settings)
    return VoteCosts(int(facts["questions"]), int(facts["answers"]), facts.get("sigma1"), facts["sigma2"])


def line(data: Pictures, labels: np.ndarray, votes: dict[str, Any], student: Any) -> dict[str, Any]:
    """The student on the answers, and what it cost. Whether answers are right is told to the custodian only."""
    certificate, answered = votes["certificate"], votes["answers"] >= 0
    known = np.full(len(labels), -1)
    known[votes["queries"][answered]] = votes["answers"][answered]
    student.fit(data.x_train, known)
    right = votes["answers"][answered] == labels[votes["queries"][answered]]
    alone = student.predict_proba(data.x_test)
    both = alone + student.predict_proba(np.ascontiguousarray(data.x_test[:, :, ::-1]))
    return {
        "epsilon": certificate.epsilon,
        "epsilon_newer": costs_of(certificate).epsilon(certificate.delta, "newer"),
        "delta": certificate.delta,
        "settings": dict(certificate.settings),
        "accuracy": float((both.argmax(1) == data.y_test).mean()),
        "accuracy_without_flip": float((alone.argmax(1) == data.y_test).mean()),
        "judged_on": "test pictures",
        "answers": int(answered.sum()),
        "answers_right": float(right.mean()),
        "steps_of_the_student": student.n_steps_,
        "torch": torch.__version__,
        "leakcap": lc.__version__,
    }


def noise_of(given: argparse.Namespace) -> dict[str, Any]:
    """Settings of the votes: the paper's, those given, or what follows from epsilon."""
    if given.paper is not None:
        found = next(one for one in SETTINGS if one.data == "CIFAR-10" and one.epsilon == given.paper)
        given.teachers = found.teachers
        given.sigma1, given.sigma2, given.threshold = found.sigma1, found.sigma2, found.threshold
        given.queries, given.answers = found.costs.questions, found.answers
    noise = {name: getattr(given, name) for name in ("sigma1", "sigma2", "threshold", "queries", "answers")}
    if given.sigma2 is None:
        noise["epsilon"] = given.epsilon
    return {name: value for name, value in noise.items() if value is not None}


def kind_of(given: argparse.Namespace) -> str:
    """What teachers of one folder have in common: with another pace they are others, and never vote together."""
    planted = (f"-canaries{given.canaries}" if given.canaries else "") + ("-encoder" if given.encoder else "")
    return f"{planted}-{given.teacher_seconds:g}s-lr{given.learning_rate:g}"


def command() -> argparse.ArgumentParser:
    """What the command takes."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--teachers", type=int, default=40)
    parser.add_argument("--epsilon", type=float, default=8.0, help="from which noise follows, where none is given")
    parser.add_argument("--paper", type=float, choices=(1.6, 0.29, 0.18), help="teachers and noise of that line")
    parser.add_argument("--sigma1", type=float, help="deviation of the noise on the largest count")
    parser.add_argument("--sigma2", type=float, help="deviation of the noise on the counts of an answer")
    parser.add_argument("--threshold", type=float, help="largest count from which on a question is answered")
    parser.add_argument("--queries", type=int, help="questions at most")
    parser.add_argument("--answers", type=int, help="of these answered at most")
    parser.add_argument("--canaries", type=int, default=0, help="labels to plant, by which epsilon is measured")
    parser.add_argument("--teacher-seconds", type=float, default=30.0)
    parser.add_argument("--learning-rate", type=float, default=0.03, help="of the teachers")
    parser.add_argument("--student-seconds", type=float, default=240.0)
    parser.add_argument("--seconds", type=float, default=math.inf, help="for the whole call")
    parser.add_argument("--encoder", type=Path, help="a folder of reproductions.label_dp.central, to start from")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("reproductions/out/label_dp_pate_fm"))
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--smoke", action="store_true")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    given = command().parse_args(arguments)
    began = time.perf_counter()
    noise = noise_of(given)
    kind = kind_of(given)
    folder = given.out / f"teachers-{given.teachers}-seed{given.seed}{kind}"
    folder.mkdir(parents=True, exist_ok=True)
    told = "-".join(f"{name}{value:g}" for name, value in noise.items()).replace("epsilon", "eps")
    path = given.out / f"pate-fm-{given.teachers}-{told}{kind}-seed{given.seed}.json"
    if path.is_file():
        print(f"{path.name}: done before")
        return 0
    prepared(given.device)
    data = toy_pictures() if given.smoke else pictures("cifar10")
    torch.manual_seed(given.seed)
    encoder, passed = started(data, given.encoder, given.device, smoke=given.smoke) if given.encoder else (None, 0.0)

    def model(seconds: float, learning_rate: float = 0.03) -> Any:
        settings = {"steps": 2**20, "seconds": seconds, "learning_rate": learning_rate, "random_state": given.seed}
        settings |= SMOKE if given.smoke else {}
        if encoder is not None:
            return StartedFixMatch(encoder, data.n_classes, device=given.device, **settings)
        return classifier("resnet9", 0.125 if given.smoke else 1.0, given.device, **settings)

    labels, key = data.y_train, None
    if given.canaries:
        labels, key = lc.audit.plant(labels, given.canaries, classes=range(data.n_classes), seed=given.seed)
    parts = parts_of(len(labels), given.teachers, given.seed)
    deadline = began + given.seconds
    teacher = model(given.teacher_seconds, given.learning_rate)
    done = train_teachers(replace(data, y_train=labels), teacher, parts, folder, deadline=deadline)
    print(f"{done} of {given.teachers} teachers; {time.perf_counter() - began:.0f} s", flush=True)
    if done < given.teachers or time.perf_counter() + given.student_seconds > deadline:
        return 1
    settings = {**noise, "n_teachers": given.teachers, "random_state": given.seed}
    votes = voted(data, labels, folder, path.with_name(path.name.replace("pate-fm", "answers")), settings)
    student = model(given.student_seconds)
    record = {**line(data, labels, votes, student), "teachers": given.teachers, "seed": given.seed}
    record["encoder_seconds"], record["teacher_seconds"] = passed, given.teacher_seconds
    record["learning_rate_of_teachers"], record["student_seconds"] = given.learning_rate, given.student_seconds
    costs = costs_of(votes["certificate"])
    record["epsilon_by_votes"] = by_the_votes(folder, parts, votes["queries"], costs, given.threshold)
    if key is not None:
        chances = torch.from_numpy(student.predict_proba(data.x_train)).clamp_min(1e-30)
        record["memorisation"] = memorisation(chances.log(), key)
    write_json(path, record)
    print(record)
    return 0


if __name__ == "__main__":
    sys.exit(main())
