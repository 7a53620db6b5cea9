"""Pages whose code runs: blocks in order, and what they print against what the page shows.

* A `python` block is executed, in one namespace for the whole page. In a `console` block every line that begins with
  `$ ` is run; a line that ends with a backslash goes on in the next. Both run in the same empty folder.
* A `text` block right after such a block shows its output: numbers, times, rules and spacing may differ, words may not,
  and `...` stands for anything. `{.text .exact}` is compared to the letter, line by line.
* `title="exit status 4"` says how the last command of a console block ends; its output then includes standard error.
* A python block with `title="name.py"` is written to that file instead, for commands that use it.
* `title="..., not run here"` is for code of other libraries.

Pages run in processes of their own: releases of one page are no business of another, nor of other tests. So do
commands, and questions in SQL. None starts Python anew: `Nursery`, `Commands`, `tests/copies.py`.

Numbers are not compared, and pages are run with few draws. After a change of words,
`python -m tests.docs.pages docs/guides/faq.md` puts what is printed now where a page shows something else, with all.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

__all__ = ["Block", "Nursery", "agree", "blocks", "faults", "renewed"]

ROOT = Path(__file__).parents[2]
LIBRARIES = (
    *("numpy", "numba", "pandas", "scipy.stats", "typer", "matplotlib.pyplot"),
    *(f"sklearn.{name}" for name in ("cluster", "datasets", "ensemble", "linear_model", "model_selection")),
)
OURS = (
    *(f"leakcap.cli.{name}" for name in ("audit", "check", "explain", "labels", "obfuscate", "release")),
    "leakcap.report.pages",
)
PROGRAMS = {
    "python": [sys.executable],
    "tpchgen-cli": [str(Path(sys.executable).parent / "tpchgen-cli")],
    "cat": ["cat"],
    "head": ["head"],
    "ls": ["ls"],
}
FENCE = re.compile(r"^(?P<fence>`{3,}) *(?P<info>[^\n]*)\n(?P<body>.*?)^(?P=fence) *$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"(?<![A-Za-z_])[-+\u2212]?\d[\d,]*(\.\d+)?([eE][-+]?\d+)?")
TIME = re.compile(r"# (ms|s|min|hours)\b")


@dataclass(frozen=True)
class Block:
    """A fenced block, and the text right after it, if that is its output."""

    kind: str
    info: str
    body: str
    line: int
    shown: Block | None = None

    @property
    def runs(self) -> bool:
        return self.kind in ("python", "console") and "not run here" not in self.info

    @property
    def exact(self) -> bool:
        return ".exact" in self.info

    @property
    def status(self) -> int:
        found = re.search(r'title="exit status (\d+)"', self.info)
        return int(found[1]) if found else 0

    @property
    def file(self) -> str | None:
        found = re.search(r'title="(\w+\.py)"', self.info)
        return found[1] if found else None

    def commands(self) -> list[str]:
        """What stands after a prompt."""
        lines = re.sub(r"\\\n\s*", "", self.body).splitlines()
        return [line[2:] for line in lines if line.startswith("$ ")]


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page; a `text` block with nothing but white space before it belongs to its predecessor."""
    found: list[Block] = []
    end = 0
    for match in FENCE.finditer(text):
        info = match["info"].strip()
        kind = re.match(r"\{?\.?(\w*)", info)[1]
        block = Block(kind, info, match["body"], text.count("\n", 0, match.start()) + 1)
        if kind == "text" and found and found[-1].runs and not text[end : match.start()].strip():
            before = found.pop()
            block = Block(before.kind, before.info, before.body, before.line, block)
        found.append(block)
        end = match.end()
    return found


def agree(shown: str, printed: str, exact: bool = False) -> bool:
    """Whether an output has the form that a page shows."""
    form = _lines if exact else _form
    pattern = ".*".join(map(re.escape, form(shown).split("...")))
    return re.fullmatch(pattern, form(printed), re.DOTALL) is not None


def _lines(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")


def _form(text: str) -> str:
    masked = TIME.sub("# s", NUMBER.sub("#", re.sub("─+", "─", text)))
    return re.sub(r"\[ | \]", lambda found: found[0].strip(), " ".join(masked.split()))


class Loaded:
    """Asks a process that runs nothing itself: what it is asked for is done by a copy of it (`fork`).

    `counts` is told the CPU seconds of every copy, and takes them back when the process ends: the system counts then.
    """

    def __init__(self, asks: int, told: int, process: int, counts: Callable[[float], None] = lambda seconds: None):
        self._asks, self._told, self._process = asks, told, process
        self._counts, self.spent = counts, 0.0

    def run(self, request: object) -> subprocess.CompletedProcess[str]:
        """What a copy prints and how it ends."""
        os.write(self._asks, f"{json.dumps(request)}\n".encode())
        with open(self._told, closefd=False) as answers:
            seconds, *done = json.loads(answers.readline())
        self.count(seconds)
        return subprocess.CompletedProcess([], *done)

    def count(self, seconds: float) -> None:
        """Of a copy that has ended."""
        self.spent += seconds
        self._counts(seconds)

    def close(self) -> None:
        """The process ends, and its CPU seconds are counted."""
        os.close(self._asks)
        os.close(self._told)
        os.waitpid(self._process, 0)
        self._counts(-self.spent)


class Nursery(Loaded):
    """Runs pages and scripts, each in a process of its own in which the libraries are there: they take seconds.

    leakcap's own modules are not among them: a page must find those by itself.
    """

    def __init__(self, counts: Callable[[float], None] = lambda seconds: None, *, few: bool = True) -> None:
        """`few`: plans certify with few draws, since words are compared and numbers are not."""
        command = [sys.executable, __file__, "--nursery", *["--few"] * few]
        begun = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert begun.stdin and begun.stdout
        super().__init__(os.dup(begun.stdin.fileno()), os.dup(begun.stdout.fileno()), begun.pid, counts)
        begun.stdin.close()
        begun.stdout.close()
        begun.returncode = 0  # `close` waits for it

    def page(self, text: str, here: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
        return self.run({"page": text, "here": str(here), "environment": environment})

    def script(
        self, path: Path, argument: Path, here: Path, environment: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        return self.run({"script": str(path), "argument": str(argument), "here": str(here), "environment": environment})


class Commands(Loaded):
    """Runs `leakcap` commands as `python -m leakcap` would.

    It is made before the first page: of what a page does a command sees only the files.
    """

    def __init__(self) -> None:
        asked, asks = os.pipe()
        told, tells = os.pipe()
        process = os.fork()
        if not process:
            os.close(asks)
            for name in OURS:
                importlib.import_module(name)
            from leakcap.cli import main

            def command(request: dict[str, Any]) -> object:
                _settle(request)
                return main(request["arguments"])

            _serve(asked, tells, command)
            os._exit(0)
        os.close(asked)
        os.close(tells)
        super().__init__(asks, told, process)

    def command(self, arguments: list[str]) -> subprocess.CompletedProcess[str]:
        """In this folder and environment."""
        return self.run({"arguments": arguments, "here": os.getcwd(), "environment": dict(os.environ)})


def _libraries() -> None:
    for name in LIBRARIES:
        with contextlib.suppress(ModuleNotFoundError):  # what a library of ours no longer needs is not there
            importlib.import_module(name)
    sys.modules["numba"].njit(lambda number: number)(0)  # reads its own tables with the first function


def _serve(asked: int, tells: int, work: Callable[[Any], object]) -> None:
    gc.freeze()  # copies need not look through all that when they end
    with open(asked, closefd=False) as requests:
        for request in iter(requests.readline, ""):
            with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
                copied = os.fork()
                if not copied:
                    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                    os.dup2(out.fileno(), 1)
                    os.dup2(err.fileno(), 2)
                    raise SystemExit(work(json.loads(request)))  # goes up to the end of the program, as anywhere else
                _, status, used = os.wait4(copied, 0)
                printed = [file.seek(0) or file.read() for file in (out, err)]
            answer = [used.ru_utime + used.ru_stime, os.waitstatus_to_exitcode(status), *printed]
            os.write(tells, f"{json.dumps(answer)}\n".encode())


def _settle(request: dict[str, Any]) -> None:
    os.chdir(request["here"])
    os.environ.clear()
    os.environ.update(request["environment"])


def _raise(request: dict[str, Any], commands: Commands) -> None:
    """What the nursery's copies do."""
    _settle(request)
    if "page" in request:
        _told(request["page"], commands)
    else:
        sys.argv[:] = [request["script"], request["argument"]]
        sys.path[0] = str(Path(request["script"]).parent)
        runpy.run_path(request["script"], run_name="__main__")


def _told(text: str, commands: Commands) -> None:
    sys.path[0] = ""  # modules are found in the page's folder, as in a session of one's own
    found = [asdict(fault) for fault in _in_order(blocks(text), commands)]
    print(json.dumps([commands.spent, found]))


@dataclass(frozen=True)
class Fault:
    """What is wrong at a line; where it is an output, what should stand there."""

    line: int
    words: str
    printed: str | None = None


def faults(text: str, folder: Path, nursery: Nursery) -> list[Fault]:
    """What is wrong with a page, after running it in an empty folder below this one."""
    home, here = folder / "home", folder / "page"
    home.mkdir()
    here.mkdir()
    environment = os.environ | {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home),
        "LC_ALL": "C.UTF-8",  # the order in which files are listed
        "COLUMNS": "80",
        "NO_COLOR": "1",
        "MPLBACKEND": "Agg",
        "OMP_NUM_THREADS": "1",  # many small fits: threads would only wait for each other
    }
    environment.pop("LEAKCAP_KEY", None)
    done = nursery.page(text, here, environment)
    if done.returncode:
        return [Fault(0, f"the page ended the process with status {done.returncode}: {done.stderr}")]
    seconds, found = json.loads(done.stdout.splitlines()[-1])
    nursery.count(seconds)  # of its commands
    return [Fault(**one) for one in found]


def renewed(text: str, folder: Path, nursery: Nursery) -> str:
    """The page with outputs as they are printed now, where they differ from what it shows."""
    lines = text.splitlines(keepends=True)
    shown = {block.shown.line: block.shown for block in blocks(text) if block.shown}
    for fault in reversed(faults(text, folder, nursery)):
        if fault.printed is None:
            raise SystemExit(f"line {fault.line}: {fault.words}")
        start = fault.line
        lines[start : start + shown[fault.line].body.count("\n")] = [_lines(fault.printed) + "\n"]
    return "".join(lines)


def _in_order(found: list[Block], commands: Commands) -> Iterator[Fault]:
    namespace = {"__name__": "__main__"}
    for block in found:
        if block.kind not in ("python", "console", "text"):
            yield Fault(block.line, f"{block.info!r} is no kind of block that is checked")
        if not block.runs:
            continue
        wrong, printed = _python(block, namespace) if block.kind == "python" else _console(block, commands)
        if wrong:
            yield Fault(block.line, wrong)
            return  # what follows may need it
        if block.shown and not agree(block.shown.body, printed, block.shown.exact):
            words = f"the page shows\n{block.shown.body}\nand this was printed:\n{printed}"
            yield Fault(block.shown.line, words, printed)


def _python(block: Block, namespace: dict[str, object]) -> tuple[str, str]:
    if block.file:
        Path(block.file).write_text(block.body)
        return "", ""
    printed = io.StringIO()
    try:
        code = compile("\n" * block.line + block.body, "page", "exec")
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)
    except (Exception, SystemExit):
        return traceback.format_exc(), ""
    return "", printed.getvalue()


def _console(block: Block, ours: Commands) -> tuple[str, str]:
    commands = block.commands()
    if not commands:
        return "no line begins with '$ '", ""
    printed = ""
    for place, command in enumerate(commands):
        program, *arguments = shlex.split(command, comments=True)
        if program == "make":  # runs the tests, among others: that it is there must do
            if not re.search(rf"^{arguments[0]}:", (ROOT / "Makefile").read_text(), re.MULTILINE):
                return f"the Makefile has no target {arguments[0]}", ""
            continue
        if program == "leakcap":
            done = ours.command(arguments)
        elif program in PROGRAMS:
            done = subprocess.run([*PROGRAMS[program], *arguments], capture_output=True, text=True, check=False)
        else:
            return f"{program} is none of leakcap, {', '.join(PROGRAMS)}", ""
        expected = block.status if place == len(commands) - 1 else 0
        if done.returncode != expected:
            return f"{command!r} ended with status {done.returncode}, not {expected}: {done.stderr}", ""
        printed += done.stdout + (done.stderr if expected else "")
    return "", printed


def _renew(names: list[str]) -> None:
    with contextlib.closing(Nursery(few=False)) as nursery:
        for name in names:
            path = Path(name)
            with tempfile.TemporaryDirectory() as folder:
                path.write_text(renewed(path.read_text(), Path(folder), nursery))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--nursery"]:
        sys.path[0] = str(ROOT)
        from tests.copies import Copies
        from tests.few import FewFromTheStart

        if "--few" in sys.argv:
            sys.meta_path.insert(0, FewFromTheStart())
        _libraries()
        engines = Copies()
        engines.source("engine")
        subprocess.Popen = engines.popen()  # type: ignore[misc]
        commands = Commands()
        engines.counts = commands.count
        _serve(0, 1, lambda request: _raise(request, commands))
        commands.close()
        engines.close()
    else:
        _renew(sys.argv[1:])
