"""Sessions on small pools, played out to the end: every answer that may be drawn, with its probability.

What an analyst ends up knowing is computed here from the tables that answers are drawn from, by counting worlds, not by
the engine's own posterior. Channel that tell the same are one branch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
from scipy.stats import norm

import leakcap as lc
from leakcap.noise import Seeded
from leakcap.sessions.listed_worlds.cells import SCALE
from leakcap.sessions.listed_worlds.charges import TICKS, Clocks
from leakcap.sessions.listed_worlds.engine import ListedState, ListedWorlds
from leakcap.sessions.listed_worlds.potentials import potentials_of
from leakcap.worlds import Worlds, draw_worlds, given_worlds

CAP = 0.6
PRUNED = 1e-6  # branches less likely than this count as known
MAX_REFUSALS = 8  # in a row, after which an analyst goes home

Question = tuple[np.ndarray, float]


@dataclass(frozen=True)
class View:
    """What an analyst knows: everything but the secret and the noise."""

    engine: ListedWorlds
    state: ListedState
    masks: np.ndarray
    weights: np.ndarray
    target: int
    step: int = 0
    refusals: int = 0
    trail: tuple[Any, ...] = field(default=())

    @property
    def members(self) -> np.ndarray:
        return self.masks[:, self.target]

    @property
    def share(self) -> float:
        return float(self.weights[self.members].sum())

    @property
    def left(self) -> float:
        """What the target's first clock shows."""
        return self.shown(self.state.clocks)

    def shown(self, clocks: Any) -> float:
        """What it would show of such clocks."""
        rule = self.engine.rule
        start = rule.potentials[0].start if isinstance(rule, Clocks) else 0.25
        return float(start * clocks[0, self.target] / TICKS)


Analyst = Callable[[View], Question | None]


def pool(m: int, n: int, seed: int = 0) -> Worlds:
    """Random halves."""
    return draw_worlds(n, m, np.random.default_rng(seed))


def all_coins(n: int) -> Worlds:
    """Every subset of a tiny pool."""
    return given_worlds(np.array(list(product([False, True], repeat=n))), n)


def engine_of(worlds: Worlds, caps: Any = None, reach: float = 1.0) -> ListedWorlds:
    """Few cells: their number decides how many branches a session has, and nothing else."""
    return ListedWorlds(worlds, Clocks(potentials_of(caps or [lc.membership(CAP)], worlds.rate)), reach)


Leaf = tuple[float, float]  # probability of an end of the session with the target in, and with the target out


def leaves(engine: ListedWorlds, analyst: Analyst, target: int, depth: int) -> list[Leaf]:
    """All ends of a session with an analyst who stops after `depth` answers at the latest."""
    masks = engine.worlds.masks()
    joint = np.full(engine.worlds.m, 1 / engine.worlds.m)
    first = View(engine, engine.begin(), masks=masks, weights=joint, target=target)
    return list(_walk(first, joint, analyst, depth))


def _walk(view: View, joint: np.ndarray, analyst: Analyst, depth: int) -> Iterator[Leaf]:
    inside, outside = float(joint[view.members].sum()), float(joint[~view.members].sum())
    if inside + outside < PRUNED:
        yield inside, 0.0
        yield 0.0, outside
        return
    priced = question = None
    refusals = 0
    while depth and inside and outside and refusals < MAX_REFUSALS and priced is None:
        question = analyst(replace(view, refusals=refusals))
        if question is None:
            break
        priced = view.engine.price(view.state, *question)
        refusals += 1
    if priced is None:
        yield inside, outside
        return
    for cell, law in branches(priced.cells.counts / SCALE, joint):
        moved = joint * law
        after = replace(
            view,
            state=view.engine.after(view.state, priced, cell),
            weights=moved / moved.sum(),
            step=view.step + 1,
            trail=(*view.trail, (question, float(priced.cells.values[cell]))),
        )
        yield from _walk(after, moved, analyst, depth - 1)


def branches(table: np.ndarray, joint: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """One of the cells that tell the same about worlds that are still possible, and their masses together."""
    alive = joint > 0
    groups: dict[bytes, list[int]] = {}
    for cell in np.flatnonzero(joint @ table > 0):
        column = table[alive, cell] / table[alive, cell].max()
        groups.setdefault(np.round(column, 9).tobytes(), []).append(int(cell))
    for cells in groups.values():
        likeliest = max(cells, key=lambda cell: float(joint @ table[:, cell]))
        yield likeliest, table[:, cells].sum(axis=1)


def success(ends: list[Leaf]) -> float:
    """Of the best guess about the target, on average."""
    assert abs(sum(a + b for a, b in ends) - 1) < 1e-9
    return sum(max(end) for end in ends)


def recognised(ends: list[Leaf], fpr: float, rate: float = 0.5) -> float:
    """The largest true positive rate at a false positive rate: the surest ends first, the last of them in part."""
    found, alarms = 0.0, 0.0
    for inside, outside in sorted(ends, key=lambda end: end[1] / end[0] if end[0] else np.inf):
        share = 1.0 if not outside else min(1.0, (fpr - alarms) / (outside / (1 - rate)))
        found, alarms = found + share * inside / rate, alarms + share * outside / (1 - rate)
        if share < 1:
            break
    return found


def potential(q: np.ndarray, left: float) -> np.ndarray:
    """Success after one more observation, written out: nothing of the engine's is used."""
    if left <= 0:
        return np.maximum(q, 1 - q)
    inner = np.clip(q, 1e-300, 1 - 1e-16)
    odds, apart = np.log(inner / (1 - inner)) / np.sqrt(left), np.sqrt(left)
    return q * norm.cdf(apart / 2 + odds) + (1 - q) * norm.cdf(apart / 2 - odds)


def sampled(engine: ListedWorlds, analyst: Analyst, target: int, *, sessions: int, answers: int, seed: int) -> Any:
    """The posterior of the surer guess at the end of sessions with drawn secrets and answers, less luck.

    Luck is how far the target's potential came out above its mean over the answer's cells, added up: 0 on average,
    whatever the engine does. What is left hardly varies.
    """
    masks, found = engine.worlds.masks(), np.empty(sessions)
    randomness = Seeded(seed)
    for number in range(sessions):
        secret, refusals, luck = randomness.below(engine.worlds.m), 0, 0.0
        weights = np.full(engine.worlds.m, 1 / engine.worlds.m)
        view = View(engine, engine.begin(), masks=masks, weights=weights, target=target)
        while view.step < answers and refusals < MAX_REFUSALS:
            question = analyst(replace(view, refusals=refusals))
            if question is None:
                break
            step = engine.ask(view.state, *question, secret=secret, randomness=randomness)
            if step is None:
                refusals += 1
                continue
            state, priced, cell = step
            joint = view.weights[:, None] * (priced.cells.counts / SCALE)
            after = replace(
                view,
                state=state,
                weights=joint[:, cell] / joint[:, cell].sum(),
                step=view.step + 1,
                trail=(*view.trail, (question, float(priced.cells.values[cell]))),
            )
            law = joint.sum(axis=0)
            shares = joint[view.members].sum(axis=0) / np.where(law > 0, law, 1.0)
            after_each = [priced.left(view.state.clocks, one) for one in range(len(law))]
            shown = [view.shown(clocks) if isinstance(engine.rule, Clocks) else 0.0 for clocks in after_each]
            values = np.array([potential(share, left) for share, left in zip(shares, shown, strict=True)])
            luck += float(values[cell] - law @ values)
            view, refusals = after, 0
        found[number] = max(view.share, 1 - view.share) - luck
    return found
