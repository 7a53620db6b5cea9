"""One answer, whoever works it out: this process, others, workers of a cluster; on any partitioning, in any order.

Bits, masks, charges and certificates are compared bit for bit, and so are outputs, of which 1e-12 would be enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge

import leakcap as lc
from leakcap.custody.ledger import budgets
from leakcap.custody.ledger.accounts import Spent
from leakcap.sessions.session import desk_of

pytest.importorskip("distributed")
ROWS = np.random.default_rng(0).normal(size=(90, 3))


@pytest.fixture(scope="module")
def clusters(pair: lc.cluster.Cluster) -> Iterator[Any]:
    """Clusters by their number of workers, each started when it is first asked for."""
    with ExitStack() as open_ones:
        known = {2: pair}

        def of(workers: int) -> lc.cluster.Cluster:
            if workers not in known:
                known[workers] = open_ones.enter_context(lc.cluster.connect(workers=workers))
            return known[workers]

        yield of


# worlds: plans and estimators


def middles(rows: np.ndarray) -> dict[str, Any]:
    return {"middle": np.median(rows, axis=0), "far": float(np.abs(rows).max())}


def of_plan(backend: Any) -> dict[str, Any]:
    plan = lc.plan(middles, ROWS, cap=0.7, worlds=64, seed=3, backend=backend)
    return {
        "masks": plan.worlds.masks().tobytes(),
        "outputs": plan.outputs.tobytes(),
        "noise": plan.noise.factor.tobytes(),
        "exposure": plan.exposure.tobytes(),
        "certificate": plan.certificate.to_json(),
        "released": plan.release().outputs.tobytes(),
    }


def of_estimator(backend: Any) -> dict[str, Any]:
    how = {"cap": 0.7, "worlds": 32, "random_state": 0, "options": {"backend": backend}}
    made = lc.estimators.Private(Ridge(), **how).fit(ROWS[:, :2], ROWS @ [1.0, 2.0, 0.1])
    return {"certificate": made.certificate_.to_json(), "outputs": made.plan_.outputs.tobytes()}


MADE = pytest.mark.parametrize("made", [of_plan, of_estimator])


@MADE
@pytest.mark.parametrize("workers", ["processes", 2])
def test_worlds_are_the_same_whoever_runs_them(clusters: Any, made: Any, workers: Any) -> None:
    alone = made("serial")
    there = made(workers if workers == "processes" else clusters(workers))
    assert {name for name in alone if alone[name] != there[name]} == set()


@pytest.mark.slow
@MADE
@pytest.mark.parametrize("workers", [1, 4])
def test_and_on_one_worker_or_four(clusters: Any, made: Any, workers: int) -> None:
    test_worlds_are_the_same_whoever_runs_them(clusters, made, workers)


# bits: sessions


def people() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"who": rng.integers(0, 70, 400), "age": rng.normal(40, 10, 400)})
    frame["pay"], frame["ward"] = rng.exponential(100, 400), rng.choice(list("ABC"), 400)
    frame.loc[frame.index % 19 == 3, "age"] = np.nan
    return frame


HOW: dict[str, Any] = {"unit": "who", "rows_per_unit": 9, "seed": 1}


def of_session(session: lc.Session, *, brief: bool = False) -> dict[str, Any]:
    """Answers, of which the last ones leave somebody out, and everything that they leave behind."""
    bounds = ([0, 0], [100, 500])
    asked = [
        session.mean(["age", "pay"], bounds=bounds, share=0.2),
        session.covariance(["age", "pay"], bounds=bounds, share=0.6),
        session.sum("pay", bounds=(0, 500), share=0.9),
    ]
    if not brief:
        asked += [
            session.count(by={"ward": ["A", "B", "C"]}, share=0.3),
            session.histogram("age", bounds=(0, 100), bins=5, share=0.3),
            session.quantile("pay", 0.5, bounds=(0, 500), share=0.3),
        ]
    desk = desk_of(session)
    with desk.account.reading() as now:
        charges = [Spent.read(now, group).of(desk.people) for group in budgets.groups(now.state)]
    order = np.argsort(desk.people)
    return {
        "answers": [np.asarray(one.value, dtype=float).tobytes() for one in asked],
        "bits": desk.coins[order].tobytes(),
        "charges": [one[order].tobytes() for one in charges],
        "shares": [one.share for one in asked],
        "spent": (session.spent, session.remaining),
        "certificate": session.certificate.to_json(),
    }


def parted(parts: int) -> Any:
    frame = people()
    order = np.random.default_rng(parts).permutation(len(frame))
    return lc.partitions([frame.iloc[some] for some in np.array_split(order, parts)])


def bounded() -> pd.DataFrame:
    """The rows that count where some have too many: of one table the first, in partitions those of a keyed order."""
    frame = people()
    return frame[frame.groupby("who").cumcount() < HOW["rows_per_unit"]]


CAPS = pytest.mark.parametrize("cap", [lc.membership(0.6), lc.pool_membership(0.6)], ids=["bits", "pool"])


@CAPS
@pytest.mark.parametrize(("workers", "parts"), [(0, 64), (2, 7)])
def test_bits_charges_and_certificates_are_the_same_on_any_partitioning(
    clusters: Any, monkeypatch: pytest.MonkeyPatch, cap: Any, workers: int, parts: int
) -> None:
    frame = bounded()
    monkeypatch.setattr(f"{__name__}.people", lambda: frame)
    brief = workers == 2
    one = of_session(lc.Session(people(), cap=cap, **HOW), brief=brief)
    backend = clusters(workers) if workers else None
    other = of_session(lc.Session(parted(parts), cap=cap, backend=backend, **HOW), brief=brief)
    assert {name for name in one if one[name] != other[name]} == set()


@pytest.mark.slow
@CAPS
@pytest.mark.parametrize("workers", [0, 1, 2, 4])
@pytest.mark.parametrize("parts", [1, 2, 5, 16, 64])
def test_and_on_many_more(clusters: Any, monkeypatch: pytest.MonkeyPatch, cap: Any, workers: int, parts: int) -> None:
    test_bits_charges_and_certificates_are_the_same_on_any_partitioning(clusters, monkeypatch, cap, workers, parts)


def of_listed(parts: Any, backend: Any = None) -> dict[str, Any]:
    """Answers of a session on a list of worlds, and what they leave behind."""
    session = lc.Session(parts, cap=0.9, unit="who", design="worlds", worlds=70, seed=3, backend=backend)
    both = ["age", "pay"]
    asked = [
        session.mean(both, noise=30),
        session.covariance(both, where="ward = 'A'", noise=20_000),
        session.sum("age", bounds=(0, 45), noise=8_000),
        session.count(where="pay > 10", noise=60),
    ]
    desk = desk_of(session)
    with desk.account.reading() as now:
        state = desk._state(now)  # type: ignore[union-attr]
    worlds, of = desk.engine.worlds, session._questions  # type: ignore[union-attr]
    return {
        "answers": [np.asarray(one.value, dtype=float).tobytes() for one in asked],
        "masks": worlds.packed.tobytes(),
        "numbers": [one.in_worlds(worlds).table.tobytes() for one in (of.mean(both), of.covariance(both))],
        "clocks": state.clocks.tobytes(),
        "posterior": state.posterior.weights().tobytes(),
        "spent": (session.spent, session.remaining),
        "certificate": session.certificate.to_json(),
    }


@pytest.mark.parametrize(("workers", "parts"), [(0, 7), (2, 1), (2, 16)])
def test_a_list_of_worlds_is_asked_alike_on_any_partitioning_by_anybody(
    clusters: Any, workers: int, parts: int
) -> None:
    one, other = of_listed(parted(1)), of_listed(parted(parts), clusters(workers) if workers else None)
    assert {name for name in one if one[name] != other[name]} == set()


def test_how_many_threads_add_up_is_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of people enough that a shard is cut into parts; looked at before sums of all shards round it away."""
    rng, found = np.random.default_rng(0), []
    frame = pd.DataFrame({"who": np.arange(20_000), "age": rng.normal(40, 10, 20_000)})
    for threads in (1, 2):  # of five, each would have one word of bits, in the order of one thread
        monkeypatch.setattr("leakcap.kernels.moments.sums.threads", lambda threads=threads: threads)
        session = lc.Session(lc.partitions([frame]), cap=0.9, unit="who", design="worlds", worlds=70, seed=3)
        worlds = desk_of(session).engine.worlds  # type: ignore[union-attr]
        asked = session._questions.sum(["age"])
        found.append([one.tobytes() for one in asked._of_shards(asked.listed.of(worlds), np.zeros(1))])
    assert found[0] == found[1]


def test_other_rows_are_seen_by_the_comparison() -> None:
    frame = bounded()
    one = of_session(lc.Session(frame, cap=0.6, **HOW))
    other = of_session(lc.Session(lc.partitions([frame.assign(pay=frame["pay"] + 1.0)]), cap=0.6, **HOW))
    assert {name for name in one if one[name] != other[name]} == {"answers", "charges", "spent"}
    first, again = (of_listed(lc.partitions([some])) for some in (people(), people().assign(age=41.0)))
    assert {"answers", "numbers"} <= {name for name in first if first[name] != again[name]}
