"""Data and small models to learn from privatised labels."""

from __future__ import annotations

from typing import Any

from sklearn import datasets as toys
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import leakcap as lc
from leakcap.labels.learning.classifier import Classifier

LINEAR = LogisticRegression(max_iter=200)
BLOBS, KINDS = toys.make_blobs(600, centers=3, random_state=0, cluster_std=0.8)


def fitted(epsilon: float, **settings: Any) -> Classifier:
    mechanism = lc.labels.auto(epsilon, 3)
    return Classifier(clone(LINEAR), mechanism, random_state=0, **settings).fit_private(BLOBS, KINDS)
