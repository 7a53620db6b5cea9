"""`leakcap check`: recompute a certificate from the stored plan, and try its word on fresh draws."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from leakcap.certificate import Certificate
from leakcap.cli.terminal import Terminal, plain
from leakcap.errors import InputError
from leakcap.leakage import observe_units
from leakcap.leakage.posterior import Sampled
from leakcap.planning import stored_plan
from leakcap.releases import Plan
from leakcap.wording import percent

__all__ = ["Finding", "findings", "run"]

WORST = 64  # people against whom the attacker is tried, the most exposed by the plan
DRAWS = 2**14
WORDS = ("pool_public", "assumptions", "not_promised", "theorems", "leakcap_version")
DOUBT = 1e-6  # probability of a false alarm


@dataclass(frozen=True)
class Finding:
    """One thing that was checked."""

    holds: bool
    words: str


def run(certificate: Path, custodian: Path, quiet: bool = False, json: bool = False) -> bool:
    """Say whether a certificate holds."""
    terminal = Terminal(quiet, json)
    given = _read(certificate)
    folder = custodian / "plan" if (custodian / "plan").is_dir() else custodian
    if (folder / "custodian" / "plan").is_dir():
        folder = folder / "custodian" / "plan"  # the folder of the whole release was named
    with terminal.watching() as watch:
        plan = stored_plan(folder, watch)
    found = list(findings(given, plan))
    holds = all(one.holds for one in found)
    for one in found:
        terminal.say(f"{'[green]yes[/green]' if one.holds else '[bold red]NO[/bold red] '} {plain(one.words)}")
    if not holds:
        verdict = "The certificate does not hold. Do not rely on it, and do not publish it."
    elif not given.is_guarantee:
        verdict = f"The figures hold, but a certificate of kind {given.kind} is no guarantee."
    else:
        verdict = "The certificate holds."
    terminal.say(f"[bold]{verdict}[/bold]")
    terminal.result({"holds": holds, "guarantee": given.is_guarantee, "findings": [asdict(one) for one in found]})
    return holds


def findings(given: Certificate, plan: Plan) -> Iterator[Finding]:
    """What can be checked about a certificate, one after the other."""
    wrong = [name for name, value in asdict(plan.certificate).items() if asdict(given)[name] != value]
    told = "it is what the stored plan gives, to the last digit"
    released = plan.released_certificate
    if given.leakcap_version != plan.certificate.leakcap_version and released == given:
        wrong = [name for name in wrong if name not in WORDS]
        told = f"its figures are what the stored plan gives; leakcap {given.leakcap_version} chose the words"
    yield Finding(
        not wrong, told if not wrong else f"it differs from what the stored plan gives in: {', '.join(wrong)}"
    )
    if released is None:
        yield Finding(True, "nothing was released from this plan yet")
    else:
        same = released == given
        yield Finding(same, f"the stored release carries {'this' if same else 'another'} certificate")
    yield from _caps(given)
    if given.mode == "exact" and plan.noise.space.rank:
        yield _on_fresh_draws(given, plan)


def _caps(given: Certificate) -> Iterator[Finding]:
    for one in given.capped:
        kept = one.certified <= one.limit
        yield Finding(kept, f"cap {'kept' if kept else 'NOT kept'}: {one.meaning}")


def _on_fresh_draws(given: Certificate, plan: Plan) -> Finding:
    """The best attacker at work, on releases that nobody has seen."""
    worst = np.argsort(-plan.exposure)[:WORST]
    points = plan.noise.space.coordinates / plan.noise.deviations
    seen = observe_units(Sampled(points, DRAWS, np.random.SeedSequence()), plan.worlds, np.empty(0), worst).balanced
    # Bernstein from below, for all people at once: an attacker who only had luck is no evidence.
    log_term = math.log(2 * len(worst) / DOUBT)
    margin = np.sqrt(2 * seen.variance * log_term / DRAWS) + 7 * seen.span * log_term / (3 * (DRAWS - 1))
    measured = float(seen.estimate.max())
    holds = bool((seen.estimate - margin - seen.rounding).max() <= given.membership_success)
    return Finding(
        holds,
        f"{DRAWS:,} fresh releases: the best attacker against the {len(worst)} most exposed people reaches "
        f"{percent(measured)}, certified {percent(given.membership_success)}",
    )


def _read(path: Path) -> Certificate:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        text = None
    if text is None:
        raise InputError(f"{path} cannot be read: give the certificate.json of a release")
    return Certificate.from_json(text)
