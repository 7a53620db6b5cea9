"""The stream that Algorithm 4 of PAC Privacy undercharges 69-fold, beside what a session does with it.

Everybody takes part by a coin. An analyst first asks, with moderate noise, whether each of a few *marked* people took
part, and pays for it. Then come questions about one more person each: "if the marked ones took part just as I was told,
did this person?". Over fresh halves such a question is almost always 0, so Algorithm 4, which averages over them, asks
for hardly any noise. But the analyst has heard which marked people took part: for the secret half the answer is that
person's coin, in plain sight. Asked for a pattern that was fixed beforehand, the same questions tell nothing.

`python -m reproductions.pac_privacy composition` writes and prints the figures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure
from scipy.special import entr, ndtr

import leakcap as lc
from leakcap.planning.online import online_variance
from leakcap.sessions.listed_worlds.charges import Clocks
from leakcap.sessions.listed_worlds.engine import ListedState, ListedWorlds
from leakcap.sessions.listed_worlds.potentials import potentials_of
from leakcap.worlds import given_worlds
from reproductions.pac_privacy.output import arguments, written
from reproductions.pac_private_algorithms.picture import saved

__all__ = ["Course", "Stream", "binary_information", "courses", "main", "played", "session_answers"]

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


@dataclass(frozen=True)
class Course:
    """One analyst: what they heard, and what they were charged for it."""

    analyst: str
    noise_of_later_questions: float
    charged_for_each: float  # nats
    told_by_each: float  # nats, once the pattern is known; for a fixed pattern on average
    coins: int
    success: float
    charged: float
    told_at_least: float
    session_answers: str


def courses(people: int = 2000, secrets: int = 40) -> list[Course]:
    """An analyst who adapts, and one who has fixed the pattern beforehand."""
    stream, found = Stream(), []
    rng = np.random.default_rng(0)
    small = replace(stream, marked=6)
    least = next(noise for noise in np.arange(0.05, 4, 0.05) if session_answers(small, float(noise)))
    refused = f"refused; answers from a noise of {least:.2f} on"
    whole, share = binary_information(stream.later_noise), 2.0**-stream.marked
    for adapts in (True, False):
        seen = played(stream, people, rng, adapts=adapts, secrets=secrets)
        found.append(
            Course(
                "adapts" if adapts else "has fixed the pattern",
                stream.later_noise,
                stream.later,
                whole if adapts else share * whole,
                people,
                seen.success,
                seen.charged,
                seen.told,
                refused if adapts else "",
            )
        )
    return found


def drawn(table: Sequence[Course]) -> Figure:
    figure = Figure(figsize=(6, 3.4), layout="constrained")
    axis = figure.subplots()
    places = np.arange(len(table))
    axis.bar(places - 0.2, [one.charged for one in table], 0.38, color="0.7", label="charged by Algorithm 4")
    axis.bar(places + 0.2, [one.told_at_least for one in table], 0.38, color="#d1495b", label="told, at least")
    axis.set_xticks(places, [f"an analyst who {one.analyst}" for one in table])
    axis.set(ylabel="nats", title=f"{table[0].coins:,} questions in the light of noisy answers")
    axis.legend(fontsize=8)
    return figure


def main(given: Sequence[str] | None = None) -> list[Course]:
    """`composition.csv`, a picture, and the figures as lines."""
    options = arguments("Composition: the stream that Algorithm 4 undercharges", given)
    table = courses(200, 10) if options.quick else courses()
    written("composition", table, options)
    saved(drawn(table), options.out / "composition")
    first = table[0]
    right = ndtr(0.5 / first.noise_of_later_questions)
    times = first.told_by_each / first.charged_for_each
    print(f"noise of a later question {first.noise_of_later_questions:.4f}: right with probability {right:.6f}")
    print(f"charged {first.charged_for_each} nats, told {first.told_by_each:.4f} nats: {times:.1f} times as much")
    for one in table:
        print(
            f"an analyst who {one.analyst}: {one.success:.1%} of {one.coins:,} coins right, charged {one.charged:.0f} "
            f"nats, told at least {one.told_at_least:.0f}"
        )
    clock = (2 * 0.2533471) ** 2
    print(
        f"a session charges about 1/noise^2 = {1 / first.noise_of_later_questions**2:.0f} where the clock at cap "
        f"{CAP:.2f} has {clock:.3f}: {first.session_answers}"
    )
    return table


if __name__ == "__main__":
    main()
