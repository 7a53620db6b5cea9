"""`plan(fn, inputs=..., prior=...)`: from a list of inputs, or a function that draws them, to a certified plan."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from leakcap.caps import as_caps
from leakcap.custody.checkpoint import Checkpoint
from leakcap.custody.fingerprint import DataPrint, fingerprint
from leakcap.errors import InputError, LeakcapError, OutputError
from leakcap.ground import checks
from leakcap.ground.cores import Machine
from leakcap.leakage.measures import needs
from leakcap.modes import NoiseSettings
from leakcap.noise import SHAPES
from leakcap.planning.arguments import check_numbers
from leakcap.planning.certifier import Run
from leakcap.planning.given_plans import GIVEN, InputsRequest, given_plan
from leakcap.planning.how_many import LOOPED_WORLDS
from leakcap.planning.plans import Plan
from leakcap.planning.released import Token
from leakcap.planning.request import stream
from leakcap.planning.ways import AUTO
from leakcap.simulate import Outputs
from leakcap.simulate.inputs import run_inputs
from leakcap.simulate.progress import Watcher, watching
from leakcap.worlds import GivenInputs

__all__ = ["plan_of_inputs"]

# What is about people, and how it is given where it is not.
ABOUT_PEOPLE: dict[str, Any] = {"unit": None, "strata": None, "bounds": None, "rows_per_unit": None, "rate": 0.5}
ABOUT_PEOPLE |= {"mode": "exact", "design": "auto", "mechanism": "gaussian", "ledger": None, "name": None}


def plan_of_inputs(fn: Callable[..., Any], data: tuple[Any, ...], asked: Mapping[str, Any]) -> Plan:
    """The plan; `asked` are the arguments of `plan` by name, none of them missing."""
    began = time.perf_counter()
    _refuse_beside(data, asked)
    seed, clip = asked["seed"], asked["clip"]
    caps = as_caps(asked["cap"])
    gamma = float(1 - Fraction(repr(checks.fraction(confidence=asked["confidence"]))))
    drop = frozenset(asked["drop"])
    stored = None if asked["checkpoint"] is None else Checkpoint.open(Path(asked["checkpoint"]))
    with watching(asked["progress"]) as watch:
        with stored.alone() if stored else nullcontext():
            if stored:
                stored.begin(_identity(fn, asked, drop), seed)
            entropy = stored.entropy if stored else secrets.randbits(128) if seed is None else seed
            items = _listed(asked["inputs"], asked["worlds"], stream(entropy, 0))
            prints = DataPrint((items,))  # of what was drawn: drawn anew, they are other inputs
            inputs = GivenInputs.of(items, asked["prior"])
            request = InputsRequest(
                caps=needs(caps, inputs)[1],
                units=0,
                worlds=inputs.m,
                rate=0.5,
                strata=None,
                mode="given",
                gamma=gamma,
                clip=clip,
                settings=_settings(asked),
                seed=seed,
                design="given",
                inputs=inputs,
                drawn=callable(asked["inputs"]),
            )
            outputs = _answers(fn, request, drop, asked, stored=stored, watch=watch)
        run = Run(
            simulation=outputs,
            worlds=inputs,
            entropy=entropy,
            token=Token(lambda: prints.of_release),
            checkpoint=stored,
            rerun=_never,
            draw=_never,
            watch=watch,
            seconds=time.perf_counter() - began,
            design="given",
        )
        return given_plan(request, run, asked["outputs"])


def _refuse_beside(data: tuple[Any, ...], asked: Mapping[str, Any]) -> None:
    """An InputError for what does not go with inputs."""
    if asked["inputs"] is None:
        raise InputError("prior= gives the chances of inputs: give these, too, inputs=[...]")
    if data:
        raise InputError("inputs= takes the place of the data: give one or the other")
    odd = [name for name, usual in ABOUT_PEOPLE.items() if not (asked[name] is usual or _equal(asked[name], usual))]
    if odd:
        raise InputError(f"{odd[0]}= is about people in a pool, and these are given inputs: leave it out")
    drawn = callable(asked["inputs"])
    if not drawn and not _equal(asked["worlds"], AUTO):
        raise InputError("worlds= is how many inputs a function draws, and these are listed: leave it out")
    if drawn and asked["prior"] is not None:
        raise InputError("inputs that a function draws are all alike: leave prior out, or list the inputs")
    backend = asked["backend"]
    if isinstance(backend, str) and backend.startswith("torch"):
        raise InputError("given inputs are run by the function itself: leave the device out")
    checks.choice(SHAPES, shape=asked["shape"])
    check_numbers(**{name: asked[name] for name in ("floor", "memory", "draws", "seed")})
    if any(isinstance(asked[name], str) for name in ("drop", "public", "pool_public")):
        raise InputError("drop, public and pool_public must be lists of text, such as drop=['labels_']")


def _equal(given: Any, usual: Any) -> bool:
    return isinstance(given, type(usual)) and bool(given == usual)


def _listed(inputs: Any, worlds: Any, rng: np.random.Generator) -> list[Any]:
    """The inputs, one by one."""
    if callable(inputs):
        if not isinstance(worlds, (int, np.integer)) or isinstance(worlds, bool):
            if not _equal(worlds, AUTO):
                raise InputError("worlds must be the number of inputs to draw, or 'auto'")
            worlds = LOOPED_WORLDS
        return [_drawn(inputs, rng) for _ in range(checks.count(at_least=2, worlds=int(worlds)))]
    if isinstance(inputs, np.ndarray) and inputs.ndim:
        return list(inputs)
    if hasattr(inputs, "iloc"):
        return [inputs.iloc[[row]] for row in range(len(inputs))]
    if isinstance(inputs, (list, tuple)):
        return list(inputs)
    raise InputError("inputs must be a list, an array or a table of inputs, or a function that draws one: draw(rng)")


def _drawn(draw: Callable[[np.random.Generator], Any], rng: np.random.Generator) -> Any:
    try:
        return draw(rng)
    except (KeyboardInterrupt, LeakcapError):
        raise
    except BaseException as error:
        kind = type(error).__name__
    raise OutputError(f"the function that draws inputs raised {kind} (its text is withheld): call it with a generator")


def _settings(asked: Mapping[str, Any]) -> NoiseSettings:
    return NoiseSettings(
        shape=asked["shape"],
        floor=float(asked["floor"]),
        weights=asked["weights"],
        draws=asked["draws"],
        machine=Machine(asked["memory"], None),
        seeded=asked["seed"] is not None,
        public=tuple(asked["public"]),
        pool_public=tuple(asked["pool_public"]),
    )


def _answers(
    fn: Callable[..., Any],
    request: InputsRequest,
    drop: frozenset[str],
    asked: Mapping[str, Any],
    *,
    stored: Checkpoint | None,
    watch: Watcher,
) -> Outputs:
    """The answer on every input, clipped and finite; from the checkpoint where they are there."""
    held = stored.kept(GIVEN) if stored else None
    if held is not None:
        outputs: Outputs = held[1]
        return outputs
    found = run_inputs(fn, request.inputs.items, drop, backend=asked["backend"], workers=asked["workers"], watch=watch)
    limits = request.limits(found.table.shape[1])
    table = found.table if limits is None else np.clip(found.table, *limits)
    if not np.isfinite(table).all():
        raise OutputError(
            "some numbers are NaN or infinite for some inputs. A failure that depends on the input is an output, too: "
            "map it to a fixed value inside your function; infinite numbers can be bounded with clip=(low, high)"
        )
    outputs = replace(found, table=table)
    if stored and stored.committed() is None:
        stored.keep("form", outputs.node)  # first: from here on the folder is this run's
        stored.keep(GIVEN, (replace(request, inputs=request.inputs.without_items()), outputs))
    return outputs


def _identity(fn: Callable[..., Any], asked: Mapping[str, Any], drop: frozenset[str]) -> dict[str, str]:
    names = ("worlds", "confidence", "draws", "clip", "weights", "shape", "floor", "seed")
    prior = None if asked["prior"] is None else [repr(one) for one in asked["prior"]]
    return {
        "the inputs": DataPrint((asked["inputs"],)).of_run,
        "the function": fingerprint(fn),
        "the settings": fingerprint([asked[name] for name in names], prior, sorted(drop)),
    }


def _never(_: Any) -> Any:
    raise InputError("given inputs are run once each, before the secret is drawn")
