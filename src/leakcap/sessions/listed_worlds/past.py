"""What was answered from a list of worlds, made of the entries of its numbers: each is one direction of the answer."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator

import numpy as np

from leakcap.custody.ledger import Entry
from leakcap.ground.arrays import Floats
from leakcap.sessions.answers import PastAnswer
from leakcap.sessions.listed_worlds.charges import TICKS

__all__ = ["answered_numbers", "past_answers", "stored_numbers"]


def stored_numbers(entry: Entry, name: str) -> Floats:
    """An array that an entry holds."""
    return np.frombuffer(base64.b64decode(entry.body[name]), dtype="<f8").copy()


def answered_numbers(drawn: Iterable[Entry], end: Entry) -> Floats:
    """The answer: as it was expected at its end, and moved to what was drawn, direction by direction."""
    whitened = stored_numbers(end, "centre")
    for entry in drawn:
        direction = stored_numbers(entry, "direction")
        whitened = whitened + (entry.body["number"] - whitened @ direction) * direction
    return np.asarray(whitened * stored_numbers(end, "noise"))


def past_answers(entries: Iterable[Entry]) -> Iterator[PastAnswer]:
    """One for each question, in the order in which they ended; one that was cut off in between has no numbers yet."""
    drawn: dict[str, list[Entry]] = {}
    ends: dict[str, Entry] = {}
    for entry in entries:
        if entry.kind == "number":
            drawn.setdefault(entry.body["question"], []).append(entry)
        elif entry.kind == "end":
            ends[entry.body["question"]] = entry
    for question, numbers in drawn.items():
        end = ends.get(question)
        yield PastAnswer(
            number=numbers[-1].number,
            question=question,
            analyst=numbers[0].body["analyst"],
            share=sum(entry.charge for entry in numbers) / TICKS,
            numbers=() if end is None else tuple(answered_numbers(numbers, end).tolist()),
            at=numbers[-1].body["at"],
        )
