"""What every script of a figure does: read the command line, measure panel by panel, write a table and a picture."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from reproductions.pac_private_algorithms.picture import drawn, read, saved, written
from reproductions.pac_private_algorithms.series import OURS_CAP, OURS_MI, Row, Settings, Study, measured

__all__ = ["FOLDER", "Panels", "arguments", "make", "settings_of"]

FOLDER = Path(__file__).parents[1] / "out" / "pac_private_algorithms"
# From the number of rows (None for all) to panels; each is made when its turn comes, so that only one is in memory.
Panels = Callable[[Settings], Iterable[Callable[[], Study]]]


def arguments(about: str, given: Sequence[str] | None = None) -> argparse.Namespace:
    """The options that all scripts share."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--quick", action="store_true", help="toy size, the first panel only: shows that it runs")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder for the CSV file and the pictures")
    parser.add_argument("--releases", type=int, help="simulated releases for each point (200; the paper has 1,000)")
    parser.add_argument("--worlds", type=int, help="worlds (1,024)")
    parser.add_argument("--thin", action="store_true", help="membership caps at every second budget: half the time")
    parser.add_argument("--paper", action="store_true", help="the paper's series only; ours made before are kept")
    parser.add_argument("--panels", type=int, nargs="+", help="some panels only, from 1; those made before are kept")
    found = parser.parse_args(given)
    found.out.mkdir(parents=True, exist_ok=True)
    return found


def settings_of(options: argparse.Namespace) -> Settings:
    """What is simulated under these options."""
    if options.quick:
        return replace(Settings.quick(options.releases), paper=options.paper)
    plain = Settings()
    worlds, releases = options.worlds or plain.worlds, options.releases or plain.releases
    return Settings(worlds=worlds, releases=releases, thin=options.thin, paper=options.paper)


def make(
    name: str, title: str, panels: Panels, unit: str = "accuracy on the test part", given: Sequence[str] | None = None
) -> list[Row]:
    """One figure from its panels: `figure_<name>.csv`, `.svg` and `.png`."""
    options = arguments(f"Figure {name}: {title}", given)
    settings = settings_of(options)
    stem = options.out / f"figure_{name}"
    rows = read(stem.with_suffix(".csv")) if options.panels or options.paper else []
    for number, panel in enumerate(panels(settings), start=1):
        if number not in (options.panels or ((1,) if options.quick else (number,))):
            continue
        began = time.perf_counter()
        study = panel()
        found = list(measured(name, study, settings))
        kept = (OURS_MI, OURS_CAP) if settings.paper else ()
        rows = [row for row in rows if row.data != study.data or row.series in kept] + found
        print(f"Figure {name}, {study.data}: {time.perf_counter() - began:.0f} s", flush=True)
        written(rows, stem.with_suffix(".csv"))  # after every panel: some take long
        saved(drawn(rows, f"Figure {name}: {title}", unit), stem)
    return rows
