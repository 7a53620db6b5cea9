"""From any function to a certified plan: run it in every world, find the least noise, certify it."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap import modes
from leakcap.caps import CapLike, as_caps
from leakcap.certificates.ids import DrawnIds
from leakcap.cluster.connecting import Cluster, connected, names_cluster
from leakcap.custody.checkpoint import Checkpoint
from leakcap.custody.contents import contents_prints
from leakcap.custody.fingerprint import DataPrint, fingerprint
from leakcap.custody.ledger import AccountAt, Store
from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Bools
from leakcap.ground.cores import Machine
from leakcap.leakage.lending import lent
from leakcap.modes.mechanism import refuse_mechanism
from leakcap.noise import SHAPES, OperatingSystem, Randomness
from leakcap.planning.answered import MAX_COINS, answered, brought
from leakcap.planning.arguments import check_numbers, knowing, refuse_data_first
from leakcap.planning.cautions import warn_beforehand
from leakcap.planning.certifier import Run
from leakcap.planning.charged import Charged, kept_for_others
from leakcap.planning.designing import designed
from leakcap.planning.how_many import number_of_worlds
from leakcap.planning.inputs import plan_of_inputs
from leakcap.planning.job import Job
from leakcap.planning.making import fresh_world, kept_ids, planned, stored_plan
from leakcap.planning.plans import Plan
from leakcap.planning.released import Release, Token
from leakcap.planning.request import Request
from leakcap.planning.secret_seeds import plan_with_seeds
from leakcap.planning.settings import Settings
from leakcap.planning.stacked import scale_of
from leakcap.planning.swapping import OnePerson, swapped_by
from leakcap.planning.told import OutputWords
from leakcap.planning.ways import AUTO, way_of
from leakcap.simulate.executors import Workers, workers_for
from leakcap.simulate.pool import Pool, first_rows
from leakcap.simulate.progress import Watcher, watching
from leakcap.worlds import Units

__all__ = ["plan", "release", "stored_plan"]

DOUBLING = "doubling"  # worlds=: their number is fixed by looking at the answers
SIMULATED_HALVES = 64  # in which a function is run to see that it adds up what it says, at most
MIN_HALVES = 8


@knowing
def plan(
    fn: Callable[..., Any],
    *data: Any,
    cap: CapLike,
    worlds: int | str | npt.ArrayLike = "auto",
    design: str = "auto",
    bounds: Any = None,
    rows_per_unit: int | None = None,
    ledger: str | Store | AccountAt | None = None,
    name: str | None = None,
    rate: float = 0.5,
    unit: npt.ArrayLike | str | None = None,
    strata: npt.ArrayLike | str | None = None,
    seed: int | None = None,
    clip: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    weights: npt.ArrayLike | str | None = None,
    mode: str = "exact",
    confidence: float = 1 - 1e-6,
    draws: int | None = None,
    public: Iterable[str] = (),
    pool_public: Iterable[str] = (),
    drop: Iterable[str] = (),
    backend: Any = None,
    workers: int | None = None,
    progress: bool | Watcher | None = None,
    checkpoint: str | Path | None = None,
    shape: str = "best",
    floor: float = 0.0,
    memory: int = 2 * 2**30,
    mechanism: str = "gaussian",
    settings: Settings | None = None,
    outputs: OutputWords = None,
    inputs: Any = None,
    prior: npt.ArrayLike | None = None,
    randomness: str | None = None,
    seeds: int | None = None,
) -> Plan:
    """Simulate `fn` in many possible worlds, find the least noise that keeps `cap`, and certify it.

    Nothing is released. `fn` receives the rows of one world, sliced alike from every data argument, and returns
    a number, an array, a dict, tuple, dataclass or table of them, or a fitted scikit-learn estimator. If it has a
    parameter `start=None`, it is run on the whole pool first and is given a copy of that answer in every world, to
    start from; the certificate says so.

    Args:
        fn: the function to release; see above.
        *data: arrays, DataFrames or sparse matrices of equal length, sliced alike.
        cap: one cap, or a list that must hold together; a bare number caps membership.
        worlds: how many; or an `(m, n)` bool array in which every unit takes part equally often; or "auto": 4,096
            where a kernel runs them all at once and units are not too many for that (2,048 beyond 16,384 units, 1,024
            beyond 32,768), 1,024 for any other function; or "doubling": 128, and twice as many again and again, until
            two doublings together bring less than 4 % less noise, at 16,384, or where a further one would take over an
            hour of one core, or a quarter of `memory`.
        design: how the secret is drawn. "worlds": one of a list of worlds, in other modes a fresh one. "bits": a coin
            for everybody, for functions that add up what every unit brings (`stats.mean`, `sum`, `histogram`,
            `count`, `covariance`, `gram`, `categories`, `group_by`, `quantile` with a grid, `additive`): the cap then
            holds whoever else is known; with `mode="confidence"` for any function, on average over what is known, and
            with far more noise. "matched": worlds that hold one of every two units that are alike; "central": halves
            whose column means are near the pool's. Both have smaller errors, and say in the certificate what is lost.
            "auto": bits for functions that add up, where all caps are about one person and none of `worlds`, `rate`,
            `strata`, `clip`, `draws` and another mode are asked for; worlds otherwise. The certificate's first sentence
            says which it was.
        bounds: for a pool cap, `(low, high)` of every column, numbers or arrays, or `{column: (low, high)}`; of what
            one unit brings, for `additive` functions. What lies outside is cut. They must not come from the data.
        rows_per_unit: the most rows of one unit that count, the first ones; a pool cap with `unit` needs it.
        ledger: "sqlite:///file", "postgresql://user@host/database", or a store, in which the release is charged to the
            account of these data. Sums with a coin for everybody are answered from the account's coins, which sessions
            share; a release by worlds takes an account for itself. The same plan again gives the same release.
        name: of the data set in the ledger. None: their contents name them.
        rate: share of the pool in a world: 1/2, 1/k or (k-1)/k.
        unit: whose row it is, an array or the name of a column (which `fn` then does not see); worlds are drawn over
            units.
        strata: groups that every world holds in proportion, an array or the name of a column.
        seed: makes it a simulation, which is no release.
        clip: `(low, high)` for the outputs, numbers or one for each; part of the mechanism.
        weights: how much noise in each output matters: None (outputs on like scales count alike, otherwise relative to
            their spread between worlds), "equal", "relative", or a number for each.
        mode: "exact" (the secret is one of the worlds), "confidence" (a fresh one), "individual" (a fresh one; bounds
            guesses at one person and nothing else: of the same sums as "bits" by a formula, of medians, quantiles,
            covariances and ridge regression by random swaps, of any other function by 8,192 worlds or more),
            "empirical" (no guarantee).
        confidence: that all certified figures hold together, over the certifying draws.
        draws: releases to certify with; None chooses as many as keep the statistical margin small. In mode
            "individual", random swaps for those who decide: a function that says nothing about swaps is then run for
            each of them, instead of in thousands of worlds, which suits small pools.
        public: names of what you declare public; listed in the certificate.
        pool_public: in words, what `fn` or the data were made with by looking at the whole pool, such as "columns
            standardised on the pool"; listed in the certificate.
        drop: attributes of an estimator to leave out of the release.
        backend: "serial", "threads" or "processes" of their own for all worlds; "dask", "dask://host:port" or what
            `lc.cluster.connect` gives, for workers of a cluster. With `workers` alone, this process and
            others beside it, where it pays. "torch:cuda" computes leakage, and kernels that can, on a GPU.
        workers: number of processes that run worlds; None for one, and for one on each core where the function has a
            kernel for all worlds at once that would be slower than running worlds one by one.
        progress: True for a bar on standard error, False for none, or a function that is given `Progress` records.
            None: a bar in a terminal, lines in a notebook, if the plan will take over three seconds.
        checkpoint: a folder of the custodian's in which the run is kept, so that it can be resumed after any end:
            the same call goes on where it stopped. `Plan.forget` removes it.
        shape: of the noise: "best", "logdet", "linear" (the papers' rule) or "isotropic".
        floor: least noise deviation, also in directions that carry nothing, in weighted outputs.
        memory: bytes that the leakage computation may use, and kernels that run all worlds at once, 2 GiB by default;
            the data and the outputs of all worlds come on top.
        mechanism: which noise, for mode "individual" and design "bits": "gaussian"; "exponential", of a density that
            falls like `exp(-|x|/s)`, which needs less of it for high caps (from about .95 on) and
            bounds how sure anybody can ever become; "auto", the one of smaller total noise: the certificate says
            which, and why.
        settings: rare ones of these arguments together, as `leakcap.Settings`.
        outputs: labels for people, `{"age": "Mean age (years)"}` by the names of the outputs, or one for each in order:
            for summaries, pages and answer files. They are public, and must not come from the data.
        inputs: in place of data, the inputs one of which is the secret: a list (of records, keys or data sets), an
            array or a table (each row an input), or a function `draw(rng)` that is called `worlds` times to draw them.
            `fn` is run on each. Caps: `task`, `any_inference`, `identification`, `mutual_information`.
        prior: the probability of each input, above 0; None: all alike. Their sum may miss 1 by a millionth and is then
            divided out, exactly.
        randomness: "secret", with `mode="confidence"`: `fn` takes a parameter `seed` (or `random_state`), a whole
            number, and draws from nothing else. The seed is drawn with the secret world and told to nobody, so that
            what it does to the answer protects, too. `worlds` is then two for each pair of simulated halves.
        seeds: how many seeds are tried in every simulated world, two or more; None: 32. More of them need less noise.

    Returns:
        The plan: worlds, outputs, noise and certificate. Custodian side.

    Raises:
        InputError: an argument cannot be used.
        OutputError: noise cannot cover the function's outputs.
        CapError: no noise keeps the cap.

    Warns:
        SmallGroupWarning: fewer than five people carry a class or group key of the answer.

    Guarantee: `plan(...).certificate` says what holds, against whom, under which assumptions, with what confidence.

    Examples:
        >>> import numpy as np
        >>> import leakcap as lc
        >>> heights = np.random.default_rng(0).normal(170, 10, size=200)
        >>> made = lc.plan(lambda x: x.mean(), heights, cap=lc.membership(0.6), worlds=64, seed=1)
        >>> made.certificate.membership_success <= 0.6
        True
    """
    asked = {name: value for name, value in locals().items() if name not in ("fn", "data", "settings")}
    if settings is not None:
        return plan(fn, *data, **settings.beside(asked))
    refuse_data_first(fn)
    if (elsewhere := _elsewhere(asked)) is not None:
        return elsewhere(fn, data, asked)
    began = time.perf_counter()
    caps = as_caps(cap)
    odd = {"worlds": worlds, "rate": rate, "strata": strata, "weights": weights, "clip": clip, "draws": draws}
    mode, design = way_of(fn, caps, mode, design, bounds=bounds, **odd)
    checks.choice(SHAPES, shape=shape)
    check_numbers(floor=floor, memory=memory, draws=draws, seed=seed)
    refuse_mechanism(mechanism, mode, floor)
    if any(isinstance(names, str) for names in (drop, public, pool_public)):
        raise InputError("drop, public and pool_public must be lists of text, such as drop=['labels_']")
    gamma = float(1 - Fraction(repr(checks.fraction(confidence=confidence))))  # 1 - 0.999999 is more than 1e-6
    pool = Pool(data)
    whose = pool.pop_column(unit) if isinstance(unit, str) else unit
    warn_beforehand(pool, whose, worlds, mode=mode, seeded=seed is not None)
    if rows_per_unit is not None:
        pool, whose = first_rows(pool, whose, rows_per_unit)
    units = Units.of(pool.rows, whose)
    groups = pool.column(strata) if isinstance(strata, str) else strata
    device = _device(backend)
    machine = Machine(memory, device)
    job = Job(
        fn,
        pool,
        units,
        frozenset(drop),
        backend=None if device else backend,
        workers=workers,
        device=device,
        memory=memory,
    )
    alone = OnePerson.of(job, mode, design, draws=draws, clipped=clip is not None, mechanism=mechanism)
    number = _as_worlds(worlds)
    if mode in ("individual", "pool") and design in ("bits", "pool"):
        number = max(MIN_HALVES, min(SIMULATED_HALVES, MAX_COINS // max(units.count, 1)))
    elif isinstance(number, str) and number == AUTO:
        number = number_of_worlds(job, caps, rate=rate, mode=alone.way or mode, machine=machine)
    request = Request(
        caps=caps,
        units=units.count,
        worlds=number,
        rate=rate,
        strata=None if groups is None else units.strata(groups),
        mode=mode,
        gamma=gamma,
        clip=clip,
        settings=modes.NoiseSettings(
            shape=shape,
            floor=float(floor),
            weights=weights,
            draws=draws,
            machine=machine,
            seeded=seed is not None,
            public=tuple(public),
            pool_public=tuple(pool_public),
            mechanism=mechanism,
            kept=kept_for_others(caps) if ledger is not None and design in ("bits", "pool") else 0.0,
        ),
        seed=seed,
        design=design,
        scale=scale_of(fn, rate) if mode != "pool" and alone.way != "sum" else 1.0,
    )
    brings = brought(job, request, alone.brings, declared=(bounds, rows_per_unit))
    prints = DataPrint(data, whose)
    if ledger is not None and seed is not None:
        raise InputError("a plan with a seed is a simulation: leave the ledger out")
    charged = None
    if ledger is not None:
        charged = Charged.at(
            ledger,
            name,
            "pool" if mode == "pool" else "bits" if mode == "individual" and design == "bits" else "release",
            units,
            identity=_identity(job, prints.of_run, request) | {"the bounds": fingerprint(bounds, rows_per_unit)},
            version=prints.of_run,
            contents=contents_prints(data),
            words=f"release of {getattr(fn, '__qualname__', type(fn).__name__)}",
        )
    stored = None if checkpoint is None else Checkpoint.open(Path(checkpoint))
    with watching(progress) as watch, lent(_lendable(backend)):
        with stored.alone() if stored else nullcontext():
            if stored:
                declared = {} if bounds is None else {"the bounds": fingerprint(bounds, rows_per_unit)}
                stored.begin(_identity(job, prints.of_run, request) | declared, seed)
            entropy = stored.entropy if stored else secrets.randbits(128) if seed is None else seed
            # Answers from the coins of an account share them, and its clock bounds them together.
            ids = _ids(stored, charged, seed)
            request = designed(request, job, entropy, stored)
            found = answered(job, request, brings, entropy=entropy, watch=watch, stored=stored)
        run = Run(
            simulation=found.outputs,
            worlds=found.worlds,
            entropy=entropy,
            token=Token(lambda: prints.of_release),
            checkpoint=stored,
            rerun=job.rerun(request, found.outputs),
            draw=partial(_secret_world, request, charged),
            watch=watch,
            brings=brings,
            charged=charged,
            finishing=found.finishing,
            seconds=time.perf_counter() - began,
            design=request.design,
            swapped=swapped_by(job, request, found.outputs, found.worlds) if alone.way == "swaps" else None,
            alike=alone.way == "alike",
            ids=ids,
        )
        return planned(request, run, job, outputs)


def _elsewhere(asked: dict[str, Any]) -> Callable[..., Plan] | None:
    """Where plans are made whose secret is not who takes part, or not that alone; and those at a cluster."""
    if names_cluster(asked["backend"]):
        return _at_cluster
    if asked["randomness"] is not None or asked["seeds"] is not None:
        return plan_with_seeds
    return plan_of_inputs if asked["inputs"] is not None or asked["prior"] is not None else None


def _at_cluster(fn: Callable[..., Any], data: tuple[Any, ...], asked: dict[str, Any]) -> Plan:
    """One connection for worlds and certificate; whatever the plan is asked later has its own."""
    with connected(asked["backend"], asked["workers"]) as there:
        return plan(fn, *data, **asked | {"backend": there})


def _lendable(backend: Any) -> Workers | None:
    return workers_for(backend, None, alone=False) if isinstance(backend, Cluster) else None


def _secret_world(request: Request, charged: Charged | None, source: Randomness) -> Bools:
    """Who takes part: by the account's own coins where there is one; simulations toss fresh ones."""
    if charged is not None and charged.design == "bits" and isinstance(source, OperatingSystem):
        return charged.coins()
    return fresh_world(request, source)


@partial(knowing, like=plan)
def release(fn: Callable[..., Any], *data: Any, cap: CapLike, **options: Any) -> Release:
    """`plan(...)` and `.release()` in one step.

    Guarantee: `release(...).certificate` says what holds, against whom, under which assumptions, with what confidence.

    Args:
        fn: the function to release, as for `plan`.
        *data: the data, as for `plan`.
        cap: one cap, or a list that must hold together.
        **options: further arguments of `plan`.

    Returns:
        The released answer with its certificate.

    Raises:
        InputError: an argument cannot be used.
        OutputError: noise cannot cover the outputs.
        CapError: no noise keeps the cap.
    """
    return plan(fn, *data, cap=cap, **options).release()


def _ids(stored: Checkpoint | None, charged: Charged | None, seed: int | None) -> DrawnIds | None:
    """Those that this run has had from its beginning: a resumed plan has the same certificate."""
    if seed is not None or (charged is not None and charged.design != "release"):
        return None
    return kept_ids(stored)


def _identity(job: Job, data: str, request: Request) -> dict[str, str]:
    """What makes a run this run and no other."""
    return {
        "the data": data,
        "the function": fingerprint(job.fn),
        "the settings": fingerprint(replace(request, caps=()), sorted(job.drop)),
    }


def _device(backend: Any) -> str | None:
    """The device of torch that a backend names, if it is there."""
    if not isinstance(backend, str) or not backend.startswith("torch:"):
        return None
    from leakcap.kernels.gpu.device import on

    name = backend.removeprefix("torch:")
    on(name)
    return name


def _as_worlds(worlds: Any) -> int | str | Bools:
    if isinstance(worlds, str):
        if worlds not in (AUTO, DOUBLING):
            raise InputError("worlds must be a number, 'auto', 'doubling', or an (m, n) bool array")
        return worlds
    if isinstance(worlds, (int, np.integer)) and not isinstance(worlds, bool):
        return int(worlds)
    return worlds  # type: ignore[no-any-return]  # checked where worlds are made
