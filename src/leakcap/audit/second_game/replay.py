"""Two pools that differ in one person, and the same randomness: which public things differ?

The comparison is deterministic: no statistics, no chance. What the certificate lists as known of the pool may differ
and is shown, since whoever sees it has learnt something about the pool; what differs beyond that list is a fault.
"""

from __future__ import annotations

import json
import re
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from leakcap.audit.report import AuditReport
from leakcap.audit.second_game import pools
from leakcap.audit.second_game.pools import CandidatePool
from leakcap.audit.verdicts import CHECK, HOLDS, REFUTED, UNBOUNDED, Finding
from leakcap.caps import CapLike
from leakcap.errors import LeakcapError
from leakcap.ground import checks
from leakcap.planning.entry import plan

__all__ = ["replay"]

Facts = dict[str, Any]
# Texts of a certificate that say the same of every pool; its figures are listed as published, and so are these others.
WORDS = ("assumptions", "declared_public", "kind", "mode", "not_promised", "rate", "theorems", "leakcap_version")
LEVELS = (0.5, 0.95, 0.99)


def replay(
    fn: Callable[..., Any],
    data: Any,
    person: Any,
    *,
    cap: CapLike,
    instead: Any = None,
    seed: int = 0,
    **options: Any,
) -> AuditReport:
    """Plan and release with the same seed from the pool and from one that differs in a person; compare what is public.

    The report has one finding for each public thing that differs, and one for all that are equal. `refuted` where
    something differs that the certificate does not list as known of the pool: its fixed texts, or error texts, which
    must not quote data. `no promise` for the rest: figures, error bars, names, the exact numbers in the answer,
    warnings, refusals.

    Args:
        fn: the function to release, as for `leakcap.plan`.
        data: one table or a tuple of them, as for `leakcap.plan`.
        person: number of the row, or an id where `unit=` is given.
        cap: the cap of both plans.
        instead: a row (a tuple of rows for several tables) in the person's place: worlds are then the same in both
            pools, and so is the number of units. None: the person is left out, and worlds are drawn anew.
        seed: seed of worlds, certifying draws, secret and noise.
        **options: further arguments of `leakcap.plan`.

    Returns:
        A report with a finding for each public thing that differs. Custodian side.

    Raises:
        InputError: the person or the row cannot be used.
    """
    began = time.perf_counter()
    checks.count(at_least=0, seed=seed)
    pool = pools.pool_of("with the person", data, options)
    if instead is None:
        other = pools.without(pool, person, "without the person")
    else:
        rows = instead if isinstance(instead, tuple) else (instead,)
        other = pools.with_entries(pool, person, pools.entries_of(pool, rows), "somebody else instead")
    first, second = (_public(fn, one, cap, {**options, "seed": seed}) for one in (pool, other))
    found = tuple(_compared(first, second))
    return AuditReport(
        findings=found, certificate=None, trials=2, alpha=0.0, target="pool", seconds=time.perf_counter() - began
    )


def _public(fn: Callable[..., Any], pool: CandidatePool, cap: CapLike, options: Mapping[str, Any]) -> Facts:
    """Everything that leaves, or that is said on the way, by name."""
    facts: Facts = {}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            made = plan(fn, *pool.data, cap=cap, **{**options, **pool.options})
            published = made.release()
        except LeakcapError as error:
            facts["refusal: kind"] = type(error).__name__
            facts["refusal: text"] = _without_size(str(error), pools.length(pool.data[0]))
        else:
            facts |= {f"certificate: {key}": part for key, part in json.loads(published.certificate.to_json()).items()}
            facts["answer: names"] = published.names
            facts["answer: form"] = _form(published.value)
            facts["answer: exact numbers"] = published.outputs[made.noise.output_deviations == 0].tolist()
            facts |= {f"error bars at {level:.0%}": bars for level, bars in _bars(published)}
    facts["warnings"] = sorted(f"{one.category.__name__}: {one.message}" for one in said)
    return facts


def _bars(published: Any) -> Iterator[tuple[float, Any]]:
    for level in LEVELS:
        try:
            low, high = published.interval(level)
        except LeakcapError:
            return
        yield level, np.asarray((high - low) / 2).tolist()


def _form(value: Any) -> Any:
    """Types, keys, shapes and texts at every depth: all but the numbers."""
    name = type(value).__name__
    if isinstance(value, Mapping):
        return name, tuple((str(key), _form(part)) for key, part in value.items())
    if isinstance(value, (list, tuple)):
        return name, tuple(_form(part) for part in value)
    if hasattr(value, "columns"):
        return name, tuple(map(str, value.columns)), tuple(map(str, value.index)), tuple(map(str, value.dtypes))
    if hasattr(value, "shape"):
        return name, tuple(value.shape), str(getattr(value, "dtype", ""))
    if isinstance(value, (str, bytes)):
        return name, value
    return (
        (name, tuple((key, _form(part)) for key, part in vars(value).items())) if hasattr(value, "__dict__") else name
    )


def _compared(first: Facts, second: Facts) -> Iterator[Finding]:
    names = list(dict.fromkeys([*first, *second]))
    if ("refusal: kind" in first) != ("refusal: kind" in second):
        yield _finding("whether anything is released at all", True, UNBOUNDED)
        names = ["warnings"]  # nothing else can be compared
    equal = 0
    for name in names:
        if first.get(name) == second.get(name):
            equal += 1
        else:
            yield _finding(name, True, _verdict(name))
    yield _finding(f"any of {equal} other public things", False, HOLDS)


def _verdict(name: str) -> str:
    return REFUTED if name.removeprefix("certificate: ") in (*WORDS, "refusal: text") else UNBOUNDED


def _without_size(text: str, units: int) -> str:
    """A text without the number of units or of half of them: any other difference would quote the data."""
    sizes = {form for n in (units, units // 2, units - units // 2) for form in (str(n), f"{n:,}")}
    return re.sub(r"\d[\d,.]*\d|\d", lambda found: "#" if found[0] in sizes else found[0], text)


def _finding(what: str, differs: bool, verdict: str) -> Finding:
    success = 1.0 if differs else 0.5  # of telling the two pools apart, with the randomness known
    p = 0.0 if verdict == REFUTED else 1.0
    return Finding(
        attack="replay",
        question=f"two pools apart by {what}",
        measured=success,
        interval=(success, success),
        prior=0.5,
        certified=None,
        p_value=p,
        verdict=verdict,
        trials=2,
        kind=CHECK,
        reading="differs" if differs else "the same",
    )
