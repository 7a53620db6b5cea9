"""Neural networks on privatised labels: two lines of any PyTorch training loop change, the data set and the loss.

    train = lc.labels.PrivateLabels(train, mechanism)   # was: a data set of pairs (features, label)
    criterion = lc.labels.PosteriorLoss()               # was: torch.nn.CrossEntropyLoss()

The loss recomputes the posterior of every label at every step, with the network's current prediction as the prior:
ALIBI's idea, for every mechanism.
"""

from __future__ import annotations

from multiprocessing.context import get_spawning_popen
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap import checks
from leakcap.errors import InputError, MissingExtra
from leakcap.label_certificate import LabelCertificate
from leakcap.labels.mechanism import Mechanism
from leakcap.proofs import proves

__all__ = ["PosteriorLoss", "PrivateLabels"]


class PrivateLabels:
    """A data set of pairs (features, scores): what was observed of each label, as log-likelihoods of the classes.

    `dataset` is any map-style data set of pairs (features, label); its labels are privatised once, here. Or the
    learner never sees labels: then `dataset` holds features alone, and `observed` what `mechanism.privatize` gave.

    Guarantee: that of the mechanism, for whatever is computed from the items. The object itself may still hold the
    labelled data set: it refuses to be saved then.
    """

    def __init__(self, dataset: Any, mechanism: Mechanism, observed: npt.ArrayLike | None = None) -> None:
        self.mechanism = mechanism
        pairs = not _is_tensors(dataset) and len(dataset) > 0 and isinstance(dataset[0], tuple | list)
        self._holds_labels = pairs and len(dataset[0]) > 1
        self._features = dataset.tensors[0] if _is_tensors(dataset) else dataset
        self.observed = mechanism.privatize(_labels(dataset)) if observed is None else np.asarray(observed)
        if len(self.observed) != len(dataset):
            raise InputError("dataset and observed differ in length: one observation belongs to each row of features")
        self._scores = _torch().from_numpy(mechanism.scores(self.observed))

    @property
    def certificate(self) -> LabelCertificate:
        return self.mechanism.certificate(labels=len(self))

    @property
    def scores(self) -> Any:
        """All scores at once, a float32 tensor `(n, n_classes)`: for loops that keep their data on a GPU."""
        return self._scores

    def __len__(self) -> int:
        return len(self._scores)

    def __getitem__(self, row: int) -> tuple[Any, Any]:
        features = self._features[row]
        return features[0] if isinstance(features, tuple | list) else features, self._scores[row]

    def __getstate__(self) -> dict[str, Any]:
        # A worker process of a DataLoader gets its copy while it is being started; that one never reaches a file.
        if self._holds_labels and get_spawning_popen() is None:
            raise InputError(
                "this object still holds the labelled data set and will not be saved: keep .observed and the features"
            )
        return self.__dict__

    def __repr__(self) -> str:
        return f"PrivateLabels({len(self):,} labels, {self.mechanism!r})"


class PosteriorLoss:
    """Cross entropy between a network's logits and the posterior of each label given what was observed.

    `loss(logits, scores)`: the prior is the network's own prediction. Its gradient is that of the likelihood of the
    observations, so that is the value it returns: minus `log sum_c p(observed | c) p(c | x)`, up to a constant. It
    can be watched on held-out observations, at no epsilon. `loss(logits, scores, prior_logits=...)`: the prior comes
    from elsewhere, such as averaged weights or another view of the same picture; it gets no gradient.
    """

    def __init__(self, prior_power: float = 1.0) -> None:
        self.prior_power = checks.nonnegative(prior_power=prior_power)

    @proves("label-learning")
    def __call__(self, logits: Any, scores: Any, prior_logits: Any = None) -> Any:
        torch = _torch()
        if logits.shape != scores.shape:
            raise InputError("logits and scores must have the same shape: a row per label and a column per class")
        predicted = torch.log_softmax(logits.float(), dim=1)
        scores = scores.to(predicted)
        if prior_logits is None and self.prior_power == 1:
            return -torch.logsumexp(scores + predicted, dim=1).mean()
        target = self.posterior(logits if prior_logits is None else prior_logits, scores)
        return -(target * predicted).sum(dim=1).mean()

    def posterior(self, prior_logits: Any, scores: Any) -> Any:
        """Probability of every class given what was observed; no gradient flows through it."""
        torch = _torch()
        prior = torch.log_softmax(prior_logits.detach().float(), dim=1)
        return torch.softmax(scores.to(prior) + self.prior_power * prior, dim=1)


def _labels(dataset: Any) -> npt.NDArray[Any]:
    """The labels of a data set, without loading features where it can be avoided."""
    if _is_tensors(dataset):
        if len(dataset.tensors) < 2:
            raise InputError("this data set has features only: give observed=, or a data set of pairs")
        return np.asarray(dataset.tensors[-1])
    if hasattr(dataset, "targets"):
        return np.asarray(dataset.targets)
    rows = (dataset[row] for row in range(len(dataset)))
    try:
        return np.asarray([label for _, label in rows])
    except (TypeError, ValueError):
        raise InputError("the data set must give pairs (features, label)") from None


def _is_tensors(dataset: Any) -> bool:
    return isinstance(dataset, _torch().utils.data.TensorDataset)


def _torch() -> Any:
    try:
        import torch  # type: ignore[import-not-found]
    except ImportError:
        raise MissingExtra("neural networks need torch: pip install 'leakcap[torch]'") from None
    return torch
