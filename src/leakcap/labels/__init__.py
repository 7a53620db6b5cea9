"""Private labels: features are known, labels are secret. Privatise them once, then learn as you like."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from leakcap.labels.advice import Advice, advise
from leakcap.labels.mechanisms.auto import auto
from leakcap.labels.mechanisms.base import Mechanism
from leakcap.labels.mechanisms.bins import RROnBins
from leakcap.labels.mechanisms.gaussian import Gaussian
from leakcap.labels.mechanisms.krr import KRR
from leakcap.labels.mechanisms.laplace import Laplace
from leakcap.labels.mechanisms.simplex import project
from leakcap.labels.mechanisms.subset import SubsetSelection
from leakcap.labels.mechanisms.unary import UnaryBits
from leakcap.labels.mechanisms.with_prior import RRWithPrior

if TYPE_CHECKING:
    from leakcap.labels.learning.classifier import Classifier
    from leakcap.labels.learning.data_dependent import data_dependent
    from leakcap.labels.learning.fixmatch import FixMatch
    from leakcap.labels.learning.linear_teacher import LinearTeacher
    from leakcap.labels.learning.mlp_teacher import MLPTeacher
    from leakcap.labels.learning.neural import PosteriorLoss, PrivateLabels
    from leakcap.labels.learning.pate import PATE
    from leakcap.labels.learning.two_stage import TwoStage
    from leakcap.labels.learning.vote_costs import VoteCosts
    from leakcap.labels.statistics.lda import LDA
    from leakcap.labels.statistics.logistic import Logistic
    from leakcap.labels.statistics.naive_bayes import NaiveBayes
    from leakcap.labels.statistics.ridge import Ridge

__all__ = [
    "KRR",
    "LDA",
    "PATE",
    "Advice",
    "Classifier",
    "FixMatch",
    "Gaussian",
    "Laplace",
    "LinearTeacher",
    "Logistic",
    "MLPTeacher",
    "Mechanism",
    "NaiveBayes",
    "PosteriorLoss",
    "PrivateLabels",
    "RROnBins",
    "RRWithPrior",
    "Ridge",
    "SubsetSelection",
    "TwoStage",
    "UnaryBits",
    "VoteCosts",
    "advise",
    "auto",
    "data_dependent",
    "project",
]

# Loaded on first use: scikit-learn and torch are not needed to privatise labels.
_HOMES = {
    "Classifier": "learning.classifier",
    "FixMatch": "learning.fixmatch",
    "LDA": "statistics.lda",
    "LinearTeacher": "learning.linear_teacher",
    "Logistic": "statistics.logistic",
    "MLPTeacher": "learning.mlp_teacher",
    "NaiveBayes": "statistics.naive_bayes",
    "PATE": "learning.pate",
    "PosteriorLoss": "learning.neural",
    "PrivateLabels": "learning.neural",
    "Ridge": "statistics.ridge",
    "TwoStage": "learning.two_stage",
    "VoteCosts": "learning.vote_costs",
    "data_dependent": "learning.data_dependent",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'leakcap.labels' has no attribute {name!r}")
    found = getattr(import_module(f"leakcap.labels.{_HOMES[name]}"), name)
    globals()[name] = found
    return found
