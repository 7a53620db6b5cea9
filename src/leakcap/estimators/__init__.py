"""The estimators that people already use, private by changing the import."""

from leakcap.estimators.kmeans import KMeans

__all__ = ["KMeans"]
