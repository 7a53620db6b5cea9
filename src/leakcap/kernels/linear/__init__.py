"""Linear models in all worlds at once: logistic regression, support vectors, ridge."""

from leakcap.kernels.linear.least_squares import ridge
from leakcap.kernels.linear.softmax import ABSENT, logistic
from leakcap.kernels.linear.svm import linear_svm

__all__ = ["ABSENT", "linear_svm", "logistic", "ridge"]
