"""What a model that was trained on an encoded set says: scores of classes, whatever kind of model it is."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from leakcap.errors import InputError
from leakcap.ground.arrays import Floats, Ints

__all__ = ["as_classes", "checked_scores", "scores_of"]

AT_ONCE = 8192  # rows


def as_classes(Z: Any, Y: Any) -> tuple[Floats, Ints, Floats]:
    """An encoded set for classifiers that take one class a row: every row once for each of its two classes.

    The server may use it, as everything else that it does with an encoded set; it needs no key.

    Args:
        Z: the encoded rows.
        Y: their labels, shares of the classes.

    Returns:
        Rows, the class of each as a whole number, and weights for `fit(rows, classes, sample_weight=weights)`.

    Examples:
        >>> import leakcap as lc
        >>> rows, classes, weights = lc.obfuscation.as_classes([[1.0], [2.0]], [[0.5, 0.5], [0.0, 1.0]])
        >>> classes.tolist(), weights.tolist()
        ([0, 1, 1], [0.5, 0.5, 1.0])
    """
    rows, shares = np.asarray(Z, dtype=np.float64), np.asarray(Y, dtype=np.float64)
    if shares.ndim != 2 or rows.ndim != 2 or len(rows) != len(shares):
        raise InputError("give the encoded rows and their labels as encode() returned them")
    place, classes = np.nonzero(shares)
    return rows[place], classes, shares[place, classes]


def scores_of(model: Any, encoded: Floats, classes: int) -> Floats:
    """A score for each of `classes` classes, as the server numbers them, and for every encoded row."""
    parts = [_scores(model, encoded[start : start + AT_ONCE], classes) for start in range(0, len(encoded), AT_ONCE)]
    found = np.concatenate(parts)
    if not np.isfinite(found).all():
        raise InputError("the model gives no finite scores: it was not trained, or its training broke down")
    return found


def _scores(model: Any, encoded: Floats, classes: int) -> Floats:
    if _is_module(model):
        found = _of_module(model, encoded)
    elif hasattr(model, "predict_proba"):
        found = _of_classes(np.asarray(model.predict_proba(encoded), dtype=np.float64), model, classes)
    elif hasattr(model, "predict"):
        found = np.asarray(model.predict(encoded))
    elif callable(model):
        found = np.asarray(model(encoded))
    else:
        raise InputError("the model needs predict_proba or predict, or must be a torch module or a function")
    return checked_scores(found, classes, len(encoded))


def checked_scores(found: Any, classes: int, rows: int) -> Floats:
    """Scores with a column for each class; single predictions become 1 for the class that was named."""
    scores = np.asarray(found)
    if scores.dtype.kind not in "biuf":
        raise InputError("the model's answers must be numbers: scores of the classes, or their numbers")
    if scores.ndim == 2 and scores.shape == (rows, 1) and classes > 1:
        scores = scores[:, 0]
    if scores.ndim == 1 and len(scores) == rows:
        named = scores.astype(np.int64)
        if (named != scores).any() or (named < 0).any() or (named >= classes).any():
            raise InputError(f"the model must name classes by whole numbers from 0 to {classes - 1}, or score them all")
        return np.eye(classes)[named]
    if scores.ndim != 2 or len(scores) != rows or scores.shape[1] < classes:
        raise InputError(f"the model must give {classes} scores for every row: it was trained on another encoded set")
    return np.asarray(scores[:, :classes], dtype=np.float64)


def _of_classes(found: Floats, model: Any, classes: int) -> Floats:
    """Columns at the places of their classes: a model may have seen only some of them."""
    seen = np.asarray(getattr(model, "classes_", np.arange(found.shape[-1])))
    if found.ndim != 2 or seen.ndim != 1 or seen.dtype.kind not in "biuf" or found.shape[1] != len(seen):
        return found
    places = seen.astype(np.int64)
    if (places < 0).any() or (places != seen).any():
        return found
    scores = np.zeros((len(found), max(classes, int(places.max()) + 1)))
    scores[:, places] = found
    return scores


def _is_module(model: Any) -> bool:
    torch = sys.modules.get("torch")  # whoever has a module has torch
    return torch is not None and isinstance(model, torch.nn.Module)


def _of_module(model: Any, encoded: Floats) -> Floats:
    import torch  # type: ignore[import-not-found,unused-ignore]

    trained = model.training
    one = next(model.parameters(), torch.zeros(1))
    model.eval()
    try:
        with torch.no_grad():
            return model(torch.as_tensor(encoded, dtype=one.dtype, device=one.device)).double().cpu().numpy()
    finally:
        model.train(trained)
