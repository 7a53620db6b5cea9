"""Sums, moments, principal components and quantiles in all worlds at once."""

from leakcap.kernels.moments.blocks import bytes_a_world, from_moments, in_blocks
from leakcap.kernels.moments.components import aligned, leading, pca
from leakcap.kernels.moments.entry import Moments, covariances, grams, means, moments, shares, variances
from leakcap.kernels.moments.order import quantiles
from leakcap.kernels.moments.scatter import moments_cost
from leakcap.kernels.moments.sums import masked_sums, rows_in, sums_of

__all__ = [
    "Moments",
    "aligned",
    "bytes_a_world",
    "covariances",
    "from_moments",
    "grams",
    "in_blocks",
    "leading",
    "masked_sums",
    "means",
    "moments",
    "moments_cost",
    "pca",
    "quantiles",
    "rows_in",
    "shares",
    "sums_of",
    "variances",
]
