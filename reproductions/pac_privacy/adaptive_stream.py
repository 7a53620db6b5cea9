"""The stream that Algorithm 4 of PAC Privacy undercharges 69-fold, beside what a session does with it.

Everybody takes part by a coin. An analyst first asks, with moderate noise, whether each of a few *marked* people took
part, and pays for it. Then come questions about one more person each: "if the marked ones took part just as I was told,
did this person?". Over fresh halves such a question is almost always 0, so Algorithm 4, which averages over them, asks
for hardly any noise. But the analyst has heard which marked people took part: for the secret half the answer is that
person's coin, in plain sight. Asked for a pattern that was fixed beforehand, the same questions tell nothing.

`python -m reproductions.pac_privacy.adaptive_stream` prints the figures.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import entr, ndtr

import leakcap as lc
from leakcap.planning.online import online_variance
from leakcap.sessions.listed_worlds.charges import Clocks
from leakcap.sessions.listed_worlds.engine import ListedState, ListedWorlds
from leakcap.sessions.listed_worlds.potentials import potentials_of
from leakcap.worlds import given_worlds

__all__ = ["Stream", "binary_information", "main", "played", "session_answers"]

CAP = 0.6


@dataclass(frozen=True)
class Stream:
    """How many people are marked, what each question about them costs, and what each later question costs, in nats."""

    marked: int = 12
    first: float = 4.0
    later: float = 0.01

    @property
    def first_noise(self) -> float:
        """Deviation for the coin of a marked person: two halves differ in it by 1/2 on average, squared."""
        return math.sqrt(online_variance(0.5, 0.0, self.first))

    @property
    def later_noise(self) -> float:
        """Deviation for a coin that counts only if all marked people match a pattern."""
        share = 2.0 ** -(self.marked + 1)
        return math.sqrt(online_variance(2 * share * (1 - share), 0.0, self.later))


def binary_information(noise: float) -> float:
    """Nats that a fair bit with normal noise of this deviation tells about itself, by a fine sum."""
    grid = np.linspace(-9 * noise, 1 + 9 * noise, 20001)
    zero, one = (np.exp(-0.5 * ((grid - bit) / noise) ** 2) for bit in (0, 1))
    zero, one = zero / zero.sum(), one / one.sum()
    mixed = (zero + one) / 2
    return float(entr(mixed).sum() - (entr(zero).sum() + entr(one).sum()) / 2)


@dataclass(frozen=True)
class Played:
    """What came of drawn streams."""

    success: float  # at the coins asked about later
    charged: float  # nats, all answers together
    told: float  # nats about all coins, at least: by Fano's inequality from the success


def played(stream: Stream, people: int, rng: np.random.Generator, *, adapts: bool, secrets: int = 40) -> Played:
    """Drawn answers to an analyst who adapts, or asks about a pattern of their own choice, fixed beforehand."""
    right = 0
    for _ in range(secrets):
        marked, coins = rng.integers(2, size=stream.marked), rng.integers(2, size=people)
        heard = marked + stream.first_noise * rng.normal(size=stream.marked)
        pattern = heard > 0.5 if adapts else np.arange(stream.marked) % 2 == 0
        counts = bool((pattern == marked).all())
        answers = coins * counts + stream.later_noise * rng.normal(size=people)
        right += int(((answers > 0.5) == coins).sum())
    success = right / (secrets * people)
    entropy = -sum(p * math.log(p) for p in (success, 1 - success) if p > 0)
    told = people * (math.log(2) - entropy) if success > 0.5 else 0.0
    return Played(success, stream.first * stream.marked + stream.later * people, told)


def session_answers(stream: Stream, noise: float) -> bool:
    """Whether a session at cap .60, in which the marked people were found out, answers the next question."""
    n = stream.marked + 1
    masks = (np.arange(2**n)[:, None] >> np.arange(n)) & 1 == 1
    engine = ListedWorlds(given_worlds(masks, n), Clocks(potentials_of([lc.membership(CAP)], 0.5)))
    matching = masks[:, :-1].all(axis=1)
    known: ListedState = replace(engine.begin(), fraction=np.where(matching, 0.5, 0.0))
    return engine.price(known, (matching & masks[:, -1]).astype(float), noise) is not None


def main() -> None:
    """The figures, as lines."""
    stream = Stream()
    told = binary_information(stream.later_noise)
    right = ndtr(0.5 / stream.later_noise)
    print(f"noise of a later question {stream.later_noise:.4f}: right with probability {right:.6f}")
    print(f"charged {stream.later} nats, told {told:.4f} nats: {told / stream.later:.1f} times as much")
    rng = np.random.default_rng(0)
    for adapts in (True, False):
        seen = played(stream, 2000, rng, adapts=adapts)
        words = "adapts" if adapts else "has fixed the pattern beforehand"
        print(
            f"an analyst who {words}: {seen.success:.1%} of 2,000 coins right, charged {seen.charged:.0f} nats, "
            f"told at least {seen.told:.0f}"
        )
    small = replace(stream, marked=6)
    least = next(noise for noise in np.arange(0.05, 4, 0.05) if session_answers(small, float(noise)))
    distance = 1 / stream.later_noise**2
    clock = (2 * 0.2533471) ** 2
    print(
        f"a session charges about 1/noise^2 = {distance:.0f} where the clock at cap {CAP:.2f} has {clock:.3f}: refused"
    )
    print(f"it answers from a noise of {least:.2f} on")


if __name__ == "__main__":
    main()
