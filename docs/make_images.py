"""Make the pictures of the README: `python docs/make_images.py`. Seeded, so that everybody gets the same ones."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_iris

import leakcap as lc
from leakcap.audit.noiseless import exact_success
from leakcap.report import figures as plots

IMAGES = Path(__file__).parent / "images"


def demo() -> bytes:
    """The product at a glance: the means of the Iris data."""
    data = load_iris()
    plan = lc.plan(lambda rows: rows.mean(axis=0), data.data, cap=lc.membership(0.55), worlds=1024, seed=7)
    axes = np.eye(4)[[2, 1]]
    cloud = plots.Cloud.seen(plan.outputs, plan.noise.covariance(), plan.release().value, plan.summary().answer, axes)
    exact = exact_success(plan.outputs, plan.worlds.masks())
    labels = "mean petal length (cm)", "mean sepal width (cm)"
    picture = io.BytesIO()
    plots.at_a_glance([cloud], labels, plan.certificate, exact).savefig(picture, format="png", dpi=150)
    small = io.BytesIO()
    # A palette halves the file; the picture has few colours.
    Image.open(picture).convert("RGB").quantize(128, dither=Image.Dither.NONE).save(small, format="png", optimize=True)
    return small.getvalue()


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    (IMAGES / "demo.png").write_bytes(demo())
