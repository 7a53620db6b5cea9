"""How many counts a session with a coin for everybody gives, until somebody cannot pay, and until one in a hundred.

`python -m benchmarks.session_counts [bits]`. Adult, all people: counts under one or two random conditions, with noise
of one sampling error, asked one after the other through a ledger in a folder of its own. Beside the session everybody's
clock is added up by arithmetic that shares no code with it; the two must agree on who is left out of every answer.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import leakcap as lc
from benchmarks.records import record
from leakcap import datasets
from leakcap.caps import as_caps
from leakcap.sessions.clock import Clock

CAP, NOISE = 0.6, 1.0  # noise in sampling errors: deviations of the doubled sum of fair coins
MIN_PEOPLE, MIN_SHARE, RETIRED = 30, 1 / 200, 0.01
SEQUENCES = 10
TOPIC = "Sessions"


@contextmanager
def own_folder() -> Iterator[Path]:
    """A folder for a ledger, and a key file of its own."""
    before = os.environ.get("LEAKCAP_KEY")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LEAKCAP_KEY"] = str(Path(folder) / "keys" / "key")
        try:
            yield Path(folder)
        finally:
            os.environ.pop("LEAKCAP_KEY")
            if before is not None:
                os.environ["LEAKCAP_KEY"] = before


class Conditions:
    """Random conditions on a table, and who matches them."""

    def __init__(self, table: Any, seed: int) -> None:
        self.rng, self.columns = np.random.default_rng(seed), list(table.columns)
        self.numbers = {name: table[name].to_numpy() for name in self.columns if table[name].dtype.kind in "if"}
        self.texts = {name: table[name].astype("category").cat for name in self.columns if name not in self.numbers}
        self.codes = {name: text.codes.to_numpy() for name, text in self.texts.items()}  # -1 where it is missing

    def one(self) -> tuple[str, Any]:
        """Of one column: equal to a random person's category, or above or below a random quantile."""
        name = self.columns[self.rng.integers(len(self.columns))]
        if name in self.numbers:
            cells = self.numbers[name]
            cut = cells[self.rng.integers(len(cells))]
            over = self.rng.random() < 0.5
            return f"{name} {'>' if over else '<='} {cut}", cells > cut if over else cells <= cut
        codes = self.codes[name]
        code = -1
        while code < 0:
            code = codes[self.rng.integers(len(codes))]
        return f"{name} = '{self.texts[name].categories[code]}'", codes == code

    def questions(self) -> Iterator[tuple[str, Any]]:
        """One or two conditions, never the same question again; without end."""
        seen: set[str] = set()
        while True:
            text, chosen = self.one()
            if self.rng.random() < 0.5:
                other, also = self.one()
                text, chosen = f"{text} and {other}", chosen & also
            if chosen.sum() >= MIN_PEOPLE and chosen.mean() >= MIN_SHARE and text not in seen:
                seen.add(text)
                yield text, chosen


class Clocks:
    """Everybody's clock by plain arithmetic: an answer takes four over the square of its noise."""

    def __init__(self, people: int) -> None:
        self.left = np.full(people, Clock.of(as_caps(CAP)).square)
        self.out = np.zeros(people, dtype=bool)  # who has been left out of an answer

    def short(self, chosen: Any, noise: float) -> Any:
        return chosen & (self.left < 4 / noise**2)

    def pay(self, chosen: Any, noise: float) -> None:
        short = self.short(chosen, noise)
        self.left[chosen & ~short] -= 4 / noise**2
        self.out |= short


def by_arithmetic(table: Any, seed: int) -> tuple[int, int]:
    """Answers until the first person cannot pay, and until one in a hundred has been left out."""
    clocks, first = Clocks(len(table)), 0
    for answers, (_, chosen) in enumerate(Conditions(table, seed).questions()):
        noise = NOISE * float(np.sqrt(chosen.sum()))
        if not first and clocks.short(chosen, noise).any():
            first = answers
        clocks.pay(chosen, noise)
        if clocks.out.mean() >= RETIRED:
            return first, answers
    raise AssertionError("questions have no end")


def through_a_session(table: Any, seed: int) -> tuple[int, int, float]:
    """The same through a session and its ledger, which must agree with the arithmetic answer by answer; and CPU seconds
    of an answer."""
    clocks, first, seconds, began = Clocks(len(table)), 0, 0.0, time.process_time()
    with own_folder() as folder:
        ledger = f"sqlite:///{folder / 'ledger'}"
        session = lc.Session(table, cap=CAP, ledger=ledger, name="adult", retire=False)
        for answers, (text, chosen) in enumerate(Conditions(table, seed).questions()):
            noise = NOISE * float(np.sqrt(chosen.sum()))
            short = clocks.short(chosen, noise)
            if not first:
                try:
                    session.count(where=text, noise=noise)
                except lc.BudgetError:
                    first, seconds = answers, (time.process_time() - began) / answers
                    session = lc.Session(table, cap=CAP, ledger=ledger, name="adult")  # goes on, and leaves people out
                assert short.any() == bool(first), "session and arithmetic differ on whether everybody can pay"
            if first:
                left_out = session.preview("count", where=text, noise=noise).retired
                assert left_out == short.sum(), "session and arithmetic differ on who is left out"
                session.count(where=text, noise=noise)
            clocks.pay(chosen, noise)
            if clocks.out.mean() >= RETIRED:
                return first, answers, seconds
    raise AssertionError("questions have no end")


def bits() -> None:
    table = datasets.adult().drop(columns="split").reset_index(drop=True)
    first, many, seconds = through_a_session(table, 0)
    print(f"session: {first} answers, {many} with 1 % left out; {seconds:.3f} CPU s each", flush=True)
    found = np.array([by_arithmetic(table, seed) for seed in range(SEQUENCES)])
    print(found.tolist(), flush=True)
    assert (first, many) == tuple(found[0])
    means, least, most = found.mean(axis=0), found.min(axis=0), found.max(axis=0)
    record(
        "session-counts-60",
        f"{means[0]:,.0f} different answers on average ({SEQUENCES} sequences of questions, {least[0]:,} to "
        f"{most[0]:,}) until the first person cannot pay; {means[1]:,.0f} ({least[1]:,} to {most[1]:,}) until 1 % of "
        f"people have been left out of one. The first sequence was asked through a ledger, {seconds:.2g} CPU s each: "
        f"{first:,} and {many:,}; the others are the same clocks by arithmetic",
        topic=TOPIC,
        claim=f"Adult, {len(table):,} people with a coin each, counts under one or two random conditions with noise of "
        f"one sampling error: answers at a membership cap of {CAP:.2f}, whoever of the others is known",
        command="python -m benchmarks.session_counts bits",
        asked="at least 900 until the first person cannot pay",
    )


PARTS = {"bits": bits}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
