"""The same kernels on a GPU, through torch. Importing this loads no torch: the first call does.

Every function takes `device`: "cuda", "cuda:1", or "cpu", which runs the same code for those who have no GPU.
"""

from leakcap.kernels.gpu.ensemble import ensemble, ensemble_apart
from leakcap.kernels.gpu.kmeans import kmeans
from leakcap.kernels.gpu.leakage import UnitCapitals, UnitSums, unit_capitals, unit_sums
from leakcap.kernels.gpu.mlp import mlp, unflatten
from leakcap.kernels.gpu.moments import covariances, masked_sums, means
from leakcap.kernels.gpu.pca import pca
from leakcap.kernels.gpu.ridge import ridge

__all__ = [
    "UnitCapitals",
    "UnitSums",
    "covariances",
    "ensemble",
    "ensemble_apart",
    "kmeans",
    "masked_sums",
    "means",
    "mlp",
    "pca",
    "ridge",
    "unflatten",
    "unit_capitals",
    "unit_sums",
]
