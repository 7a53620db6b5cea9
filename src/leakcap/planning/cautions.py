"""Mistakes that can be seen before anything leaves, and that no error would show: warned about, for the custodian.

Nothing here looks at the secret. Under a pool cap, where a warning would itself tell what the data are like, nothing is
said of them.
"""

from __future__ import annotations

import inspect
import math
import re
import warnings
from collections.abc import Iterator
from types import CodeType
from typing import Any

import numpy as np

from leakcap.custody.checkpoint import Checkpoint
from leakcap.errors import FewWorldsWarning, LeakcapWarning, OwnNoiseWarning, RepeatedIdsWarning
from leakcap.ground.arrays import Floats
from leakcap.ground.callers import frames_of_ours
from leakcap.kernels import kernel_of
from leakcap.modes.interface import Rerun
from leakcap.planning.job import Job
from leakcap.simulate import Pool
from leakcap.worlds import Worlds

__all__ = ["warn_beforehand", "warn_of_own_noise", "warn_of_repeated_ids"]

MIN_WORLDS = 32  # below, fewer than five known participants tell all
OWN_NOISE = 0.05  # share of the spread between worlds, above which an answer that changes by itself costs noise
KEPT = "own noise"  # in the checkpoint
CHANCE = re.compile(r"(?i)rand|rng|normal|laplace|gauss|noise|shuffle|permut|choice|sample|secrets")
# Names of columns that say whose row it is. Codes of categories end in `_id`, too: they have few values.
WHO = r"person|patient|subject|participant|customer|client|user|member|respondent|pupil|student|employee|household"
IDS = re.compile(rf"(?i)(.*[_\W]|)(id|uid|guid|uuid|pid|nbr|ssn)|({WHO})s?([_\W]?(id|no|nr|nbr|num|number|name|key))?")
MIN_IDS, MAX_ROWS_EACH = 10, 50


def warn_beforehand(pool: Pool, whose: Any, worlds: Any, *, mode: str, seeded: bool) -> None:
    """What can be seen before the function is run."""
    if whose is None and mode != "pool":
        warn_of_repeated_ids(pool)
    if mode == "exact" and not seeded:
        _warn_of_few_worlds(worlds)


def _warn_of_few_worlds(worlds: Any) -> None:
    """Where a number was given that a handful of known participants brings to an end."""
    if isinstance(worlds, (int, np.integer)) and 0 < worlds < MIN_WORLDS:
        known = max(1, round(math.log2(worlds)))
        _warn(
            f"{worlds} worlds are few: whoever knows about {known} participant{'s' if known > 1 else ''} can tell "
            "which world it was, and so everybody else who took part. Leave worlds out (1,024 or more), or take "
            "design='bits' for what adds up over people, which holds whoever else is known",
            FewWorldsWarning,
        )


def warn_of_repeated_ids(pool: Pool) -> None:
    """Where no unit was named, and a column looks like ids of people who have several rows each."""
    for table in pool.data:
        for name in getattr(table, "columns", ()):
            if isinstance(name, str) and IDS.fullmatch(name) and _repeats(table[name]):
                _warn(
                    f"column {name!r} looks like ids with several rows each, and rows are protected one by one. "
                    f"unit={name!r} protects the person with all rows; if it is no id, give the column another name",
                    RepeatedIdsWarning,
                )
                return


def _repeats(column: Any) -> bool:
    values = np.asarray(column)
    if values.dtype.kind not in "iuOUT":
        return False
    rows, ids = len(values), len(set(values.tolist()))
    return MIN_IDS <= ids < rows <= MAX_ROWS_EACH * ids


def warn_of_own_noise(job: Job, again: Rerun, ran: tuple[Worlds, Floats], stored: Checkpoint | None) -> None:
    """Where the function's answer in the first world is another one each time: it is asked there once more.

    `ran` has the worlds and the answers in them.

    The certificate holds all the same: answers are kept, and none is asked for again in the secret world.
    """
    if kernel_of(job.fn) is not None or not _may_draw(job.fn):
        return
    known = stored.kept(KEPT) if stored else None
    if known is None:
        worlds, answers = ran
        answer, spread = again(worlds.mask(0)), answers.std(axis=0)
        known = answer is not None and bool((np.abs(answer - answers[0]) > OWN_NOISE * spread).any())
        if stored:
            stored.keep(KEPT, known)
    if known:
        _warn(
            "the function gives another answer each time for the same rows. Its own randomness protects nobody here, "
            "and the noise of the cap comes on top and is larger for it: leave noise of your own out, or fix it inside "
            "the function (random_state=0, np.random.default_rng(0))",
            OwnNoiseWarning,
        )


def _may_draw(fn: Any) -> bool:
    """Whether a function's own code speaks of chance: only then is it asked once more, which may take long."""
    code = getattr(inspect.unwrap(getattr(fn, "func", fn)), "__code__", None)
    return code is not None and any(CHANCE.search(name) for name in _names(code))


def _names(code: CodeType) -> Iterator[str]:
    yield from (*code.co_names, *code.co_varnames, *code.co_freevars)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _warn(words: str, kind: type[LeakcapWarning]) -> None:
    warnings.warn(words, kind, stacklevel=1 + frames_of_ours())
