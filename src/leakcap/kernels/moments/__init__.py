"""Sums, moments, principal components and quantiles in all worlds at once."""

from leakcap.kernels.moments.components import aligned, pca
from leakcap.kernels.moments.entry import Moments, covariances, grams, means, moments, shares, variances
from leakcap.kernels.moments.order import quantiles
from leakcap.kernels.moments.sums import masked_sums, rows_in, sums_of

__all__ = [
    "Moments",
    "aligned",
    "covariances",
    "grams",
    "masked_sums",
    "means",
    "moments",
    "pca",
    "quantiles",
    "rows_in",
    "shares",
    "sums_of",
    "variances",
]
