"""Private labels: features are known, labels are secret. Privatise them once, then learn as you like."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from leakcap.labels.bins import RROnBins
from leakcap.labels.choice import auto
from leakcap.labels.gaussian import Gaussian
from leakcap.labels.krr import KRR
from leakcap.labels.laplace import Laplace
from leakcap.labels.mechanism import Mechanism
from leakcap.labels.simplex import project
from leakcap.labels.subset import SubsetSelection
from leakcap.labels.unary import UnaryBits
from leakcap.labels.with_prior import RRWithPrior

if TYPE_CHECKING:
    from leakcap.labels.classifier import Classifier
    from leakcap.labels.neural import PosteriorLoss, PrivateLabels
    from leakcap.labels.stages import TwoStage

__all__ = [
    "KRR",
    "Classifier",
    "Gaussian",
    "Laplace",
    "Mechanism",
    "PosteriorLoss",
    "PrivateLabels",
    "RROnBins",
    "RRWithPrior",
    "SubsetSelection",
    "TwoStage",
    "UnaryBits",
    "auto",
    "project",
]

# Loaded on first use: scikit-learn and torch are not needed to privatise labels.
_HOMES = {"Classifier": "classifier", "PosteriorLoss": "neural", "PrivateLabels": "neural", "TwoStage": "stages"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'leakcap.labels' has no attribute {name!r}")
    found = getattr(import_module(f"leakcap.labels.{_HOMES[name]}"), name)
    globals()[name] = found
    return found
