"""What parties compute together: sums of what their rows bring, selected by coins that nobody knows or not, and noise.

Every step is on shares of numbers; the one number vector that is opened is the noisy sum, at the end, once every party
says that it holds its share of it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from leakcap.ground.arrays import Ints
from leakcap.ground.proofs import proves
from leakcap.local.parties.law import CoinLaw
from leakcap.local.parties.shares import Numbers, Sharing

__all__ = ["ANSWER", "Course", "PartyBrings", "noisy_total", "tossed"]


ANSWER = "answer"  # the step in which it is opened


@dataclass(frozen=True, eq=False)
class PartyBrings:
    """What one party brings: its sums, or what every row brings where coins select rows; whole steps of the noise."""

    numbers: int
    parties: int
    total: Ints | None = None  # (numbers,)
    rows: Ints | None = None  # (agreed rows, numbers); rows that are not there are 0


class Course(Protocol):
    """Where a computation says which step it is in, and waits for the others before the last one."""

    step: str

    async def all_ready(self) -> None: ...


@proves("parties")
async def noisy_total(sharing: Sharing, brought: PartyBrings, law: CoinLaw, steps: Course) -> Numbers:
    """The sums with noise, in finest steps of it: the only numbers that are opened.

    Guarantee: a coalition of up to `threshold` parties that follow the protocol sees, beside its own rows and coins,
    uniform shares that do not depend on the others' rows, and the opened sums.
    """
    everybody = list(range(brought.parties))
    tossing = everybody[: sharing.threshold + 1]  # one of them is outside any coalition of `threshold`
    if brought.total is not None:
        steps.step = "sums"
        total = _added(await sharing.shared(brought.total.astype(object), everybody))
    else:
        assert brought.rows is not None
        steps.step = "rows"
        rows = await sharing.shared(brought.rows.astype(object), everybody)
        steps.step = "coins of rows"
        coins = await _xor(sharing, tossed((brought.parties, len(brought.rows))), tossing)
        steps.step = "selected sums"
        total = _added([await _selected(sharing, coins[number], each) for number, each in enumerate(rows)])
    steps.step = "coins of the noise"
    noise = await _noise(sharing, brought.numbers, law, tossing)
    noisy = await sharing.settled(total + noise)
    steps.step = "waiting"
    await steps.all_ready()
    steps.step = ANSWER
    return await sharing.opened(noisy, "the noisy answer")


def tossed(shape: tuple[int, ...]) -> Ints:
    """Fair coins of this party alone, from the operating system."""
    count = int(np.prod(shape))
    bits = np.unpackbits(np.frombuffer(os.urandom((count + 7) // 8), dtype=np.uint8))[:count]
    return bits.astype(np.int64).reshape(shape)


async def _noise(sharing: Sharing, numbers: int, law: CoinLaw, tossing: list[int]) -> Any:
    """Weighted coins, added up: sums of exclusive ors need one product of shares for each number, not each coin."""
    weights = law.weights().astype(object)
    coins = await sharing.shared(tossed((numbers, law.count)).astype(object), tossing)
    one, other = coins[0], coins[1]
    for further in coins[2:]:
        one, other = one + other - 2 * await sharing.product(one, other, size=numbers * law.count), further
    either = ((one + other) * weights[None, :]).reshape(numbers, 1, law.count) @ _ones(law.count)
    weighted = (one * weights[None, :]).reshape(numbers, 1, law.count)
    both = await sharing.product(weighted, other.reshape(numbers, law.count, 1), size=numbers, matrices=True)
    return (either.reshape(numbers) - 2 * both.reshape(numbers)) - law.middle


async def _xor(sharing: Sharing, own: Ints, tossing: list[int]) -> Any:
    """Coins of which nobody knows any, as long as one of those who toss is outside the coalition."""
    coins = await sharing.shared(own.astype(object), tossing)
    found = coins[0]
    for further in coins[1:]:
        found = found + further - 2 * await sharing.product(found, further, size=own.size)
    return found


async def _selected(sharing: Sharing, coins: Any, rows: Any) -> Any:
    """Sums of the rows whose coins show heads."""
    numbers = rows.shape[1]
    found = await sharing.product(coins.reshape(1, -1), rows, size=numbers, matrices=True)
    return found.reshape(numbers)


def _ones(count: int) -> Numbers:
    return np.ones((count, 1), dtype=object)


def _added(parts: list[Any]) -> Any:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total
