"""The estimators that people already use, private by changing the import."""

from leakcap.estimators.boosting import HistGradientBoostingClassifier
from leakcap.estimators.classification import LinearSVC, LogisticRegression
from leakcap.estimators.distilled import Distilled
from leakcap.estimators.forest import RandomForestClassifier
from leakcap.estimators.kmeans import KMeans
from leakcap.estimators.moments import Covariance, Mean, StandardScaler
from leakcap.estimators.naive_bayes import GaussianNB
from leakcap.estimators.nearest_mean import NearestClassMean
from leakcap.estimators.pca import PCA
from leakcap.estimators.private import Private
from leakcap.estimators.regression import LinearRegression, Ridge
from leakcap.estimators.tradeoff import Curve, privacy_utility_curve
from leakcap.estimators.tree import DecisionTreeClassifier
from leakcap.sessions.networks.estimator import NeuralNetwork

__all__ = [
    "PCA",
    "Covariance",
    "Curve",
    "DecisionTreeClassifier",
    "Distilled",
    "GaussianNB",
    "HistGradientBoostingClassifier",
    "KMeans",
    "LinearRegression",
    "LinearSVC",
    "LogisticRegression",
    "Mean",
    "NearestClassMean",
    "NeuralNetwork",
    "Private",
    "RandomForestClassifier",
    "Ridge",
    "StandardScaler",
    "privacy_utility_curve",
]
