"""Pictures of the demo's releases, as PNG. Only drawing them needs matplotlib."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

import leakcap as lc
from leakcap.audit.noiseless import exact_success
from leakcap.ground.arrays import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from leakcap.report.figures import Cloud

__all__ = ["Angle", "Scene", "draw_at_a_glance", "draw_worlds"]


@dataclass(frozen=True, eq=False)
class Angle:
    """Outputs along two axes, `(2, d)`, moved by an offset."""

    axes: Floats
    offset: tuple[float, float] = (0.0, 0.0)
    name: str = ""


@dataclass(frozen=True, eq=False)
class Scene:
    """A release and how to look at it; custodian side."""

    title: str
    plan: lc.Plan
    released: Floats
    labels: tuple[str, str]
    angles: tuple[Angle, ...]


def draw_worlds(scene: Scene) -> bytes:
    """The released answer among the answers of all worlds."""
    from leakcap.report import figures

    return _png(figures.cloud(_clouds(scene), scene.labels, scene.title))


def draw_at_a_glance(scene: Scene) -> bytes:
    """The same beside the attacker's success, with the noise and without."""
    from leakcap.report import figures

    success = exact_success(scene.plan.outputs, scene.plan.worlds.masks())
    return _png(figures.at_a_glance(_clouds(scene), scene.labels, scene.plan.certificate, success))


def _clouds(scene: Scene) -> list[Cloud]:
    from leakcap.report.figures import Cloud

    covariance, whole_pool = scene.plan.noise.covariance(), scene.plan.summary().answer
    return [
        Cloud.seen(
            outputs=scene.plan.outputs,
            covariance=covariance,
            released=scene.released,
            whole_pool=whole_pool,
            axes=angle.axes,
            offset=angle.offset,
            name=angle.name,
        )
        for angle in scene.angles
    ]


def _png(figure: Figure) -> bytes:
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=150)
    return picture.getvalue()
