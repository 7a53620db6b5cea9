"""K-Means in all worlds at once."""

from leakcap.kernels.kmeans.entry import Weights, kmeans

__all__ = ["Weights", "kmeans"]
