"""What every part does: read the command line, write a table, and keep a record of a full run."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks.records import record

__all__ = ["FOLDER", "arguments", "keep"]

FOLDER = Path(__file__).parents[1] / "out" / "membership_inference_privacy"


def arguments(about: str, given: Sequence[str] | None = None) -> argparse.Namespace:
    """The options that all parts share."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--quick", action="store_true", help="toy size: shows that it runs; keeps no record")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder for CSV files and pictures")
    found = parser.parse_args(given)
    found.out.mkdir(parents=True, exist_ok=True)
    return found


def keep(part: str, name: str, *, claim: str, asked: str, seen: str) -> None:
    """A record for docs/benchmarks.md."""
    print(f"{claim}: {seen}", flush=True)
    record(
        f"mip-{name}",
        seen,
        topic="Reproductions",
        claim=claim,
        command=f"python -m reproductions.membership_inference_privacy {part}",
        asked=asked,
    )
