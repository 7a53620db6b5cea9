"""What is asked with something wrong in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import leakcap as lc
from tests.refusals import refusal

rng = np.random.default_rng(88)
X = rng.normal(size=(24, 2))
CAP = lc.mutual_information(0.3)
SMALL: dict[str, Any] = {"cap": CAP, "worlds": 16, "draws": 256}


def mean(x: Any) -> Any:
    return np.asarray(x).mean(axis=0)


def refused(kind: type[Exception], words: str, call: Callable[[], Any]) -> None:
    refusal(call, words, kind)


CAPS: dict[str, Callable[[], Any]] = {
    "membership at the prior": lambda: lc.membership(0.5),
    "membership below the prior": lambda: lc.membership(0.2),
    "membership of one": lambda: lc.membership(1.0),
    "membership beyond one": lambda: lc.membership(1.5),
    "membership not a number": lambda: lc.membership(float("nan")),
    "membership text": lambda: lc.membership("0.6"),  # type: ignore[arg-type]
    "membership bool": lambda: lc.membership(True),
    "mip of zero": lambda: lc.mip(0.0),
    "mip below zero": lambda: lc.mip(-0.1),
    "mip above a half": lambda: lc.mip(0.6),
    "mip of a half": lambda: lc.mip(0.5),
    "naming at the rate": lambda: lc.name_a_member(0.5),
    "naming below the rate": lambda: lc.name_a_member(0.1),
    "precision at the rate": lambda: lc.precision(0.1, 0.5),
    "precision below the rate": lambda: lc.precision(0.1, 0.3),
    "precision of no claims": lambda: lc.precision(0.0, 0.9),
    "identification at 1/m": lambda: lc.identification(1 / 16),
    "identification below 1/m": lambda: lc.identification(0.01),
    "any inference at its prior": lambda: lc.any_inference(0.1, 0.1),
    "any inference below its prior": lambda: lc.any_inference(0.2, 0.1),
    "any inference without a prior": lambda: lc.any_inference(0.0, 0.1),
    "any inference of a certainty": lambda: lc.any_inference(1.0, 1.0),
    "no information": lambda: lc.mutual_information(0.0),
    "less than no information": lambda: lc.mutual_information(-1.0),
    "all information": lambda: lc.mutual_information(np.log(16)),
    "infinite information": lambda: lc.mutual_information(np.inf),
    "true positives at the false ones": lambda: lc.true_positive_rate(0.01, 0.01),
    "true positives below the false ones": lambda: lc.true_positive_rate(0.1, 0.01),
    "true positives at no false ones": lambda: lc.true_positive_rate(0.0, 0.1),
    "task at its prior": lambda: lc.task(np.eye(16), 1 / 16),
    "task below its prior": lambda: lc.task(np.ones((16, 1)), 0.9),
    "task of other worlds": lambda: lc.task(np.eye(8), 0.9),
    "task of a function of other worlds": lambda: lc.task(lambda masks: masks[:-1], 0.99),
    "task that always wins": lambda: lc.task(lambda masks: np.ones((len(masks), 1)), 0.9),
    "task beyond certainty": lambda: lc.task(2 * np.eye(16), 0.9),
    "task with NaN": lambda: lc.task(np.full((16, 2), np.nan), 0.9),
    "task without guesses": lambda: lc.task(np.empty((16, 0)), 0.9),
    "task of one dimension": lambda: lc.task(np.ones(16), 0.9),
    "task of text": lambda: lc.task([["yes"]] * 16, 0.9),
    "ragged task": lambda: lc.task([[1.0], [1.0, 0.0]] * 8, 0.9),
    "no cap": lambda: [],
    "a number that is no success": lambda: 1.2,
    "true": lambda: True,
    "text": lambda: "membership",
    "None": lambda: None,
    "a list with text": lambda: [lc.membership(0.6), "0.7"],
    "one good and one impossible": lambda: [lc.membership(0.6), lc.identification(0.01)],
}
