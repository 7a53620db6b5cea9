"""What attackers who know some members learn about another one: coins for everybody beside a list of worlds.

`python -m benchmarks.session_known_members`. Adult, 2,000 people: means of five columns within declared bounds, asked
in a session with a coin for everybody until the whole clock is used. The attacker knows the pool, and the coins of some
people. What the coins of all others add is many small steps up or down, and taken as normal; where all are known,
nothing is approximated. Beside formulas, the attack is made on answers of real sessions.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit, ndtr

import leakcap as lc
from benchmarks.records import record
from leakcap import datasets
from leakcap.audit.attacks import collude, posterior
from leakcap.audit.trials import knowledge, releases

BOUNDS = {
    "age": (16, 100),
    "education_num": (0, 20),
    "capital_gain": (0, 10_000),
    "capital_loss": (0, 2_000),
    "hours_per_week": (10, 80),
}
PEOPLE, CAP, ANSWERS = 2000, 0.6, 4
KNOWN = (0, 10, 50, PEOPLE - 1)
SESSIONS, SETS = 400, 20  # that are attacked; of known people
WORLDS, RELEASES = 1024, 4000
TOPIC = "Sessions"


@dataclass(frozen=True, eq=False)
class Asked:
    """Means of columns in a session whose clock is used up; deviations are those of all answers averaged."""

    people: Any  # a table
    bounds: dict[str, tuple[float, float]] | None
    noise: Any  # of every column, in one answer

    @classmethod
    def of(cls, people: Any, bounds: dict[str, tuple[float, float]] | None) -> Asked:
        """Noise in proportion to the sampling error, as little as the whole clock allows."""
        trial = cls(people, bounds, np.sqrt(ANSWERS / len(people)) * cut(people, bounds).std(axis=0))
        share = trial.session(0).preview("mean", list(people), bounds=bounds, noise=trial.noise).share
        return cls(people, bounds, trial.noise * np.sqrt(ANSWERS * share) * (1 + 1e-5))

    @property
    def relative(self) -> Any:
        """Noise of the average over the sampling error: of a mean over those whose coin says so, about that of all."""
        return self.noise / np.sqrt(ANSWERS) / sampling_error(cut(self.people, self.bounds))

    @cached_property
    def moves(self) -> Any:
        """By how much everybody's coin moves the means, up or down."""
        cells = cut(self.people, self.bounds)
        return (cells - cells.mean(axis=0)) / len(cells)

    def spread(self, unknown: Any) -> Any:
        """Covariance of the average, if the coins of some are unknown."""
        return np.diag(self.noise**2 / ANSWERS) + self.moves[unknown].T @ self.moves[unknown]

    def session(self, seed: int) -> lc.Session:
        return lc.Session(self.people, cap=CAP, seed=seed)

    def seen(self, seed: int) -> tuple[Any, Any]:
        """The average of all answers of a real session, and everybody's coins."""
        session = self.session(seed)
        steps = [self.noise * (1 + 1e-6 * step) for step in range(ANSWERS)]  # the same question again tells nothing new
        answers = [session.mean(list(self.people), bounds=self.bounds, noise=noise).value for noise in steps]
        assert 0.999 < session.spent.share <= 1
        return np.mean(answers, axis=0), session._desk.coins

    def attacked(self, target: int) -> dict[int, tuple[float, float]]:
        """Mean posterior of the likelier side of a person's coin over real sessions, by how many others are known; and
        its standard error."""
        rng, found = np.random.default_rng(0), {known: [] for known in KNOWN}
        others = np.delete(np.arange(len(self.people)), target)
        centre = cut(self.people, self.bounds).mean(axis=0)
        for seed in range(SESSIONS):
            value, coins = self.seen(seed)
            mixed = rng.permutation(others)
            for known, sure in found.items():
                told, unknown = mixed[:known], mixed[known:]
                rest = value - centre - (2.0 * coins[told] - 1) @ self.moves[told]
                sure.append(expit(abs(2 * rest @ np.linalg.solve(self.spread(unknown), self.moves[target]))))
        return {known: (float(np.mean(sure)), float(np.std(sure) / np.sqrt(SESSIONS))) for known, sure in found.items()}


def cut(people: Any, bounds: dict[str, tuple[float, float]] | None) -> Any:
    cells = people.to_numpy(float)
    return cells if bounds is None else np.clip(cells, *np.array([bounds[name] for name in people]).T)


def sampling_error(cells: Any) -> Any:
    return cells.std(axis=0) / np.sqrt(len(cells))


def successes(asked: Asked, known: int) -> Any:
    """Of the best attack on everybody, on average over which others are known."""
    rng, total = np.random.default_rng(known), np.zeros(PEOPLE)
    for _ in range(SETS):
        # The target's own coin stays among the unknown ones: of 2,000 it is nothing, and where all are known nobody is.
        unknown = rng.permutation(PEOPLE)[known:] if known < PEOPLE - 1 else np.empty(0, dtype=int)
        root = np.linalg.cholesky(asked.spread(unknown))
        total += ndtr(np.linalg.norm(np.linalg.solve(root, asked.moves.T), axis=0)) / SETS
    return total


def in_worlds(table: Any) -> tuple[Any, dict[int, tuple[float, float]]]:
    """Noise over sampling error of one release, and success measured and certified by how many are known."""
    plan = lc.plan(lc.stats.mean, table, cap=CAP, design="worlds", worlds=WORLDS, seed=0)
    told = knowledge(plan)
    believe = posterior.as_claimed(told)
    assert believe is not None
    made, unit, found = releases(plan, RELEASES), int(told.exposed[0]), {}
    for known in (0, 10):
        attack = collude.collude("collude", told, made, believe, unit, known, 1e-6)
        found[known] = attack.measured, plan.certificate.given(known)
    return plan.noise.output_deviations / sampling_error(table), found


def main() -> None:
    people = datasets.adult()[list(BOUNDS)].sample(PEOPLE, random_state=0).reset_index(drop=True)
    table, asked = cut(people, BOUNDS), Asked.of(people, BOUNDS)
    relative, uncut = asked.relative, Asked.of(people, None).relative
    print("noise over sampling error", relative, "as they are", uncut, flush=True)
    exposed = {known: successes(asked, known) for known in KNOWN}
    found = {known: float(success.max()) for known, success in exposed.items()}
    assert max(found.values()) <= CAP
    measured = asked.attacked(int(exposed[PEOPLE - 1].argmax()))
    print(found, measured, flush=True)
    assert all(mean <= CAP + 4 * error for mean, error in measured.values())
    listed, told = in_worlds(table)
    print("worlds: noise over sampling error", listed, told, flush=True)
    record(
        "session-known-members",
        "; ".join(f"{known:,} known: {100 * found[known]:.2f} % ({100 * measured[known][0]:.1f} %)" for known in KNOWN)
        + f"; noise {relative.max():.2f} of the sampling error in every column ({uncut.max():.2f} without bounds)",
        topic=TOPIC,
        claim=f"Adult, {PEOPLE:,} people with a coin each, means of five columns within declared bounds, the whole "
        f"clock of a membership cap of {CAP:.2f} used in {ANSWERS} answers: success of the best attack on whoever is "
        f"most exposed, by how many others the attacker knows (in brackets: on {SESSIONS} real sessions, against "
        "whoever is most exposed with all known)",
        command="python -m benchmarks.session_known_members",
        asked="at most 60 %, and noise of .6 sampling errors",
    )
    record(
        "session-known-members-worlds",
        "; ".join(
            f"{known} known: {100 * told[known][0]:.1f} % (certified: {100 * told[known][1]:.1f} %)" for known in told
        )
        + f"; noise {listed.min():.2f} to {listed.max():.2f} of the sampling error",
        topic=TOPIC,
        claim=f"The same means in one release from {WORLDS:,} listed worlds at the same cap: success against whoever "
        f"is most exposed, {RELEASES:,} releases",
        command="python -m benchmarks.session_known_members",
        asked="about 97 % with 10 known: a list of worlds ends there",
    )


PARTS = {"known": main}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
