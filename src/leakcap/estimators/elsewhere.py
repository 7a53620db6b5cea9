"""Settings that a private estimator does not have: where they go instead, or which plain estimator has them."""

from __future__ import annotations

import inspect

from sklearn import cluster, decomposition, linear_model, naive_bayes, preprocessing, svm

__all__ = ["OPTIONS", "meant_by"]

# Further arguments of `leakcap.plan`.
OPTIONS = {
    "backend",
    "bounds",
    "checkpoint",
    "clip",
    "confidence",
    "design",
    "draws",
    "floor",
    "ledger",
    "memory",
    "mode",
    "name",
    "progress",
    "public",
} | {
    "rate",
    "rows_per_unit",
    "shape",
    "workers",
}
# Estimators of the same name that Private takes, with the module that people import them from.
PLAIN = {
    kind.__name__: (module.__name__, kind)
    for module, kind in (
        (cluster, cluster.KMeans),
        (decomposition, decomposition.PCA),
        (linear_model, linear_model.LinearRegression),
        (linear_model, linear_model.LogisticRegression),
        (linear_model, linear_model.Ridge),
        (naive_bayes, naive_bayes.GaussianNB),
        (preprocessing, preprocessing.StandardScaler),
        (svm, svm.LinearSVC),
    )
}


def meant_by(estimator: str, setting: str) -> str:
    """What to write in place of a setting that the estimator of this name does not have; nothing where that is open."""
    if setting in OPTIONS:
        return f"it goes into options={{{setting!r}: ...}}"
    if setting == "unit":
        return "whose row it is goes to fit(X, y, unit=...)"
    if setting == "seed":
        return "it is called random_state here, and makes the fit a simulation"
    return _plain(estimator, setting)


def _plain(estimator: str, setting: str) -> str:
    module, kind = PLAIN.get(estimator, ("", None))
    if kind is None or setting not in inspect.signature(kind).parameters:
        return ""
    return (
        f"it is a setting of scikit-learn's own {estimator}. Leave it out, or wrap that one: "
        f"Private({module}.{estimator}({setting}=...), cap=...)"
    )
