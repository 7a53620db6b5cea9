"""Rule 6 for the command line: with the released value held fixed, nothing that is written or said tells the secret.

Method, as in `test_public_bytes.py`: the operating system "draws" the world we choose and then just the noise that
leads from there to one agreed grid point. Clocks stand still, so that time makes no difference of its own. Two runs
with different secrets are then compared in everything: files (names, modes, sizes, contents, sealed ones opened), the
order of writes, both streams at the level of file descriptors, log lines, warnings and the exit code. Planted twins
show that each of these is looked at. Nothing here is statistical: there are no false alarms.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import stat
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, make_dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge

import leakcap as lc
from leakcap import releases, vault
from leakcap.cli import answers, folders, main, terminal
from leakcap.cli import release as command
from leakcap.modes import finite, fresh
from leakcap.noise import OperatingSystem, released_vector
from leakcap.simulate import checkpoint, run, task
from leakcap.vault import Vault

HERE = __name__
MARK = "777123"  # in every cell of `marked`
UNIT = "zq-unit-0815"  # one rare person
MEAN = 41.777123  # of the whole pool, to all digits
MARKED_TOWN = f"town{MARK}"


@pytest.fixture(autouse=True)
def _own_place(tmp_path: Path, monkeypatch: Any) -> Iterator[None]:
    monkeypatch.setenv("LEAKCAP_KEY", str(tmp_path / "keys" / "key"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    Vault.open(tmp_path / "keys" / "first")  # makes the key: else the first run would write one more file
    yield
    ACT.clear()


@pytest.fixture
def _known_figures(monkeypatch: Any) -> None:
    """Figures of a certificate are pure functions of it: computed once, where many runs share one certificate."""
    for name in ("posterior", "true_positive_rate"):
        figure = getattr(lc.Certificate, name)

        def known(self: Any, at: Any, figure: Any = figure, name: str = name) -> Any:
            asked = name, self.to_json(), repr(at)
            if asked not in KNOWN:
                KNOWN[asked] = figure(self, at)
            return KNOWN[asked]

        monkeypatch.setattr(lc.Certificate, name, known)


KNOWN: dict[Any, Any] = {}


@pytest.fixture
def people(tmp_path: Path) -> Path:
    rng = np.random.default_rng(7)
    age = rng.normal(40, 9, size=40)
    table = pd.DataFrame(
        {
            "who": [UNIT, UNIT, *(f"p{i // 2}" for i in range(2, 40))],
            "age": age - age.mean() + MEAN,
            "hours": rng.normal(35, 5, size=40),
            "town": np.where(np.arange(40) == 3, MARKED_TOWN, np.where(rng.random(40) < 0.5, "here", "there")),
            "group": np.repeat(["x", "y"], 20),
        }
    )
    path = tmp_path / "people.csv"
    table.to_csv(path, index=False)
    return path


# The custodian's own functions


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


# Two runs, everything that can be seen of them


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
    releases._released_before.clear()
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
    return Seen(code, shown.out, shown.err, caplog.text, said, _contents(out), writes)


def _rig(secret: tuple[int, float], writes: list[tuple[str, int]], monkeypatch: Any) -> None:
    world, jitter = secret
    NOW[0] = 0.0
    CALLS.clear()
    clock = SimpleNamespace(perf_counter=lambda: NOW[0], monotonic=lambda: NOW[0], sleep=time.sleep)
    for module in (run, task, terminal, command, sys.modules["leakcap.frame"]):
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

    write_private = WRITE_PRIVATE
    for mode in (finite, fresh):
        monkeypatch.setattr(mode, "released_vector", to_the_point)
    for module in (vault, folders):
        monkeypatch.setattr(module, "write_private", counted)


WRITE_PRIVATE = vault.write_private


def _contents(out: Path) -> dict[str, Any]:
    """Every file below a folder: kind, mode, size and content; sealed files as they read when opened."""
    found: dict[str, Any] = {}
    for path in sorted(out.rglob("*")) if out.exists() else []:
        state = path.lstat()
        name = str(path.relative_to(out))
        if not path.is_file():
            found[name] = stat.filemode(state.st_mode)
            continue
        content: bytes | None = path.read_bytes()
        if path.parent.name == "plan" and path.name != "lock":
            content = None if path.name == "vault.json" else Vault.open(path.parent).read(path.name)  # salt, nonces
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


@pytest.fixture
def watch(people: Path, tmp_path: Path, monkeypatch: Any, capfd: Any, caplog: Any) -> Callable[..., list[Seen]]:
    """A command run once for every secret, each time in an equal folder of its own."""

    def runs(options: list[str], before: list[list[str]] | None = None, secrets_: Any = SECRETS) -> list[Seen]:
        found = []
        for number, secret in enumerate(secrets_):
            place = tmp_path / f"try{number}"
            place.mkdir(exist_ok=True)
            monkeypatch.chdir(place)  # --out is the same word everywhere
            for first in before or []:
                seen(_order(people, first), place / "out", secret, monkeypatch, capfd, caplog)
            found.append(seen(_order(people, options), place / "out", secret, monkeypatch, capfd, caplog))
        return found

    return runs


def _order(people: Path, options: list[str]) -> list[str]:
    worlds = [] if "--worlds" in options else ["--worlds", "16"]
    draws = ["--draws", "256", "--cap", "mi=0.3", "--out", "out", "--workers", "1"]
    return ["release", str(people), *options, *worlds, *draws]


def slow(options: list[str]) -> Any:
    return pytest.param(options, marks=pytest.mark.slow)


MEANS = ["--fn", "mean", "--columns", "age,hours"]
FRESH = ["--fn", f"{HERE}:moody", "--mode", "confidence", "--worlds", "64", "--confidence", "0.9"]
KINDS: dict[str, Any] = {
    "mean": MEANS,
    "mean of one": ["--fn", "mean", "--columns", "age"],
    "median": slow(["--fn", "median", "--columns", "age,hours"]),
    "quantiles": slow(["--fn", "quantile", "--q", "0.25", "--q", "0.75", "--columns", "age"]),
    "histogram": ["--fn", "histogram", "--columns", "town,age", "--bins", "age=0,35,45,120"],
    "covariance": ["--fn", "covariance", "--columns", "age,hours"],
    "own": ["--fn", f"{HERE}:two_numbers"],
    "model": ["--fn", f"{HERE}:model", "--drop", "n_iter_"],
    "units": [*MEANS, "--unit", "who"],
    "strata": slow([*MEANS, "--strata", "group"]),
    "thirds": [*MEANS, "--rate", "1/3", "--worlds", "18"],
    "clipped": slow([*MEANS, "--clip", "0,60"]),
    "auto": slow([*MEANS, "--worlds", "auto"]),
    "json": [*MEANS, "--json"],
    "quiet, and the plan forgotten": [*MEANS, "--quiet", "--forget"],
    "fresh": FRESH,
}


@pytest.mark.parametrize("options", KINDS.values(), ids=list(KINDS))
def test_everything_written_and_said_is_the_same_whichever_world_was_secret(options: list[str], watch: Any) -> None:
    runs = watch(options)
    assert not telling(runs)
    assert runs[0].code == 0, runs[0].err
    assert {"public/answer.json", "public/certificate.html", "custodian/report.html"} <= set(runs[0].files)
    assert ("public/model.pkl" in runs[0].files) == (options == KINDS["model"])


def test_a_preview_and_the_release_after_it_tell_nothing(watch: Any) -> None:
    preview = watch([*MEANS, "--preview"])
    assert not telling(preview)
    assert "public" not in preview[0].files
    released = watch(MEANS)
    assert not telling(released)
    assert "public/answer.json" in released[0].files


@pytest.mark.parametrize("options", [MEANS, FRESH], ids=["one of the worlds", "fresh"])
def test_a_release_that_stopped_before_it_was_published_tells_nothing_when_resumed(
    options: list[str], watch: Any, monkeypatch: Any
) -> None:
    """The secret was drawn in the run that stopped; the next one must not show which it was."""

    def full(self: Any, files: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(folders.Folders, "publish", full)
        stopped = watch(options)
    assert not telling(stopped)
    assert stopped[0].code != 0
    assert "public" not in stopped[0].files
    resumed = watch(options, secrets_=tuple(reversed(SECRETS)))  # another draw would end in another world
    assert not telling(resumed)
    assert resumed[0].code == 0
    assert resumed[0].files["custodian/plan/release"] == stopped[0].files["custodian/plan/release"]


def test_a_second_run_is_refused_in_the_same_words(watch: Any) -> None:
    again = watch(MEANS, before=[MEANS])
    assert not telling(again)
    assert again[0].code == 4


# What the function does in the secret world


class Panic(BaseException):
    """As raised by libraries written in Rust: no Exception, and its text quotes what it was given."""


class Careless:
    def __init__(self, value: float) -> None:
        self.value = value

    def __del__(self) -> None:
        raise ValueError(f"cannot close {self.value}")


def _panics(table: Any) -> Any:
    raise Panic(f"cannot handle {table['age'].iloc[0]}")


def _raises(table: Any) -> Any:
    raise ValueError(f"cannot handle {table['age'].iloc[0]}")


def _in_a_thread(table: Any) -> Any:
    thread = threading.Thread(target=_raises, args=(table,))
    thread.start()
    thread.join()
    return table["age"].mean()


def _drops(table: Any) -> Any:
    Careless(table["age"].iloc[0])
    return table["age"].mean()


def _takes_long(table: Any) -> Any:
    NOW[0] += 1000.0
    return table["age"].mean()


def _writes(table: Any) -> Any:
    os.write(2, f"{len(table)} rows, the first {table['age'].iloc[0]}\n".encode())
    return table["age"].mean()


def _loud(table: Any) -> Any:
    print("the first is", table["age"].iloc[0])
    return table["age"].mean()


def _logs(table: Any) -> Any:
    logging.getLogger("analysis").warning("the first is %s", table["age"].iloc[0])
    return table["age"].mean()


def _warns(table: Any) -> Any:
    warnings.warn(f"the first is {table['age'].iloc[0]}", stacklevel=1)
    return table["age"].mean()


ACTS = {
    "raises": _raises,
    "leaves": lambda table: sys.exit(int(table["age"].iloc[0])),
    "answers in another form": lambda table: table["age"].iloc[:2].to_numpy(),
    "answers with text": lambda table: str(table["age"].iloc[0]),
    "answers NaN": lambda table: float("nan"),
    "answers something huge": lambda table: 1e308,
    "divides by zero": lambda table: float(np.float64(1) / np.float64(0)),
    "warns": _warns,
    "prints": _loud,
    "logs": _logs,
    "writes to the terminal": _writes,
    "fails in a thread": _in_a_thread,
    "fails when it is thrown away": _drops,
    "panics": _panics,
    "takes long": _takes_long,
}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("_known_figures")
@pytest.mark.parametrize("act", ACTS.values(), ids=list(ACTS))
def test_what_happens_in_the_fresh_secret_world_stays_there(act: Any, watch: Any, monkeypatch: Any) -> None:
    """Others behave: then whatever is seen of a misbehaviour tells that the secret was one of the misbehaving."""
    monkeypatch.setattr(threading, "excepthook", threading.__excepthook__)  # pytest would keep it from the terminal
    monkeypatch.setattr(sys, "unraisablehook", sys.__unraisablehook__)
    if not PLAIN:
        PLAIN.extend(watch(FRESH, secrets_=SECRETS[:1]))
        assert len(CALLS) == 66
        Path("out").rename("plain")
    ACT.append(act)
    acted = watch(FRESH, secrets_=SECRETS[1:])
    assert len(CALLS) == 66
    assert not telling([*PLAIN, *acted])


PLAIN: list[Seen] = []  # a run in which nothing happens


# The planted twins


def _planted(name: str, monkeypatch: Any) -> None:
    page, publish, commit, release = (
        answers.public_page,
        folders.Folders.publish,
        checkpoint.Checkpoint.commit,
        releases.Plan.release,
    )
    world: Callable[[], int] = lambda: OperatingSystem().below(16)  # noqa: E731

    def careless_release(self: Any) -> Any:
        found = release(self)
        odd = world() % 2
        {
            "out": lambda: print(f"world {world()}"),
            "err": lambda: print(f"world {world()}", file=sys.stderr),
            "log": lambda: logging.getLogger("leakcap").info("secret %d", world()),
            "warned": lambda: warnings.warn(f"world {world()}", stacklevel=1),
            "code": lambda: sys.exit(3 + odd),
            "writes": lambda: self._checkpoint.keep("form", self._checkpoint.kept("form")) if odd else None,
        }[name]()
        return found

    if name == "public/certificate.html":
        monkeypatch.setattr(answers, "public_page", lambda *a: page(*a) + f"<!-- world {world()} -->")
    elif name == "custodian/plan/release":
        monkeypatch.setattr(checkpoint.Checkpoint, "commit", lambda self, **a: commit(self, secret=world(), **a))
    elif name == "public/answer.csv":

        def open_to_all(self: Any, files: Any) -> None:
            publish(self, files)
            (self.public / "answer.csv").chmod(0o600 + world() % 2)

        monkeypatch.setattr(folders.Folders, "publish", open_to_all)
    elif name == "public/extra":
        monkeypatch.setattr(
            folders.Folders, "publish", lambda self, files: publish(self, files | ({"extra": ""} if world() else {}))
        )
    elif name == "custodian/report.html":
        page = answers.custodian_page
        monkeypatch.setattr(answers, "custodian_page", lambda *a: page(*a) + f"<!-- world {world()} -->")
    else:
        monkeypatch.setattr(releases.Plan, "release", careless_release)


PLANTED = [
    "public/certificate.html",
    "public/answer.csv",
    "public/extra",
    "custodian/report.html",
    "custodian/plan/release",
    "out",
    "err",
    "log",
    "warned",
    "code",
    "writes",
]


@pytest.mark.usefixtures("_known_figures")
@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_trace_of_the_world_is_caught(name: str, watch: Any, monkeypatch: Any) -> None:
    _planted(name, monkeypatch)
    assert name in telling(watch(MEANS))


# Nothing of the custodian's in public


def test_public_files_hold_no_person_no_rare_word_and_no_true_figure(people: Path, tmp_path: Path) -> None:
    """The custodian's files hold them, so the search would find them."""
    options = ["--fn", "histogram", "--columns", "town,age", "--levels", "town=here,there", "--bins", "age=0,41,120"]
    _run(["release", str(people), *options, "--unit", "who", *SMALL, "--out", "a"])
    _run(["release", str(people), "--fn", "mean", "--columns", "age", "--unit", "who", *SMALL, "--out", "b"])
    public = b"".join(path.read_bytes() for path in tmp_path.glob("*/public/*"))
    kept = b"".join(path.read_bytes() for path in tmp_path.glob("*/custodian/*") if path.is_file())
    for sentinel in (UNIT, str(MEAN)):
        assert sentinel.encode() in kept
        assert sentinel.encode() not in public
    assert MARKED_TOWN.encode() not in public
    assert b"custodian" not in public.lower().replace(b"only the custodian", b"").replace(b"the custodian", b"")
    assert str(tmp_path).encode() not in public


def test_a_pool_answer_in_public_would_be_found(people: Path, tmp_path: Path, monkeypatch: Any) -> None:
    """The planted twin: an answer centred on the truth."""
    page = answers.public_page
    monkeypatch.setattr(answers, "public_page", lambda *a: page(*a) + str(pd.read_csv(people)["age"].mean()))
    _run(["release", str(people), "--fn", "mean", "--columns", "age", *SMALL, "--out", "a"])
    assert str(MEAN).encode() in b"".join(path.read_bytes() for path in tmp_path.glob("*/public/*"))


SMALL = ["--cap", "mi=0.3", "--worlds", "16", "--draws", "256", "--workers", "1", "--quiet"]


def _run(arguments: list[str]) -> None:
    releases._released_before.clear()
    main_code = 0
    try:
        main(arguments)
    except SystemExit as end:
        main_code = end.code or 0
    assert main_code == 0


# Errors hold no cells


@pytest.fixture
def marked(tmp_path: Path) -> Path:
    """Every cell holds the mark."""
    path = tmp_path / "marked.csv"
    rows = {
        "who": [f"w{MARK}{i // 2}" for i in range(24)],
        "age": [float(f"{MARK}.{i:02d}") for i in range(24)],
        "name": [f"n{MARK}x{i}" for i in range(24)],
        "town": [f"t{MARK}{'ab'[i % 2]}" for i in range(24)],
    }
    pd.DataFrame(rows).to_csv(path, index=False)
    return path


raising, panicking = _raises, _panics


def exiting(table: Any) -> Any:
    raise SystemExit(f"cannot handle {table['age'].iloc[0]}")


def texts(table: Any) -> Any:
    return str(table["age"].iloc[0])


def other_keys(table: Any) -> Any:
    return {str(table["age"].iloc[0]): 1.0}


def not_numbers(table: Any) -> Any:
    return [table["age"].iloc[0], float("nan")]


def warning(table: Any) -> Any:
    warnings.warn(f"odd value {table['age'].iloc[0]}", stacklevel=1)
    return table["age"].mean()


def far_keys(table: Any) -> Any:
    return {(i, table["age"].iloc[0] if i == 3 else 0): 1.0 for i in range(4)}


Nameless = make_dataclass(f"C{MARK}", ["mean"])


def of_no_module(table: Any) -> Any:
    return Nameless(table["age"].mean())


AGE = ["--columns", "age"]
FAILING: dict[str, tuple[list[str], int]] = {
    "a text column": (["--fn", "mean", "--columns", "name"], 2),
    "categories that are names": (["--fn", "histogram", "--columns", "name"], 2),
    "no such column": (["--fn", "mean", "--columns", "agee"], 2),
    "strata of one": (["--fn", "mean", *AGE, "--strata", "name"], 2),
    "strata that split people": (["--fn", "mean", *AGE, "--unit", "who", "--strata", "town"], 2),
    "no such function": (["--fn", f"{HERE}:nothing"], 2),
    "raises": (["--fn", f"{HERE}:raising"], 3),
    "exits": (["--fn", f"{HERE}:exiting"], 3),
    "text": (["--fn", f"{HERE}:texts"], 3),
    "keys that differ": (["--fn", f"{HERE}:other_keys"], 3),
    "keys far inside": (["--fn", f"{HERE}:far_keys"], 3),
    "not a number": (["--fn", f"{HERE}:not_numbers"], 3),
    "an answer that cannot be stored": (["--fn", f"{HERE}:of_no_module"], 2),
    "a cap that cannot be kept": (["--fn", "mean", *AGE, "--cap", "identification=0.001"], 2),
    "clip of one end": (["--fn", "mean", *AGE, "--clip", "1"], 2),
}


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


@pytest.mark.parametrize("name", FAILING)
def test_a_command_that_fails_quotes_no_cell(name: str, marked: Path, capfd: Any, caplog: Any) -> None:
    options, expected = FAILING[name]
    code, words = said(["release", str(marked), *options, *SMALL, "--out", "out"], capfd, caplog)
    assert MARK not in words
    assert code == expected, words
    assert "leakcap: " in words
    assert "Traceback" not in words
    assert not Path("out/public").exists()


BROKEN = {
    "ragged": f"a,b\n1,2\n{MARK},2,3,{MARK}\n",
    "open quotation mark": f'a,b\n1,"{MARK}\n2,3\n',
    "infinite": f"a,b\ninf,{MARK}\n{MARK},2\n3,4\n5,6\n",
    "mixed": f"a,b\n{MARK},x{MARK}\nx{MARK},2\n3,4\n5,6\n",
    "decimal commas": f'a,b\n"{MARK},5",1\n"{MARK},6",2\n',
    "no names": "\n".join(f"{MARK},{i}" for i in range(9)) + "\n",
    "holes": f"a,b\n,{MARK}\n{MARK},2\n3,4\n5,6\n",
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_refused_without_its_cells(name: str, tmp_path: Path, capfd: Any, caplog: Any) -> None:
    (tmp_path / "broken.csv").write_text(BROKEN[name])
    for column in ("a", "a,b", ""):
        chosen = ["--columns", column] if column else []
        code, words = said(["release", "broken.csv", "--fn", "mean", *chosen, *SMALL, "--out", "o"], capfd, caplog)
        assert MARK not in words
        assert code == 2, words


@pytest.mark.parametrize("content", [b"PAR1 777123", b"a,b\n\xff\xfe777123,1\n", b"", b"PK\x03\x04777123"])
@pytest.mark.parametrize("ending", ["csv", "parquet", "csv.gz"])
def test_bytes_that_are_no_table_are_refused_without_being_shown(
    content: bytes, ending: str, tmp_path: Path, capfd: Any, caplog: Any
) -> None:
    (tmp_path / f"broken.{ending}").write_bytes(content)
    options = ["--fn", "mean", "--columns", "a", *SMALL, "--out", "o"]
    code, words = said(["release", f"broken.{ending}", *options], capfd, caplog)
    assert MARK not in words
    assert code == 2, words


@pytest.mark.parametrize(
    "place", ["leakcap.cli.release.plan", "leakcap.cli.release.public_files", "leakcap.cli.questions.units_of"]
)
def test_an_unexpected_error_is_told_by_kind_and_place_alone(
    place: str, marked: Path, capfd: Any, caplog: Any, monkeypatch: Any
) -> None:
    """Exit code 70: a defect of leakcap. Its text may hold anything."""

    def defect(*_: Any, **__: Any) -> Any:
        try:
            raise KeyError(f"row {MARK}")
        except KeyError as error:
            raise RuntimeError(f"inside {MARK}") from error

    monkeypatch.setattr(place, defect)
    options = ["--fn", "mean", *AGE, "--unit", "who", *SMALL, "--out", "out"]
    code, words = said(["release", str(marked), *options], capfd, caplog)
    assert code == 70
    assert "RuntimeError" in words
    assert MARK not in words
    assert not Path("out/public").exists()


def test_a_panic_quotes_no_cell(marked: Path, capfd: Any, caplog: Any) -> None:
    options = ["--fn", f"{HERE}:panicking", *SMALL, "--out", "out"]
    code, words = said(["release", str(marked), *options], capfd, caplog)
    assert code == 3
    assert MARK not in words


def test_warnings_of_the_function_quote_no_cell(marked: Path, capfd: Any, caplog: Any) -> None:
    """Raised in simulated worlds, they do not tell the secret; but they are the data's, in a log."""
    code, words = said(["release", str(marked), "--fn", f"{HERE}:warning", *SMALL, "--out", "out"], capfd, caplog)
    assert code == 0, words
    assert MARK not in words


@pytest.fixture
def _processes(monkeypatch: Any) -> Iterator[None]:
    """Worker processes even for fast functions, started within the test so that their words are heard."""
    from leakcap.simulate.executors import end_workers

    end_workers()
    monkeypatch.setattr(run, "SHORT", -1.0)
    yield
    end_workers()


FLAG = "LEAKCAP_TEST_PARENT"


def raising_in_workers(table: Any) -> Any:
    if os.environ[FLAG] != str(os.getpid()):
        raise ValueError(f"cannot handle {table['age'].iloc[0]}")
    return table["age"].mean()


def dying_in_workers(table: Any) -> Any:
    if os.environ[FLAG] != str(os.getpid()):
        os._exit(3)
    return table["age"].mean()


@pytest.mark.usefixtures("_processes")
@pytest.mark.parametrize("fn", ["raising_in_workers", pytest.param("dying_in_workers", marks=pytest.mark.slow)])
def test_workers_that_fail_quote_no_cell(fn: str, marked: Path, capfd: Any, caplog: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv(FLAG, str(os.getpid()))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    options = ["--fn", f"{HERE}:{fn}", *SMALL, "--workers", "2", "--out", "out"]
    code, words = said(["release", str(marked), *options], capfd, caplog)
    assert code == 3, words
    assert MARK not in words
    assert not Path("out/public").exists()


def test_the_search_for_cells_sees_a_careless_error(marked: Path, capfd: Any, caplog: Any, monkeypatch: Any) -> None:
    """The planted twin."""
    monkeypatch.setattr("leakcap.cli._defect", lambda error: f"{error}")

    def defect(*_: Any, **__: Any) -> Any:
        raise RuntimeError(f"inside {MARK}")

    monkeypatch.setattr("leakcap.cli.release.plan", defect)
    _, words = said(["release", str(marked), "--fn", "mean", *AGE, *SMALL, "--out", "out"], capfd, caplog)
    assert MARK in words


# While it runs: other people's view of the machine


@pytest.mark.usefixtures("_processes")
def test_workers_show_neither_key_nor_data_and_their_shared_memory_goes(tmp_path: Path) -> None:
    """Command lines and environments of all children, names in shared memory."""
    shown, modes = _while_workers_run(tmp_path)
    key = (tmp_path / "keys" / "key").read_bytes()
    salt = json.loads((tmp_path / "plan" / "vault.json").read_text())["salt"]
    assert len(shown) >= 2
    assert modes
    everything = b"\n".join(shown) + "\n".join(modes).encode()
    for secret in (key, bytes.fromhex(key.decode()), MARK.encode(), salt.encode()):
        assert secret not in everything
    assert not [path for path in modes if Path(path).is_file()], "the pool's data are gone from shared memory"


@pytest.mark.usefixtures("_processes")
def test_nobody_else_can_open_the_pool_in_shared_memory(tmp_path: Path) -> None:
    _, modes = _while_workers_run(tmp_path)
    assert all(mode & 0o077 == 0 for mode in modes.values()), modes


def _while_workers_run(tmp_path: Path) -> tuple[list[bytes], dict[str, int]]:
    """What others can see of a run on a pool that travels to its workers as a memory map."""
    X = np.full((70_000, 2), 777123.25)
    X[:, 0] += np.random.default_rng(0).random(70_000)
    shown: list[bytes] = []
    modes: dict[str, int] = {}
    me = os.getpid()

    def look(_: Any) -> None:
        for child in Path("/proc").glob("[0-9]*"):
            try:
                if f"PPid:\t{me}\n" in (child / "status").read_text():
                    shown.extend([(child / "cmdline").read_bytes(), (child / "environ").read_bytes()])
            except OSError:
                continue  # gone
        for place in (Path("/dev/shm"), Path(tempfile.gettempdir())):
            for top in filter(Path.is_dir, place.glob("leakcap-*")):
                closed = stat.S_IMODE(top.stat().st_mode)  # what lies in a closed folder is closed
                modes.update({str(path): closed & path.stat().st_mode for path in (top, *top.rglob("*"))})
            assert not list(place.glob(f"*joblib*{me}*")), "everything lies in a folder of ours"

    lc.plan(
        np.ndarray.mean,
        X,
        unit=np.arange(len(X)) % 50,
        cap=lc.mutual_information(0.3),
        worlds=8,
        draws=256,
        backend="processes",
        workers=2,
        progress=look,
        checkpoint=tmp_path / "plan",
    )
    return shown, modes
