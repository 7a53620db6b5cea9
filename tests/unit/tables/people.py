"""A small table of people, as files, and refusals that quote none of their cells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import leakcap as lc
from tests.refusals import refusal

MARK = "7712345"  # every cell of the table below holds it, or is a marked word
PEOPLE = pd.DataFrame(
    {
        "who": [int(f"{MARK}00{i // 2:02d}") for i in range(24)],
        "age": [float(f"{MARK}.{i:02d}") for i in range(24)],
        "hours": np.arange(24) + int(MARK),
        "member": [i % 2 == 0 for i in range(24)],
        "town": [f"t{MARK}{'ab'[i // 12]}" for i in range(24)],
        "name": [f"n{MARK}x{i}" for i in range(24)],
        "born": [f"20{i // 12}1-0{1 + i % 9}-11" for i in range(24)],
    }
)


def refused(words: str, call: Callable[[], Any], kind: type[Exception] = lc.InputError) -> str:
    """The message; neither it nor anything chained to it quotes a marked cell."""
    return str(refusal(call, words, kind, private=(MARK, "SECRET")))


GAPS = "a,b,empty\n1,2,\n3,,\n,4,\n5,6,\n"
