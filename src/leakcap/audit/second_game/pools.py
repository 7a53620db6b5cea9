"""The second game: which of several pools was it? Was a person in it at all, and with which data?

First-game trials keep the pool and draw the secret half. Here the pool itself is the secret: for every trial one of the
candidate pools is drawn, a plan is made for it afresh, as a custodian would (worlds, noise and certificate all depend
on the pool), and releases are made from that plan. What attackers see comes in three views, each with what is in those
before: the released value; its error bars, which tell the scale of the noise; the certificate.

Releases of one plan share its worlds and its noise: the independent trial is the plan. Success is averaged over the
releases of each plan, and only these averages are counted.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.audit import statistics
from leakcap.audit.report import AuditReport
from leakcap.audit.run import PARTS
from leakcap.audit.second_game.beliefs import Belief, learned
from leakcap.audit.trials import numbers_in, releases
from leakcap.audit.verdicts import INCONCLUSIVE, SHOWN, SLACK, UNBOUNDED, Finding, verdict_of
from leakcap.caps import CapLike
from leakcap.errors import InputError, LeakcapError, LeakcapWarning
from leakcap.ground import checks
from leakcap.ground.arrays import Floats, Ints
from leakcap.planning.entry import plan
from leakcap.planning.plans import release_of_trial
from leakcap.planning.released import Release

__all__ = [
    "VIEWS",
    "CandidatePool",
    "Played",
    "attack",
    "entries_of",
    "length",
    "play",
    "pool_of",
    "rows_of",
    "with_entries",
    "without",
]

VIEWS = ("value", "value, error bars", "all that is public")
BY_ROW = ("unit", "strata")  # options of plan() that hold an entry for every row
LEVEL = 0.95  # of the error bars that are looked at; those of other levels are made of the same spreads
MIN_POOL_PLANS = 4  # plans for each pool to learn from


@dataclass(frozen=True, eq=False)
class CandidatePool:
    """One of the pools that it may have been: the data arguments of `plan`, and options that go by row."""

    name: str
    data: tuple[Any, ...]
    options: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Played:
    """Plans whose pools are known, and what was seen of the releases of each."""

    which: Ints  # (plans,): the pool
    seen: Floats  # (plans, releases, numbers)
    ends: tuple[int, ...]  # how many of the numbers are in each of VIEWS

    def view(self, place: int) -> tuple[Floats, Ints]:
        """All releases one by one, with their pools."""
        some = self.seen[:, :, : self.ends[place]]
        return some.reshape(-1, some.shape[2]), np.repeat(self.which, self.seen.shape[1])


def attack(
    name: str,
    question: str,
    fn: Callable[..., Any],
    pools: Sequence[CandidatePool],
    wins: npt.ArrayLike | None = None,
    *,
    cap: CapLike,
    plans: int,
    releases: int,
    claim: float | None,
    alpha: float,
    options: Mapping[str, Any],
) -> AuditReport:
    """Learn to tell pools apart, choose the best way, and be judged on fresh plans: one finding for each view.

    Args:
        wins: `(pools, guesses)`, 1 where a guess is right of a pool; None for guessing the pool itself.
        claim: the success that somebody promised; None where nobody did.
    """
    began = time.perf_counter()
    right = np.eye(len(pools)) if wins is None else np.asarray(wins, dtype=np.float64)
    learn, choose, judge = play(fn, pools, cap=cap, plans=plans, releases=releases, options=options)
    found = []
    for place, view in enumerate(VIEWS):
        believe = _best(learn, choose, place, right)
        seen, which = judge.view(place)
        share = _won(believe, seen, which, right).reshape(judge.seen.shape[:2]).mean(axis=1)
        words = f"{question} ({view})"
        found.append(
            _judged(
                name, words, share=share, prior=float(right.mean(axis=0).max()), claim=claim, alpha=alpha / len(VIEWS)
            )
        )
    return AuditReport(
        findings=tuple(found),
        certificate=None,
        trials=plans * releases,
        alpha=alpha,
        target="pool",
        seconds=time.perf_counter() - began,
    )


def play(
    fn: Callable[..., Any],
    pools: Sequence[CandidatePool],
    *,
    cap: CapLike,
    plans: int,
    releases: int,
    options: Mapping[str, Any],
) -> list[Played]:
    """Plans to learn from, to choose by and to be judged on. Pools are drawn at random for the last two."""
    if len(pools) < 2:
        raise InputError("the second game needs at least two pools that it may have been")
    if named := {"seed", "checkpoint"} & set(options):
        raise InputError(f"leave out {' and '.join(sorted(named))}: every plan of the second game is made afresh")
    counts = [round(part * checks.count(plans=plans)) for part in PARTS]
    if counts[0] < MIN_POOL_PLANS * len(pools):
        least = int(np.ceil(MIN_POOL_PLANS * len(pools) / PARTS[0]))
        raise InputError(
            f"plans must be at least {least}: attacks learn from {MIN_POOL_PLANS} or more of each of the pools"
        )
    checks.count(releases=releases)
    rng = np.random.default_rng()
    which = np.concatenate([np.arange(counts[0]) % len(pools), rng.integers(len(pools), size=sum(counts[1:]))])
    told = [_told(fn, pools[one], cap=cap, k=releases, options=options) for one in which]
    names = list(dict.fromkeys(name for one in told for name in one))
    parts = [_columns([one.get(name, NOTHING) for one in told], releases) for name in names]
    seen = np.concatenate(parts, axis=2)
    widths = np.cumsum([part.shape[2] for part in parts])
    ends = int(widths[0]), int(widths[1]), int(widths[-1])
    cuts = np.cumsum(counts)[:2]
    return [Played(w, s, ends) for w, s in zip(np.split(which, cuts), np.split(seen, cuts), strict=True)]


_Told = tuple[Hashable, Floats]  # what is not a number, and the numbers: (releases, numbers) or (numbers,)
NOTHING: _Told = ("", np.empty(0))


def _told(
    fn: Callable[..., Any], pool: CandidatePool, cap: CapLike, k: int, options: Mapping[str, Any]
) -> dict[str, _Told]:
    """What the public gets to see of one plan: value, error bars, each entry of the certificate. Refusals are seen."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LeakcapWarning)  # the same data again and again: that is the game
        try:
            made = plan(fn, *pool.data, cap=cap, **{**options, **pool.options})
        except LeakcapError as error:
            return {"value": ((type(error).__name__, str(error)), np.empty(0)), "error bars": NOTHING}
        published = made.release()
    values = releases(made, k).seen
    if made.certificate.mode == "pool":  # bars follow from the noised sums: each release has its own
        bars = np.array([_bars(release_of_trial(made, sums)) for sums in values])
    else:
        bars = _bars(published)
    record = json.loads(published.certificate.to_json())
    entries = {f"certificate: {name}": (_words(part), numbers_in(part)) for name, part in record.items()}
    return {"value": (published.names, values), "error bars": (bars.shape[-1], bars), **entries}


def _bars(published: Release) -> Floats:
    try:
        low, high = published.interval(LEVEL)
    except InputError:  # the function has no answer on the whole pool
        return np.empty(0)
    # Logarithms: what differs between pools is the factor. 0 is kept apart from all that is not.
    return np.asarray(np.log(np.maximum((high - low) / 2, np.finfo(np.float64).tiny)))


def _words(record: Any) -> Hashable:
    """The form of a record and every text in it."""
    if isinstance(record, dict):
        return tuple((name, _words(part)) for name, part in record.items())
    if isinstance(record, list):
        return tuple(map(_words, record))
    return record if isinstance(record, str) else type(record).__name__


def _columns(told: Sequence[_Told], k: int) -> Floats:
    """`(plans, releases, numbers)`: numbers side by side, after marks for whatever else was told."""
    kinds = {kind: place for place, kind in enumerate(dict.fromkeys(kind for kind, _ in told))}
    width = max(numbers.shape[-1] for _, numbers in told)
    table = np.zeros((len(told), k, len(kinds) + width))
    for row, (kind, numbers) in zip(table, told, strict=True):
        row[:, kinds[kind]] = 1.0
        row[:, len(kinds) : len(kinds) + numbers.shape[-1]] = numbers
    return table


def _best(learn: Played, choose: Played, place: int, wins: Floats) -> Belief:
    """The way that wins most often on the plans to choose by; learnt in this view or in one that sees less."""
    pool_count, (seen, which) = len(wins), choose.view(place)
    ways = [
        _looking_at(believe, learn.ends[less])
        for less in reversed(range(place + 1))  # of equals the first is taken: the one that sees most
        for believe in learned(*learn.view(less), pool_count)
    ]

    def merit(believe: Belief) -> tuple[float, float]:
        # Of ways that are as often right, the one that is surest of the truth: few plans make ties by luck.
        chances = believe(seen)[np.arange(len(seen)), which]
        return float(_won(believe, seen, which, wins).mean()), float(np.log(np.maximum(chances, 1e-9)).mean())

    return max(ways, key=merit)


def _looking_at(believe: Belief, end: int) -> Belief:
    return lambda some: believe(some[:, :end])


def _won(believe: Belief, seen: Floats, which: Ints, wins: Floats) -> Floats:
    return np.asarray(wins[which, (believe(seen) @ wins).argmax(axis=1)])


def _judged(name: str, question: str, share: Floats, prior: float, claim: float | None, alpha: float) -> Finding:
    """A finding from the average success in each of the judged plans."""
    low, high = statistics.mean_interval(share, SHOWN)
    measured = float(share.mean())
    if claim is None:
        return Finding(
            attack=name,
            question=question,
            measured=measured,
            interval=(low, high),
            prior=prior,
            certified=None,
            p_value=1.0,
            verdict=UNBOUNDED,
            trials=len(share),
        )
    p = statistics.mean_p_value(share, claim)
    verdict = verdict_of(p, high, claim, alpha)
    needed = statistics.trials_to_decide(measured, claim, SHOWN, SLACK) if verdict == INCONCLUSIVE else None
    return Finding(
        attack=name,
        question=question,
        measured=measured,
        interval=(low, high),
        prior=prior,
        certified=claim,
        p_value=p,
        verdict=verdict,
        trials=len(share),
        needed=needed,
    )


def pool_of(name: str, data: Any, options: Mapping[str, Any]) -> CandidatePool:
    """The pool as it is, from one table or a tuple of them."""
    tables = data if isinstance(data, tuple) else (data,)
    return CandidatePool(name, tables, {key: options[key] for key in BY_ROW if key in options})


def rows_of(pool: CandidatePool, person: Any) -> Ints:
    """The rows of a person: an id where `unit` says whose row it is, otherwise the number of the row."""
    unit = pool.options.get("unit")
    count = length(pool.data[0])
    if unit is None:
        if not 0 <= checks.count(at_least=0, person=person) < count:
            raise InputError(f"person must be the number of a row, from 0 to {count - 1}")
        return np.array([person], dtype=np.intp)
    whose = pool.data[0][unit] if isinstance(unit, str) else unit
    found = np.flatnonzero(np.asarray(whose) == person)
    if len(found) == 0:
        raise InputError("person is none of the units: give one of the ids in unit")
    return found


def without(pool: CandidatePool, person: Any, name: str) -> CandidatePool:
    """The same pool without a person."""
    rows = rows_of(pool, person)
    kept = np.setdiff1d(np.arange(length(pool.data[0])), rows)
    options = {key: value if isinstance(value, str) else _take(value, kept) for key, value in pool.options.items()}
    return CandidatePool(name, tuple(_take(table, kept) for table in pool.data), options)


def with_entries(pool: CandidatePool, person: Any, entries: Sequence[Mapping[Any, Any]], name: str) -> CandidatePool:
    """The same pool with other entries, `{column: value}` for each table, in a person's only row.

    Columns are names of a data frame's, or numbers; the column of a table of one dimension is 0.
    """
    rows = rows_of(pool, person)
    if len(rows) != 1:
        raise InputError("the person has several rows: other data can be put in place of one row only")
    tables = [_changed(table, int(rows[0]), new) for table, new in zip(pool.data, entries, strict=True)]
    return CandidatePool(name, tuple(tables), pool.options)


def entries_of(pool: CandidatePool, rows: Sequence[Any]) -> list[dict[Any, Any]]:
    """A whole row of each table, as `with_entries` takes it. Whose row it is stays as it was."""
    if len(rows) != len(pool.data):
        raise InputError("give a row for each of the tables, as a tuple")
    found: list[dict[Any, Any]] = []
    for table, row in zip(pool.data, rows, strict=True):
        width = 1 if len(getattr(table, "shape", (0,))) == 1 else table.shape[1]
        values = [row] if np.ndim(row) == 0 else list(row)
        if len(values) != width:
            raise InputError(f"a row to be put in must have {width} entries, as those of its table")
        names = list(getattr(table, "columns", range(width)))
        unit = pool.options.get("unit")
        mine = unit if isinstance(unit, str) else None
        found.append({name: value for name, value in zip(names, values, strict=True) if name != mine})
    return found


def length(table: Any) -> int:
    """How many rows."""
    return int(table.shape[0]) if hasattr(table, "shape") else len(table)


def _take(table: Any, rows: Ints) -> Any:
    if hasattr(table, "iloc"):
        return table.iloc[rows]
    return table[rows] if hasattr(table, "shape") else np.asarray(table)[rows]


def _changed(table: Any, row: int, entries: Mapping[Any, Any]) -> Any:
    if not entries:
        return table
    if hasattr(table, "iloc"):
        new = table.copy()
        for column, value in entries.items():
            place = new.columns.get_loc(column) if column in new.columns else column
            new.iloc[row, place] = value
        return new
    new = np.array(table, copy=True)
    for column, value in entries.items():
        if new.ndim == 1:
            new[row] = value
        else:
            new[row, column] = value
    return new
