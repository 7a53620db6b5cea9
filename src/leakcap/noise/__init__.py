"""Noise: its shape, its scale for a cap, and its secure drawing."""

from leakcap.noise.calibrate import Calibrated, calibrate
from leakcap.noise.entropy import GRID, OperatingSystem, Randomness, Seeded, sampler_distance
from leakcap.noise.exponential import Exponential
from leakcap.noise.gaussian import Noise, released_vector
from leakcap.noise.laws import NORMAL, Law, LawOf
from leakcap.noise.shapes import SHAPES, information_ceiling, shape_variances
from leakcap.noise.subspace import Subspace, subspace

__all__ = [
    "GRID",
    "NORMAL",
    "SHAPES",
    "Calibrated",
    "Exponential",
    "Law",
    "LawOf",
    "Noise",
    "OperatingSystem",
    "Randomness",
    "Seeded",
    "Subspace",
    "calibrate",
    "information_ceiling",
    "released_vector",
    "sampler_distance",
    "shape_variances",
    "subspace",
]
