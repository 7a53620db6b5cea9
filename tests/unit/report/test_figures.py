"""Pictures say what the records say: figures come from records and arrays alone."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.patches import Ellipse
from matplotlib.text import Text

from leakcap.certificates.release import CappedFigure, Certificate
from leakcap.errors import InputError
from leakcap.report import figures as plots

CERTIFICATE = Certificate(
    kind="exact",
    mode="exact",
    capped=(CappedFigure("Membership", "took part: at most 55.0%", 0.5, 0.55, 0.548),),
    membership_success=0.548,
    mutual_information=0.2,
    leakage_curve=((0.01, 0.05), (0.1, 0.25), (0.5, 0.72)),
    hockey_sticks=((0.6, 0.004),),
    known_memberships=((1, 0.56),),
    name_a_member_success=0.58,
    worlds=1024,
    units=150,
    rate="1/2",
    design="random halves",
    outputs=4,
    noised_directions=4,
    confidence=1 - 1e-6,
    gamma=1e-6,
    gamma_used=5e-7,
    attempt=1,
    bounds=10,
    draws=(("worlds", 16384),),
    integrated=False,
    price_of_confidence=1.0,
    sampler_distance=1e-12,
    grid_step=1e-9,
    pool_public=(),
    declared_public=(),
    assumptions=(),
    not_promised=(),
    theorems=("leakage-curve",),
    leakcap_version="0",
)
LABELS = ("width (cm)", "height (cm)")


def a_cloud(covariance=((4.0, 1.5), (1.5, 1.0)), name=""):
    worlds = np.random.default_rng(0).normal(size=(64, 2))
    return plots.Cloud(worlds, np.array(covariance), np.array([3.0, -1.0]), np.array([0.5, 0.25]), name)


def drawn(figure):
    """Draw everything: layout and text rendering errors show only now."""
    FigureCanvasAgg(figure).draw()
    return figure


def labelled(ax):
    return {line.get_label(): line for line in ax.get_lines()}


def custodian(figure):
    return plots.CUSTODIAN in figure.get_suptitle()


def test_cloud_shows_every_world_the_release_and_the_whole_pool():
    one = a_cloud(name="cluster 1")
    figure = drawn(plots.cloud([one, a_cloud()], LABELS, "Centres"))
    (ax,) = figure.axes
    assert custodian(figure)
    assert (ax.get_xlabel(), ax.get_ylabel()) == LABELS
    assert np.allclose(ax.collections[0].get_offsets(), one.worlds)
    points = [tuple(line.get_xydata()[0]) for line in ax.get_lines()]
    assert points == 2 * [(0.5, 0.25), (3.0, -1.0)]
    assert "cluster 1" in [text.get_text() for text in ax.texts]


def share_inside(ellipse, points):
    return (np.linalg.norm(ellipse.get_patch_transform().inverted().transform(points), axis=1) <= 1).mean()


def test_ellipse_holds_95_percent_of_the_noise():
    # 40,000 draws: 0.005 is 4.6 standard errors, a false alarm in 10^5 runs (the generator is fixed).
    one = a_cloud()
    (ax,) = plots.cloud([one], LABELS, "").axes
    (ellipse,) = [patch for patch in ax.patches if isinstance(patch, Ellipse)]
    rng = np.random.default_rng(1)
    releases = rng.multivariate_normal(one.released, one.noise, size=40_000)
    assert share_inside(ellipse, releases) == pytest.approx(0.95, abs=0.005)
    # Planted fault: the ellipse of a covariance with its axes exchanged.
    exchanged = rng.multivariate_normal(one.released, one.noise[::-1, ::-1], size=40_000)
    assert share_inside(ellipse, exchanged) < 0.9


def test_projection_keeps_points_and_noise_together():
    rng = np.random.default_rng(2)
    outputs, factor, axes = rng.normal(size=(30, 5)), rng.normal(size=(5, 5)), rng.normal(size=(2, 5))
    one = plots.Cloud.seen(outputs, factor @ factor.T, outputs[3], outputs[4], axes, offset=(1, 2), name="x")
    assert np.allclose(one.worlds[3], one.released)
    assert np.allclose(one.worlds[4], one.whole_pool)
    assert np.allclose(one.worlds, outputs @ axes.T + [1, 2])
    assert np.allclose(one.noise, (axes @ factor) @ (axes @ factor).T)


def test_axes_that_do_not_fit_the_outputs_are_refused():
    with pytest.raises(InputError, match="two rows of 5 numbers"):
        plots.Cloud.seen(np.zeros((3, 5)), np.eye(5), np.zeros(5), np.zeros(5), np.eye(4)[:2])


def test_at_a_glance_compares_coin_flip_release_and_exact_answer():
    figure = drawn(plots.at_a_glance([a_cloud()], LABELS, CERTIFICATE, exact_success=1.0))
    assert custodian(figure)
    _, right = figure.axes
    assert [bar.get_height() for bar in right.patches] == [0.5, 0.548, 1.0]
    assert {"50 %", "≤ 54.8 %", "100 %"} <= {text.get_text() for text in right.texts}


@pytest.mark.parametrize(("success", "nats", "curve"), [(0.548, 0.2, CERTIFICATE.leakage_curve), (0.8, 2.0, ())])
def test_texts_do_not_overlap_at_a_tight_and_a_loose_cap(success, nats, curve):
    certificate = replace(
        CERTIFICATE, membership_success=success, mutual_information=nats, leakage_curve=curve, hockey_sticks=()
    )
    figures = [
        plots.cloud([a_cloud()], LABELS, "Means of the data"),
        plots.at_a_glance([a_cloud()], LABELS, certificate, 1.0),
    ]
    for figure in figures:
        drawn(figure)
        texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text()]
        legends = [ax.get_legend() for ax in figure.axes if ax.get_legend()]
        inside = {text for legend in legends for text in legend.findobj(Text)}
        ticks = {label for ax in figure.axes for axis in (ax.xaxis, ax.yaxis) for label in axis.get_ticklabels()}
        boxes = [part.get_window_extent() for part in [*legends, *(set(texts) - inside - ticks)]]
        for i, one in enumerate(boxes):
            assert not any(one.overlaps(other) for other in boxes[i + 1 :])


def test_pictures_need_no_pyplot():
    code = "import sys, leakcap.report.figures; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
