"""All worlds at once: a kernel computes what a function returns in every world without running it in each."""

from leakcap.kernels import moments
from leakcap.kernels.moments import masked_sums, quantiles
from leakcap.kernels.offers import Costs, Kernel, deviation_of, forecast_of, kernel, kernel_of, offers, tolerance_of

__all__ = [
    "Costs",
    "Kernel",
    "deviation_of",
    "forecast_of",
    "kernel",
    "kernel_of",
    "masked_sums",
    "moments",
    "offers",
    "quantiles",
    "tolerance_of",
]
