"""Data for two stages."""

from __future__ import annotations

from sklearn import datasets as toys
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression

LINEAR = LogisticRegression(max_iter=200)
X, y = toys.load_digits(return_X_y=True)
X = PCA(16, random_state=0).fit_transform(X / 16)
BLOBS, KINDS = toys.make_blobs(600, centers=4, random_state=3, cluster_std=1.0)
