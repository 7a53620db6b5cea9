"""`leakcap demo`: two private releases from start to end, on data that scikit-learn ships.

Two data sets on purpose: a second release about the same people would be covered by neither certificate.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from sklearn import config_context
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_iris

import leakcap as lc
from leakcap.certificates.release import Certificate
from leakcap.certificates.text import in_short, percent
from leakcap.cli.demo_pictures import Angle, Scene, draw_at_a_glance, draw_worlds
from leakcap.cli.terminal import Terminal, plain
from leakcap.custody.folders import Folders
from leakcap.errors import MissingExtra
from leakcap.ground.arrays import Floats
from leakcap.ground.cores import one_blas_thread
from leakcap.report.release.files import custodian_files, public_files, table_of
from leakcap.report.release.page import Answer

__all__ = ["run"]

FEATURES = ("mean radius", "mean texture", "mean smoothness", "mean symmetry")
# A small, a middle and a large flower, on scales from 0 to 1. Fixed in advance, so that clusters come in the same
# order in every world. It leaves with the model, as its `init`: computed from the data, it would tell them.
START = np.repeat([[0.25], [0.5], [0.75]], 4, axis=1)
# What KMeans keeps besides its centres: a label for every row, and figures that no user of the model needs.
DROP = ("labels_", "n_iter_", "_tol", "inertia_")
PETAL = (2, 3)
DRAWS = 2**14  # to certify with: a plan would take eight times as many, for a little less noise at twice the time


def run(out: Path, cap: float, worlds: int) -> None:
    """Both releases, explained in plain words."""
    limit = lc.membership(cap)
    files = Files(Folders.under(out))
    started = time.perf_counter()
    terminal = Terminal()
    promise = (
        f"Two answers from private data, with one promise: [bold]nobody who sees an answer can guess any person's "
        f"participation with more than {100 * cap:g} % success[/bold], not even if they know everyone's data and the "
        "code and compute without limit. A coin flip has 50 %."
    )
    terminal.out.print(Panel(promise, title="leakcap demo", title_align="left"))
    means = private_means(terminal, files, limit, worlds)
    kmeans = private_kmeans(terminal, files, limit, worlds)
    _draw(terminal, files, means, kmeans)
    files.close()
    folders = files.folders
    terminal.heading(f"Done in {time.perf_counter() - started:.0f} s")
    terminal.say(f"[bold]{folders.public}[/bold]: may be published. Answers, certificates as records and pages.")
    terminal.say(
        f"[bold]{folders.custodian}[/bold]: for you alone (folder 0700, files 0600). Reports with the worlds and "
        "single people's exposure, pictures."
    )
    terminal.say("Each certificate stands alone: on real data, releasing again calls for a session with a ledger.")


def private_means(terminal: Terminal, files: Files, limit: lc.caps.Cap, worlds: int) -> Scene:
    """The means of four measurements of breast tumours."""
    data = load_breast_cancer()
    X: Floats = data.data[:, [list(data.feature_names).index(name) for name in FEATURES]]
    terminal.heading("1. Private means: the breast cancer data")
    terminal.say(f"{len(X)} patients; the question is the mean of {len(FEATURES)} measurements of their tumours.")
    plan, release = _release(terminal, lambda rows: rows.mean(axis=0), X, cap=limit, worlds=worlds)
    _print_certificate(terminal, release.certificate)

    summary = plan.summary()
    sampling = X.std(axis=0, ddof=1) / np.sqrt(len(X))
    off = np.abs(release.value - summary.answer)
    errors = off, summary.error, summary.noise, sampling
    terminal.table(
        ("", "whole pool", "released", "off by", "expected", "noise", "sampling"),
        [
            (name, f"{summary.answer[i]:.3g}", f"{release.value[i]:.3g}", *(f"{error[i]:.2g}" for error in errors))
            for i, name in enumerate(FEATURES)
        ],
        "Usefulness, in the data's own units (custodian's view)",
    )
    share = percent(float(np.median(summary.error / summary.answer)), 1)
    terminal.say(
        f"[dim]expected: error to expect, noise included, here {share} of the mean. "
        "sampling: how far a mean of so many patients is from the truth even without privacy.[/dim]"
    )

    title = "Means of the breast cancer data"
    answer = table_of(release, title, FEATURES)
    _save(files, "means", plan=plan, release=release, answer=answer, limit=limit)
    return Scene(
        title=title,
        plan=plan,
        released=release.value,
        labels=(f"{FEATURES[0]}, averaged over patients", f"{FEATURES[1]}, averaged over patients"),
        angles=(Angle(np.eye(len(FEATURES))[:2]),),
    )


def private_kmeans(terminal: Terminal, files: Files, limit: lc.caps.Cap, worlds: int) -> Scene:
    """Three clusters of Iris flowers, as a KMeans that predicts."""
    data = load_iris()
    low, high = data.data.min(axis=0), data.data.max(axis=0)
    X: Floats = (data.data - low) / (high - low)
    terminal.heading("2. Private K-Means: the Iris data")
    terminal.say(f"{len(X)} flowers with {X.shape[1]} measurements; the question is the centres of 3 clusters.")
    public = (
        "Start centres (all measurements at 0.25, 0.5 and 0.75), fixed without looking at the data.",
        "Smallest and largest value of each measurement in the whole pool, to scale it to 0..1.",
    )
    plan, release = _release(terminal, _fit, X, cap=limit, worlds=worlds, drop=DROP, public=public)
    _print_certificate(terminal, release.certificate)

    model: KMeans = release.value
    plain, private = _fit(X).labels_, model.predict(X)
    rows = [
        (name, *(f"{100 * share:.1f} %" for share in (np.mean(plain == truth), np.mean(private == truth), expected)))
        for name, truth in (("flowers grouped with their species", data.target), ("same as unprotected", plain))
        for expected in [_expected_agreement(plan, X, truth)]
    ]
    terminal.table(("", "unprotected", "released", "expected"), rows, "Usefulness (custodian's view)")
    terminal.say(
        "[dim]expected: mean over such releases. The released object is a KMeans; its predict() was used.[/dim]"
    )

    centimetres = (model.cluster_centers_ * (high - low) + low).tolist()
    centres = {"measurements (cm)": list(data.feature_names), "centres": centimetres}
    files.publish("kmeans-centres.json", json.dumps(centres, indent=1))
    measured = [name.removesuffix(" (cm)") for name in data.feature_names]
    names = tuple(f"cluster {k + 1}, {name}, scaled 0..1" for k in range(len(START)) for name in measured)
    title = "Cluster centres of the Iris data"
    answer = table_of(release, title, names)
    _save(files, "kmeans", plan=plan, release=release, answer=answer, limit=limit)
    return Scene(
        title=title,
        plan=plan,
        released=model.cluster_centers_.ravel(),
        labels=("petal length of the centre (cm)", "petal width of the centre (cm)"),
        angles=_petals(low, high),
    )


def _fit(rows: Floats) -> KMeans:
    return KMeans(n_clusters=len(START), init=START, n_init=1).fit(rows)


def _expected_agreement(plan: lc.Plan, X: Floats, truth: npt.NDArray[np.intp], trials: int = 400) -> float:
    """Mean share of rows whose nearest centre is the true one, over simulated releases of this plan."""
    rng = np.random.default_rng()
    factor = plan.noise.factor
    answers = plan.outputs[rng.integers(len(plan.outputs), size=trials)]
    noisy = (answers + rng.standard_normal((trials, factor.shape[1])) @ factor.T).reshape(trials, *START.shape)
    apart = ((X[None, :, None, :] - noisy[:, None]) ** 2).sum(axis=-1)
    return float((apart.argmin(axis=-1) == truth).mean())


def _petals(low: Floats, high: Floats) -> tuple[Angle, ...]:
    """Each centre along petal length and width, in centimetres."""
    angles = []
    for cluster in range(len(START)):
        axes = np.zeros((2, *START.shape))
        axes[(0, 1), cluster, PETAL] = (high - low)[list(PETAL)]
        length, width = low[list(PETAL)].tolist()
        angles.append(Angle(axes.reshape(2, -1), (length, width), f"cluster {cluster + 1}"))
    return tuple(angles)


def _draw(terminal: Terminal, files: Files, means: Scene, kmeans: Scene) -> None:
    """Pictures for the custodian, where matplotlib is installed; the demo needs none."""
    try:
        files.keep("means-at-a-glance.png", draw_at_a_glance(means))
        files.keep("kmeans-worlds.png", draw_worlds(kmeans))
    except MissingExtra as missing:
        terminal.say(plain(f"Nothing was drawn: {missing}"))


def _release(terminal: Terminal, fn: Callable[..., Any], X: Floats, **options: Any) -> tuple[lc.Plan, lc.Release]:
    """Plan and release, and say what was done at every step."""
    started = time.perf_counter()
    # Both functions take a millisecond or two: threads inside them would only wait for each other, and checks of data
    # that scikit-learn ships itself would take a fifth of that time.
    quick = config_context(assume_finite=True, skip_parameter_validation=True)
    with terminal.watching() as watch, one_blas_thread(), quick:
        plan = lc.plan(fn, X, progress=watch, draws=DRAWS, **options)
    release = plan.release()
    ratio = np.median(plan.noise.output_deviations / plan.outputs.std(axis=0))
    _step(
        terminal,
        "worlds",
        f"ran the analysis in {plan.worlds.m:,} possible worlds, each another random half of the pool of "
        f"{plan.worlds.n}; one of them, in secret, gives the answer",
    )
    _step(
        terminal,
        "noise",
        f"the least that keeps the cap: about {ratio:.1f} times as much as the answers differ between worlds "
        f"(root mean square over all {plan.outputs.shape[1]} numbers together: {plan.noise.std:.3g})",
    )
    _step(terminal, "release", "the secret world and the noise were drawn, and one noisy answer left")
    _step(terminal, "time", f"{time.perf_counter() - started:.1f} s")
    return plan, release


def _save(files: Files, name: str, *, plan: lc.Plan, release: lc.Release, answer: Answer, limit: lc.caps.Cap) -> None:
    """Certificate as record and page for everybody; for the custodian the report with worlds and exposure."""
    for kind, content in public_files(release, answer).items():
        if kind != "README.txt":
            files.publish(f"{name}-{kind}", content)
    private = custodian_files(plan, answer, [limit], None)
    for kind in ("report.html", "exposure.csv"):
        files.keep(f"{name}-{kind}", private[kind])


@dataclass(frozen=True)
class Files:
    """What the demo writes: custodian's files at once, public ones together at the end."""

    folders: Folders
    published: dict[str, str | bytes] = field(default_factory=dict)

    def publish(self, name: str, content: str | bytes) -> None:
        self.published[name] = content

    def keep(self, name: str, content: str | bytes) -> None:
        self.folders.keep(name, content)

    def close(self) -> None:
        shutil.rmtree(self.folders.public, ignore_errors=True)  # of an earlier demo
        self.folders.publish(self.published)


def _step(terminal: Terminal, name: str, text: str) -> None:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(width=7, style="bold cyan")
    grid.add_column()
    grid.add_row(name, text)
    terminal.out.print(Padding(grid, (0, 2)))


def _print_certificate(terminal: Terminal, certificate: Certificate) -> None:
    title = "Certificate: what the best attacker can do"
    terminal.table(("", "before", "after, at most"), in_short(certificate), title)
    terminal.say(f"[dim]All figures hold together with confidence {certificate.confidence:.7g}.[/dim]")
