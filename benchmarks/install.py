"""What `pip install .` brings, and what the first run of each example on the README costs beyond the second.

`python -m benchmarks.install [size] [examples]`. Everything happens in a new environment outside the checkout. Its size
is what it takes on the disk as `du -sm` counts (whole blocks, 2^20 bytes a MB), its own pip included. A first run
finds nothing compiled, no key and no ledger. CPU seconds, with those of workers.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from benchmarks.records import record

__all__ = ["LARGEST_MB", "ROOT", "Installed", "examples", "main"]

ROOT = Path(__file__).parents[1]
LARGEST_MB, MOST_SECONDS = 800, 25
IMPORTS = "import leakcap as lc\nfrom sklearn.datasets import load_breast_cancer\n"  # of the first example
OURS = ("PYTHON", "NUMBA_", "LEAKCAP_")  # settings of whoever measures


class Installed:
    """A new environment in a folder, with what pip installs from one place and nothing else."""

    def __init__(self, folder: Path, source: Path) -> None:
        """From the folder of the package, or from a wheel; no extras."""
        self.folder, environment = folder, folder / "environment"
        venv.create(environment, with_pip=True)
        self.programs = environment / "bin"
        (self.packages,) = environment.glob("lib/python*/site-packages")
        command = [self.programs / "pip", "install", "--quiet", "--disable-pip-version-check", source]
        subprocess.run(command, cwd=folder, env=_settings(), check=True)

    def megabytes(self, package: str = "") -> float:
        """On the disk: of the whole environment, or of one package."""
        within = self.packages / package if package else self.programs.parent
        return sum(path.lstat().st_blocks * 512 for path in (within, *within.rglob("*"))) / 2**20

    def run(self, home: Path, program: str, *arguments: str) -> tuple[str, float]:
        """What a program prints, run in a new folder, and its CPU seconds; what it keeps for later lies in `home`."""
        settings = _settings() | {"HOME": str(home), "NUMBA_CACHE_DIR": str(home / "machine-code")}
        command, before = [self.programs / program, *arguments], _cpu_seconds()
        where = tempfile.mkdtemp(dir=self.folder)
        done = subprocess.run(command, cwd=where, env=settings, stdout=subprocess.PIPE, text=True, check=True)
        return done.stdout, _cpu_seconds() - before


def _settings() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(OURS)}


def _cpu_seconds() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def examples() -> dict[str, tuple[str, ...]]:
    """The README's first three examples, each by itself, and the demonstration."""
    first, *others = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    fit, session = (f"{IMPORTS}{code}" for code in others[:2])
    codes = {"plan": first, "fit": fit, "session": session}
    return {name: ("python", "-c", code) for name, code in codes.items()} | {"demo": ("leakcap", "demo")}


def size(installed: Installed) -> None:
    whole, own = installed.megabytes(), installed.megabytes("leakcap")
    seen = f"{whole:.0f} MB with pandas, pyarrow and the environment's own pip, {whole - own:.0f} without leakcap"
    print(seen, flush=True)
    record(
        "install-size",
        seen,
        topic="The command line",
        claim="A new environment after `pip install .`",
        command="python -m benchmarks.install size",
        asked=f"at most {LARGEST_MB} MB",
    )


def first_runs(installed: Installed) -> None:
    for name, command in examples().items():
        home = Path(tempfile.mkdtemp(dir=installed.folder))
        first, second = (installed.run(home, *command)[1] for _ in range(2))
        more = round(first - second, 1) + 0.0  # never "-0.0"
        seen = f"{more} CPU s more ({first:.1f}, then {second:.1f})"
        print(f"{name:<10}{seen}", flush=True)
        record(
            f"install-first-run-{name}",
            seen,
            topic="The command line",
            claim=f"The first run after `pip install .` beside the second: {SHOWN[name]}",
            command="python -m benchmarks.install examples",
            asked=f"at most {MOST_SECONDS} CPU s more",
        )


SHOWN = {
    "plan": "the README's first example",
    "fit": "its logistic regression",
    "session": "its session",
    "demo": "`leakcap demo`",
}
PARTS = {"size": size, "examples": first_runs}


def main(named: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        installed = Installed(Path(folder), ROOT)
        for name in named or PARTS:
            PARTS[name](installed)


if __name__ == "__main__":
    main(sys.argv[1:])
