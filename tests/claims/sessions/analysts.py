"""Hostile analysts: each wants to know whether one person took part, and asks whatever a session answers.

They know the pool, all worlds, everybody's clock and every price, and choose each question after the answers before it.
An analyst is a function of a `View` that gives a question (the number in every world, and the noise) or None to stop.
"""

from __future__ import annotations

import numpy as np

from tests.claims.sessions.play import Analyst, Question, View

SHARP = 0.02  # noise so small, beside steps of 1, that an answer is a word
LITTLE = 1e-3  # of a clock, below which nobody bothers


def noise_for(view: View, part: float) -> float:
    """For a question that is 1 or 0 as the target is in or out: so that it costs a part of what the clock shows."""
    return 1 / np.sqrt(max(view.left * part, 1e-9))


def direct(view: View) -> Question | None:
    """Whether the target is in, in a few steps, with more noise after every refusal."""
    if view.left < LITTLE:
        return None
    return view.members.astype(float), noise_for(view, 0.6 * 0.8**view.refusals)


def averaging(view: View) -> Question | None:
    """The same question with the same noise again and again."""
    return view.members.astype(float), 3.4


def largest_step(view: View) -> Question | None:
    """Whether the target is in, with the least noise that is accepted: everything in one answer."""
    if view.left < LITTLE or view.refusals:
        return None
    outputs = view.members.astype(float)
    low, high = 0.5, 50.0
    for _ in range(16):
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if view.engine.price(view.state, outputs, middle) else (middle, high)
    return outputs, high


def tracker(view: View) -> Question | None:
    """A group without the target, then the group with it: the difference is the target."""
    group = view.masks[:, [u for u in range(view.masks.shape[1]) if u % 2 == (view.target + 1) % 2]].sum(axis=1)
    with_target = view.step % 2 == 1
    return (group + with_target * view.members).astype(float), 2.5 * 1.4**view.refusals


def duplicates(view: View) -> Question | None:
    """Those who take part when the target does, added up: each brings a little about the target."""
    alike = [(view.masks[:, u] == view.members).mean() for u in range(view.masks.shape[1])]
    chosen = np.argsort(alike)[-3:]
    return view.masks[:, chosen].sum(axis=1).astype(float), 4.0 * 1.3**view.refusals


def noise_probing(view: View) -> Question | None:
    """Far too little noise first, then twice as much until it is accepted: refusals as a side channel."""
    if view.left < LITTLE:
        return None
    return view.members.astype(float), 0.6 * 2.0**view.refusals


def gambler(view: View) -> Question | None:
    """A few of the worlds with the target, named exactly: usually nothing is learnt, sometimes everything."""
    return _sets(view, sides=1)


def set_splitting(view: View) -> Question | None:
    """As many worlds with the target as without, each side named exactly: whoever learns nothing is where they were."""
    return _sets(view, sides=2)


def _sets(view: View, sides: int) -> Question | None:
    """The largest sets that are accepted, in which other people show as little as possible."""
    alive = view.weights > 1e-12
    inside, outside = np.flatnonzero(alive & view.members), np.flatnonzero(alive & ~view.members)
    if view.refusals or not len(inside) or not len(outside):
        return None
    most = min(len(inside), len(outside))
    first, second = (balanced(view.masks, side, most) for side in (inside, outside))

    def outputs(size: int) -> np.ndarray:
        found = np.zeros(len(alive))
        found[first[:size]] = 1
        if sides == 2:
            found[second[:size]] = 2
        return found

    for size in sorted({*range(1, min(most, 12) + 1), *np.geomspace(1, most, 24).astype(int)}, reverse=True):
        if view.engine.price(view.state, outputs(size), SHARP) is not None:
            return outputs(size), SHARP
    return None


def balanced(masks: np.ndarray, worlds: np.ndarray, most: int) -> np.ndarray:
    """An order of some worlds in which everybody is in about as many as out, however early one stops."""
    signs, chosen, left = 2.0 * masks[worlds] - 1, [], np.ones(len(worlds), dtype=bool)
    total = np.zeros(masks.shape[1])
    for _ in range(most):
        after = ((total + signs) ** 2).sum(axis=1)
        best = int(np.where(left, after, np.inf).argmin())
        chosen.append(best)
        left[best] = False
        total += signs[best]
    return worlds[chosen]


def pairs_first(view: View) -> Question | None:
    """First which pair of complementary worlds it is, which tells about nobody; then which of the two."""
    m = len(view.weights)
    if view.step == 0 and not view.refusals:
        return (np.arange(m) % (m // 2)).astype(float), SHARP
    return direct(view)


def greedy(view: View) -> Question | None:
    """Of several questions, the one after which the best guess is surest."""
    if view.refusals:
        return None
    m = len(view.weights)
    rng = np.random.default_rng(view.step)
    candidates: list[Question] = [(view.members.astype(float), noise) for noise in (1.0, 1.5, 2.0, 3.0, 5.0)]
    candidates += [(rng.permutation(m).astype(float) % 3 + view.members, noise) for noise in (2.0, 4.0)]
    if (sets := _sets(view, sides=2)) is not None:
        candidates.append(sets)
    best, chosen = max(view.share, 1 - view.share) + 1e-4, None
    for outputs, noise in candidates:
        priced = view.engine.price(view.state, outputs, noise)
        if priced is None:
            continue
        joint = view.weights[:, None] * (priced.cells.counts / 2.0**62)
        found = np.maximum(joint[view.members].sum(axis=0), joint[~view.members].sum(axis=0)).sum()
        if found > best:
            best, chosen = found, (outputs, noise)
    return chosen


ANALYSTS: dict[str, tuple[Analyst, int]] = {  # with the number of answers after which a played-out session ends
    "direct": (direct, 3),
    "averaging": (averaging, 3),
    "largest step": (largest_step, 2),
    "tracker": (tracker, 3),
    "duplicates": (duplicates, 3),
    "noise probing": (noise_probing, 3),
    "gambler": (gambler, 8),
    "set splitting": (set_splitting, 8),
    "pairs first": (pairs_first, 3),
    "greedy": (greedy, 2),
}
