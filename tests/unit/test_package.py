"""What importing the package gives, and what it does not pull in."""

from __future__ import annotations

import inspect
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import leakcap as lc


def test_public_names_are_sorted_and_complete() -> None:
    assert lc.__all__ == sorted(lc.__all__)
    assert len(set(lc.__all__)) == len(lc.__all__)
    assert all(hasattr(lc, name) for name in lc.__all__)
    shown = {name for name, value in vars(lc).items() if not name.startswith("_") and is_ours(value)}
    assert shown <= set(lc.__all__)


def is_ours(value: Any) -> bool:
    return not isinstance(value, types.ModuleType) and getattr(value, "__module__", "").startswith("leakcap")


PROMISED = """plan release Plan Release Certificate membership mip name_a_member precision identification
any_inference mutual_information true_positive_rate task convert"""
OPTION_NAMES = """cap worlds rate unit strata seed clip weights mode confidence draws public drop backend workers
progress checkpoint"""


def test_the_names_of_the_public_contract_are_there() -> None:
    assert set(PROMISED.split()) <= set(lc.__all__)
    options = inspect.signature(lc.plan).parameters
    assert [name for name in options if name in OPTION_NAMES.split()] == OPTION_NAMES.split()
    assert all(options[name].kind is inspect.Parameter.KEYWORD_ONLY for name in OPTION_NAMES.split())


def test_every_public_name_is_documented() -> None:
    for name in lc.__all__:
        if name != "__version__":
            assert (getattr(lc, name).__doc__ or "").strip(), name


HEAVY = ["numba", "sklearn", "matplotlib", "rich", "typer", "pandas", "torch", "joblib", "duckdb", "dask", "fastapi"]


def loaded_after(code: str) -> set[str]:
    script = f"{code}\nimport sys\nprint(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=Path("/"))
    return set(ran.stdout.split())


def test_import_leakcap_pulls_in_nothing_heavy() -> None:
    assert not loaded_after("import leakcap") & {"numpy", "scipy", *HEAVY}
    loaded = loaded_after("import leakcap; leakcap.plan, leakcap.release, leakcap.convert, leakcap.stats")
    assert {"leakcap", "numpy", "scipy"} <= loaded
    assert not loaded & set(HEAVY)
    assert loaded_after("import leakcap, joblib") & set(HEAVY), "the check sees what is loaded"


def test_import_leakcap_writes_nothing_and_seeds_nothing() -> None:
    script = "import random; random.seed(1); a = random.getstate(); import leakcap; assert a == random.getstate()"
    ran = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == ran.stderr == ""
