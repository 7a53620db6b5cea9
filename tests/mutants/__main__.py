"""`python -m tests.mutants`: plant small faults, one at a time, and see that the tests named for each fail."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from tests.mutants.faults import all_mutants, by_commit, chosen
from tests.mutants.running import BAD, CAUGHT, Outcome, run_all


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="mutants or rooms; all where none is named")
    parser.add_argument("--six", metavar="COMMIT", help="six of them, chosen by this text: the hash of a commit")
    parser.add_argument("--jobs", type=int, default=1, help="faults at a time, each in a copy of the package")
    parser.add_argument("--out", type=Path, help="a JSON file for what was found")
    parser.add_argument("--list", action="store_true", help="print names and meanings, and run nothing")
    parser.add_argument("--unchecked", action="store_true", help="do not run the tests without a fault first")
    given = parser.parse_args()
    mutants = chosen(all_mutants(), given.names) if given.names else all_mutants()
    if given.six is not None:
        mutants = by_commit(mutants, given.six)
    if given.list:
        for mutant in mutants:
            print(f"{mutant.name}: {mutant.means}")
        return 0
    outcomes = run_all(mutants, max(1, given.jobs), tell=_tell, healthy=not given.unchecked)
    caught, bad = (sum(one.status in wanted for one in outcomes) for wanted in ((CAUGHT,), BAD))
    print(f"{caught} caught of {len(outcomes)}")
    if given.out:
        found = {"caught": caught, "of": len(outcomes), "mutants": [one.record() for one in outcomes]}
        given.out.write_text(json.dumps(found, indent=1) + "\n")
    return 1 if bad else 0


def _tell(outcome: Outcome) -> None:
    print(f"{outcome.status:>10}  {outcome.cpu_seconds:5.1f} s  {outcome.mutant.name}", flush=True)
    if outcome.detail:
        print(f"            {outcome.detail}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
