"""What each promise would cost, for a statistic or a model of a file: figures for the custodian's page alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from leakcap.caps import Cap, PoolMembership, membership, pool_membership
from leakcap.errors import InputError, LeakcapError
from leakcap.planning.plans import Plan
from leakcap.server.publish_orders import BOUNDED, TEACHERS, WORLDS, command_words, setting_words, whole_ranges
from leakcap.tables.distilled import ask_distilled
from leakcap.tables.models import MODELS, ModelQuestion, ask_model
from leakcap.tables.questions import ask

__all__ = ["compared"]

CAPS = (0.51, 0.52, 0.55, 0.6, 0.65, 0.7, 0.8, 0.9)  # along which a promise's cost is drawn
RELEASES = 20  # of a model, simulated at each cap
REHEARSALS, REHEARSED = 2, (0.55, 0.8)  # of a distilled model, each of which teaches all teachers; and caps
HIDES = {
    "worlds": "whether a person of the pool was used, from attackers who know the pool and the list of worlds, but "
    "nobody who was used",
    "bits": "whether a person of the pool was used, whoever else is known",
    "pool": "whether a person is in the data at all, whoever else is known (add or remove one person)",
}


def compared(**order: Any) -> dict[str, Any]:
    """Figures of an order as `publish_orders.asked_of` reads it."""
    if order["fn"] in TEACHERS:
        return _of_distilled(order)
    return _of_model(order) if order["fn"] in MODELS else _of_statistic(order)


def _of_statistic(order: Mapping[str, Any]) -> dict[str, Any]:
    points: dict[str, Any] = {name: word for name, word in _options(order).items() if name in ("bins", "grid")}
    question = ask(
        Path(order["file"]), order["fn"], columns=order["columns"], unit=order["unit"], missing="drop", **points
    )
    planned = question.planned(cap=membership(order["success"]))
    ends = None
    if order["fn"] in BOUNDED and whole_ranges(order):
        ends = tuple([order["bounds"][name][at] for name in question.columns] for at in (0, 1))
    made = planned.compare(ends, order["rows"])
    offered = {made.own} | ({"worlds", "bits", "pool"} if order["fn"] in BOUNDED else set())
    curve = [(cap, made.relative(planned.recap(membership(cap)).summary().error)) for cap in _caps(order["success"])]
    return {
        "of": "error",
        "own": made.own,
        "not_compared": list(made.not_compared),
        "promises": [
            {
                "name": one.name,
                "offered": one.name in offered,
                "hides": one.hides,
                "total": one.total,
                "before": made.relative(one.before_noise),
                "noise": made.relative(one.noise),
            }
            for one in made.promises
        ],
        "curve": curve,
    }


def _of_model(order: Mapping[str, Any]) -> dict[str, Any]:
    kind = MODELS[order["fn"]]
    own = "bits" if kind.bits else "worlds"
    promises: list[dict[str, Any]] = []
    refused: list[str] = []
    curve: list[tuple[float, float]] = []
    measure, nothing = "", 0.0
    for name in ("bits", "worlds", "pool"):
        try:
            question, planned = _planned(order, name, kind)
        except LeakcapError as error:
            refused.append(f"Not compared: {name}: {error}.")
            continue
        worth = question.computation.utility
        found = planned.expected(worth.score, RELEASES)
        measure, nothing = worth.name, worth.nothing
        promises.append(
            {
                "name": name,
                "offered": True,
                "hides": HIDES[name],
                "total": found.mean,
                "before": found.without_noise,
                "noise": found.spread,
            }
        )
        if name == own:
            curve = [
                (cap, planned.recap(membership(cap)).expected(worth.score, RELEASES).mean)
                for cap in _caps(order["success"])
            ]
    promises.sort(key=lambda one: -one["total"])
    return {
        "of": measure,
        "own": own,
        "nothing": nothing,
        "not_compared": refused,
        "promises": promises,
        "curve": curve,
    }


def _of_distilled(order: Mapping[str, Any]) -> dict[str, Any]:
    """Rehearsals, which use up nothing: how often the released student would be right about these people."""
    chosen = {**order, "promise": "pool" if order["classes"] else "bits"}
    question = ask_distilled(
        Path(order["file"]),
        target=order["target"],
        columns=order["columns"],
        unit=order["unit"],
        missing="drop",
        public_rows=None if order["public"] is None else Path(order["public"]),
        public_share=order["public_share"],
        teacher=TEACHERS[order["fn"]][0],
        settings=setting_words(chosen),
    )
    most = {"options": {"rows_per_unit": order["rows"]}} if order["unit"] else {}

    def right(cap: Cap, seed: int) -> float:
        made = question.fitted(cap, random_state=seed, **(most if isinstance(cap, PoolMembership) else {}))
        return float(np.mean(made.predict(question.features) == question.target.to_numpy()))

    promises: list[dict[str, Any]] = []
    refused = ["Not compared: worlds: such a model is no list of numbers that noise could cover."]
    plain = question.right_without_noise()
    for name, cap in (("bits", membership), ("pool", pool_membership)):
        if name == "pool" and not order["classes"]:
            refused.append("Not compared: pool: it needs the classes, known without the data.")
            continue
        try:
            found = [right(cap(order["success"]), seed) for seed in range(REHEARSALS)]
        except LeakcapError as error:
            refused.append(f"Not compared: {name}: {error}.")
            continue
        facts = {"total": float(np.mean(found)), "before": plain, "noise": float(np.std(found))}
        promises.append({"name": name, "offered": True, "hides": HIDES[name], **facts})
    if not promises:
        raise InputError(" ".join(refused))
    own = str(promises[0]["name"])
    curve = [(order["success"], promises[0]["total"])]
    for success in set(REHEARSED) - {order["success"]}:
        with suppress(LeakcapError):  # too small a cap for so few people
            curve.append((success, right((pool_membership if own == "pool" else membership)(success), 0)))
    return {
        "of": "accuracy",
        "own": own,
        "nothing": float(question.target.value_counts(normalize=True).max()),
        "not_compared": refused,
        "promises": promises,
        "curve": sorted(curve),
    }


def _planned(order: Mapping[str, Any], promise: str, kind: Any) -> tuple[ModelQuestion, Plan]:
    chosen = {**order, "promise": promise}
    of_pool = promise == "pool"
    if of_pool and not kind.pool:
        raise LeakcapError("this model is made of sums over people in a session alone")
    if promise == "bits" and not kind.bits:
        raise LeakcapError("this model is no sum over people")
    if of_pool and (not whole_ranges(order) or (kind.predicts == "classes" and not order["classes"])):
        raise LeakcapError("it needs a range for every column, and the classes, known without the data")
    given = _options(chosen)
    question = ask_model(
        Path(order["file"]),
        order["fn"],
        columns=order["columns"],
        target=order["target"],
        settings=given.get("setting", ()),
        unit=order["unit"],
        missing="drop",
    )
    cap: Cap = (pool_membership if of_pool else membership)(order["success"])
    if of_pool:
        more = {"rows_per_unit": order["rows"]} if order["unit"] else {}
        return question, question.planned(cap=[cap], bounds=order["bounds"], **more)
    return question, question.planned(cap=[cap], worlds=WORLDS if promise == "worlds" else "auto", design=promise)


def _options(order: Mapping[str, Any]) -> dict[str, list[str]]:
    """The options of the command, so that what is compared is what would be released."""
    words, found = command_words(order, "table", "out"), dict[str, list[str]]()
    for name, value in pairwise(words):
        if name.startswith("--"):
            found.setdefault(name[2:], []).append(value)
    return found


def _caps(success: float) -> Sequence[float]:
    return sorted({*CAPS, success})
