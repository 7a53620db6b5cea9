"""Runs of the command whose secret is chosen, and everything that can be seen of them."""

from __future__ import annotations

import importlib
import logging
import secrets
import stat
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.linear_model import Ridge

from leakcap.cli import main, terminal
from leakcap.cli import release as command
from leakcap.custody import folders, keys, private_files, sqlite_file
from leakcap.custody.vault import FILE, Vault
from leakcap.noise import OperatingSystem, released_vector
from leakcap.planning.released import forget_released
from leakcap.simulate import run
from leakcap.simulate import worker as task

finite = importlib.import_module("leakcap.modes.exact")  # the package has a function of this name
fresh = importlib.import_module("leakcap.modes.confidence")  # the package has a function of this name

HERE = __name__
MARK = "777123"  # in every cell of `marked`
UNIT = "zq-unit-0815"  # one rare person
MEAN = 41.777123  # of the whole pool, to all digits
MARKED_TOWN = f"town{MARK}"
ACT: list[Callable[[Any], Any]] = []  # what `moody` does in the fresh world, and only there
CALLS: list[int] = []  # rows it was called with


def two_numbers(table: Any) -> Any:
    return {"mean": table["age"].mean(), "busy": float((table["hours"] > 35).sum())}


def model(table: Any) -> Any:
    return Ridge().fit(table[["age"]].to_numpy(), table["hours"].to_numpy())


def moody(table: Any) -> Any:
    """64 simulated worlds and the whole pool behave; the next world is the secret."""
    CALLS.append(len(table))
    if len(CALLS) > 65 and ACT:
        return ACT[-1](table)
    return table["age"].mean()


@dataclass
class Seen:
    """One run of a command. Whatever differs between two secrets tells which it was."""

    code: Any
    out: str
    err: str
    log: str
    warned: list[str]
    files: dict[str, Any]
    writes: list[tuple[str, int]]


SECRETS = ((0, -0.4), (13, 0.3))  # a world, and where inside its grid cell the noisy answer lies
NOW = [0.0]  # what all clocks say


def seen(
    arguments: list[str],
    out: Path,
    secret: tuple[int, float],
    monkeypatch: Any,
    capfd: Any,
    caplog: Any,
) -> Seen:
    """Run a command with a secret of our choice."""
    writes: list[tuple[str, int]] = []
    _rig(secret, writes, monkeypatch)
    capfd.readouterr()
    caplog.clear()
    forget_released()
    code: Any = 0
    with caplog.at_level(logging.DEBUG), warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            main(arguments)
        except SystemExit as end:
            code = end.code
        except BaseException as error:  # python itself would print it
            code = f"{type(error).__name__}: {error}"
    shown = capfd.readouterr()
    said = [str(one.message) for one in heard]
    return Seen(code, shown.out, shown.err, caplog.text, said, contents(out), writes)


def _rig(secret: tuple[int, float], writes: list[tuple[str, int]], monkeypatch: Any) -> None:
    world, jitter = secret
    NOW[0] = 0.0
    CALLS.clear()
    clock = SimpleNamespace(perf_counter=lambda: NOW[0], monotonic=lambda: NOW[0], sleep=time.sleep)
    planning = [
        one for name, one in sys.modules.items() if name.startswith("leakcap.planning.") and hasattr(one, "time")
    ]
    for module in (run, task, terminal, command, *planning):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(secrets, "randbits", lambda _: 20240613)  # worlds and certifying draws: known to everybody
    monkeypatch.setattr(OperatingSystem, "below", lambda self, n: world % n)
    monkeypatch.setattr(OperatingSystem, "bits", lambda self: np.random.default_rng(world))

    def to_the_point(noise: Any, coordinates: np.ndarray, step: float, _: Any) -> np.ndarray:
        point = np.random.default_rng(1).integers(-900, 900, size=noise.space.rank)
        drawn = (point + jitter) * step - coordinates / noise.deviations
        return released_vector(noise, coordinates, step, SimpleNamespace(normals=lambda size: drawn))  # type: ignore[arg-type]

    def counted(path: Path, content: bytes, exclusive: bool = False) -> None:
        writes.append((path.name, len(content)))
        write_private(path, content, exclusive)

    def stored(self: Vault, name: str, content: bytes, exclusive: bool = False) -> None:
        writes.append((name, len(content)))
        VAULT_WRITE(self, name, content, exclusive)

    monkeypatch.setattr(Vault, "write", stored)

    write_private = WRITE_PRIVATE
    for mode in (finite, fresh):
        monkeypatch.setattr(mode, "released_vector", to_the_point)
    for module in (keys, sqlite_file, folders):
        monkeypatch.setattr(module, "write_private", counted)


WRITE_PRIVATE, VAULT_WRITE = private_files.write_private, Vault.write


def contents(out: Path) -> dict[str, Any]:
    """Every file below a folder: kind, mode, size and content; of a checkpoint every value as it reads when opened."""
    found: dict[str, Any] = {}
    for path in sorted(out.rglob("*")) if out.exists() else []:
        state = path.lstat()
        name = str(path.relative_to(out))
        if not path.is_file():
            found[name] = stat.filemode(state.st_mode)
            continue
        content: bytes | None = path.read_bytes()
        if path.name == FILE:
            content, made = None, Vault.open(path.parent)  # salt, nonces
            found |= {str(Path(name).with_name(one)): made.read(one) for one in made.names()}
        found[name] = (stat.filemode(state.st_mode), state.st_size, content)
    return found


def telling(runs: list[Seen]) -> set[str]:
    """What is not the same in all runs, by name."""
    found = set()
    for field in fields(Seen):
        values = [getattr(one, field.name) for one in runs]
        if field.name != "files":
            found |= {field.name} if any(value != values[0] for value in values) else set()
            continue
        names = set().union(*values)
        found |= {name for name in names if any(value.get(name) != values[0].get(name) for value in values)}
    return found


def order_of(people: Path, options: list[str]) -> list[str]:
    worlds = [] if "--worlds" in options else ["--worlds", "16"]
    draws = ["--draws", "256", "--cap", "mi=0.3", "--out", "out", "--workers", "1"]
    return ["release", str(people), *options, *worlds, *draws]


MEANS = ["--fn", "mean", "--columns", "age,hours"]
FRESH = ["--fn", f"{HERE}:moody", "--mode", "confidence", "--worlds", "64", "--confidence", "0.9"]


class Panic(BaseException):
    """As raised by libraries written in Rust: no Exception, and its text quotes what it was given."""


def panics(table: Any) -> Any:
    raise Panic(f"cannot handle {table['age'].iloc[0]}")


def raises(table: Any) -> Any:
    raise ValueError(f"cannot handle {table['age'].iloc[0]}")


SMALL = ["--cap", "mi=0.3", "--worlds", "16", "--draws", "256", "--workers", "1", "--quiet"]


def heard_of(arguments: list[str], capfd: Any, caplog: Any) -> tuple[Any, str, str, str, list[str]]:
    """The exit code of a command, both streams, its log and its warnings."""
    capfd.readouterr()
    caplog.clear()
    code: Any = 0
    with caplog.at_level(logging.DEBUG), warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            main(arguments)
        except SystemExit as end:
            code = end.code
    shown = capfd.readouterr()
    return code, shown.out, shown.err, caplog.text, [str(one.message) for one in heard]


def said(arguments: list[str], capfd: Any, caplog: Any) -> tuple[Any, str]:
    """The exit code, and all words of a command that fails."""
    code, out, err, log, warned = heard_of(arguments, capfd, caplog)
    return code, "\n".join([out, err, log, *warned])
