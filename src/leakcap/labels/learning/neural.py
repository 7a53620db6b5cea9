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

from leakcap.certificates.labels import LabelCertificate
from leakcap.errors import InputError, MissingExtra
from leakcap.ground import checks
from leakcap.ground.proofs import proves
from leakcap.labels.mechanisms.base import Mechanism

__all__ = ["PosteriorLoss", "PrivateLabels"]


class PrivateLabels:
    """A data set of pairs (features, scores): what was observed of each label, as log-likelihoods of the classes.

    Guarantee: that of the mechanism, for whatever is computed from the items. The object itself may still hold the
    labelled data set: it refuses to be saved then.

    Args:
        dataset: any map-style data set of pairs (features, label); the labels are privatised once, here. Where the
            learner never sees labels: a data set of features alone.
        mechanism: what privatises the labels, or has privatised them.
        observed: what `mechanism.privatize` gave, for a data set of features alone.

    Attributes:
        mechanism: as given.
        observed: the observations, which may be kept and published.

    Raises:
        InputError: the data set does not give what is expected, or differs from `observed` in length.
        MissingExtra: torch is not installed.
    """

    def __init__(self, dataset: Any, mechanism: Mechanism, observed: npt.ArrayLike | None = None) -> None:
        self.mechanism = mechanism
        self._features = _features(dataset, alone=observed is not None)
        self._holds_labels = observed is None and self._features is dataset
        self.observed = mechanism.privatize(_labels(dataset)) if observed is None else np.asarray(observed)
        if len(self.observed) != len(dataset):
            raise InputError("dataset and observed differ in length: one observation belongs to each row of features")
        self._scores = _torch().from_numpy(mechanism.scores(self.observed))

    @property
    def certificate(self) -> LabelCertificate:
        """What the best attacker can learn of one label, for labels of an even prior."""
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

    `loss(logits, scores)` takes the network's own prediction as the prior. Its gradient is that of the likelihood of
    the observations, so it returns that value: minus `log sum_c p(observed | c) p(c | x)`, up to a constant. The value
    can be watched on held-out observations, at no epsilon. `loss(logits, scores, prior_logits=...)` takes the prior
    from elsewhere, such as averaged weights or another view of the same picture; that prior gets no gradient, and the
    value is the cross entropy.

    Args:
        prior_power: power to which the prior is raised, at least 0. Above 1, predictions count for more than Bayes'
            rule says.
    """

    def __init__(self, prior_power: float = 1.0) -> None:
        self.prior_power = checks.nonnegative(prior_power=prior_power)

    @proves("label-learning")
    def __call__(self, logits: Any, scores: Any, prior_logits: Any = None) -> Any:
        """The loss of a batch.

        Args:
            logits: what the network predicts, `(batch, n_classes)`.
            scores: what was observed, of the same shape, from `PrivateLabels`.
            prior_logits: predictions to take as the prior instead of `logits`.

        Returns:
            The mean over the batch, in nats; a tensor with a gradient.

        Raises:
            InputError: the shapes differ.
        """
        torch = _torch()
        if logits.shape != scores.shape:
            raise InputError("logits and scores must have the same shape: a row per label and a column per class")
        predicted = torch.log_softmax(logits.float(), dim=1)
        scores = scores.to(predicted)
        if prior_logits is None and self.prior_power == 1:
            return -torch.logsumexp(scores + predicted, dim=1).mean()
        target = self.posterior(logits if prior_logits is None else prior_logits, scores)
        return -(target * predicted).sum(dim=1).mean()

    def to(self, *_: Any, **__: Any) -> PosteriorLoss:
        """The loss itself: it has no weights, and works where its input is."""
        return self

    def posterior(self, prior_logits: Any, scores: Any) -> Any:
        """Probability of every class given what was observed; no gradient flows through it.

        Args:
            prior_logits: predictions that serve as the prior, `(batch, n_classes)`.
            scores: what was observed, of the same shape, from `PrivateLabels`.

        Returns:
            A tensor of that shape; every row adds to 1.

        Raises:
            InputError: the shapes differ.
        """
        torch = _torch()
        if prior_logits.shape != scores.shape:
            raise InputError("prior_logits and scores must have the same shape: a row per label, a column per class")
        prior = torch.log_softmax(prior_logits.detach().float(), dim=1)
        return torch.softmax(scores.to(prior) + self.prior_power * prior, dim=1)


def _features(dataset: Any, alone: bool) -> Any:
    """The object that items are taken from: the features alone, wherever they can be had without the labels."""
    if len(dataset) == 0:
        raise InputError("the data set is empty")
    if _is_tensors(dataset):
        if len(dataset.tensors) != 2 - alone:
            raise InputError(
                "with observed= the data set must hold one tensor, the features"
                if alone
                else "the data set must hold two tensors, features and labels; for features only, give observed="
            )
        kept = dataset.tensors[0]
        # A view of a larger table would carry that table along, labels and all.
        return kept if kept.untyped_storage().nbytes() == kept.numel() * kept.element_size() else kept.clone()
    first = dataset[0]
    if alone and isinstance(first, tuple | list) and len(first) != 1:
        raise InputError("with observed= the data set must give features alone, not pairs")
    if not alone and not (isinstance(first, tuple | list) and len(first) == 2):
        raise InputError("the data set must give pairs (features, label)")
    return dataset


def _labels(dataset: Any) -> npt.NDArray[Any]:
    """The labels of a data set of pairs, without loading features where it can be avoided."""
    if _is_tensors(dataset):
        return np.asarray(dataset.tensors[1])
    if hasattr(dataset, "targets") and not _changes_targets(dataset):
        return np.asarray(dataset.targets)
    return np.asarray([dataset[row][1] for row in range(len(dataset))])


def _changes_targets(dataset: Any) -> bool:
    """Whether items may have other labels than `targets` lists (torchvision's two ways to say so)."""
    both = getattr(dataset, "transforms", None)
    whole = None if both is None else getattr(both, "target_transform", both)
    return whole is not None or getattr(dataset, "target_transform", None) is not None


def _is_tensors(dataset: Any) -> bool:
    return isinstance(dataset, _torch().utils.data.TensorDataset)


def _torch() -> Any:
    try:
        import torch  # type: ignore[import-not-found]
    except ImportError:
        raise MissingExtra("neural networks need torch: pip install 'leakcap[torch]'") from None
    return torch
