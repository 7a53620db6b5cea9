"""FixMatch: a network that learns from a few labels and many rows without any, by agreeing with itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats
from leakcap.kernels.gpu.device import Tensor, load, on
from leakcap.labels.learning.agreement import Agreement, GivenViews, PictureViews, Views
from leakcap.labels.learning.picture_views import Album
from leakcap.simulate.teaching import generator_of

__all__ = ["FixMatch"]

UNKNOWN = -1
CHUNK = 1000  # rows that are predicted at once


class FixMatch(ClassifierMixin, BaseEstimator):
    """A network for a few labels: what it is sure of on a weak view of a row, it is taught on a strong view.

    Sohn et al. 2020, with their settings. Rows are square colour pictures in bytes, whose views are made on the device;
    or anything else, with views of your own. As teacher and student of `PATE(semi_supervised=True)` it makes the
    paper's PATE-FM; give `shape` there, as tables have flat rows.

    Differs from the paper: fewer steps; strong views are about as strong as RandAugment, but made of one resampling and
    a few products for the whole batch; the learning rate follows `seconds` where they end training earlier.

    It promises nothing about the labels that it is given: privacy comes from what privatised them.

    Args:
        module: a `torch.nn.Module` from rows to logits, one column for each class at least. A copy is trained.
        shape: of a picture, `(size, size, 3)`, where rows of `X` are flat.
        weak: your own weak view: a batch of rows, a float32 tensor on the device, to a tensor the module takes.
        strong: your own strong view; both or neither.
        confidence: from which on a prediction is taught.
        aligned: bring guesses to the classes' shares among labelled rows (Berthelot et al. 2020), where those are about
            the shares of all rows: with few labels a class that is guessed too often is taught too often.
        mu: rows without a label for each row with one, in a step.
        batch_size: rows with labels in a step.
        steps: of training, at most.
        seconds: of the fit, at most, from its first line to its last; twenty steps are made however long they take.
        learning_rate: at the first step.
        weight_decay: of weights of more than one dimension.
        unlabelled_weight: of the loss of rows without a label.
        ema_decay: of the running average of weights, which predicts.
        device: "cuda" or "cpu"; a GPU if there is one.
        compiled: compile the network (`torch.compile`): a third faster on a GPU, after half a minute.
        random_state: seed of batches and views; the process's generators go on as if nothing had been drawn.

    Attributes:
        module_: the averaged network.
        classes_: classes of the labelled rows, sorted: the network's first columns.
        n_steps_: steps that were made.
        taught_share_: share of rows without a label that took part in the last steps.
    """

    def __init__(
        self,
        module: Any,
        *,
        shape: tuple[int, int, int] | None = None,
        weak: Callable[[Tensor], Tensor] | None = None,
        strong: Callable[[Tensor], Tensor] | None = None,
        confidence: float = 0.95,
        aligned: bool = False,
        mu: int = 7,
        batch_size: int = 64,
        steps: int = 2**16,
        seconds: float | None = None,
        learning_rate: float = 0.03,
        weight_decay: float = 5e-4,
        unlabelled_weight: float = 1.0,
        ema_decay: float = 0.999,
        device: str | None = None,
        compiled: bool = False,
        random_state: Any = None,
    ) -> None:
        self.module = module
        self.shape = shape
        self.weak = weak
        self.strong = strong
        self.confidence = confidence
        self.aligned = aligned
        self.mu = mu
        self.batch_size = batch_size
        self.steps = steps
        self.seconds = seconds
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.unlabelled_weight = unlabelled_weight
        self.ema_decay = ema_decay
        self.device = device
        self.compiled = compiled
        self.random_state = random_state

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> FixMatch:
        """Learn from all rows; those with the label -1 have none.

        Args:
            X: rows: pictures `(n, size, size, 3)` of 0 to 255, or flat with `shape`; with your own views anything.
            y: labels, -1 where there is none.

        Returns:
            The classifier itself, fitted.

        Raises:
            InputError: a setting is out of range, rows are no pictures and no views are given, cells are missing, no
                row has a label, or the module has fewer columns than there are classes.
            NumericalError: training diverged.
            MissingExtra: torch is not installed.
        """
        began, torch = time.perf_counter(), load()
        self._check()
        where = self._where()
        views = self._views(X, where)
        labels = np.asarray(y)
        if labels.shape != (len(views),):
            raise InputError(f"X has {len(views)} rows: give one label for each, -1 where there is none")
        known = np.flatnonzero(np.array([label != UNKNOWN for label in labels], dtype=bool))
        if not len(known):
            raise InputError("no row has a label: -1 stands for rows without one")
        self.classes_, codes = np.unique(labels[known], return_inverse=True)
        seed = None if self.random_state is None else int(generator_of(self.random_state).randint(2**31))
        some = [where] if where.type == "cuda" else []
        with torch.random.fork_rng(devices=some, enabled=seed is not None):
            if seed is not None:
                torch.manual_seed(seed)
            rows, names = (torch.from_numpy(part).to(where) for part in (known, codes))
            training = Agreement(self, views, rows, names, began=began)
            self.module_ = training.run()
        self.n_steps_, self.taught_share_ = training.made, float(training.taught)
        self._centre = views.album if isinstance(views, PictureViews) else None
        return self

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """The likeliest class.

        Args:
            X: rows, as given to the fit.

        Returns:
            A class for each row.
        """
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def predict_proba(self, X: npt.ArrayLike) -> Floats:
        """Probabilities of the classes.

        Args:
            X: rows, as given to the fit.

        Returns:
            `(rows, classes)`, in the order of `classes_`.
        """
        check_is_fitted(self, "module_")
        torch, where = load(), self._where()
        views = self._views(X, where, like=self._centre)
        self.module_.eval()
        found = []
        with torch.no_grad():
            for start in range(0, len(views), CHUNK):
                rows = torch.arange(start, min(start + CHUNK, len(views)), device=where)
                found.append(self.module_(views.plain(rows))[:, : len(self.classes_)].float().softmax(1).cpu().numpy())
        return np.concatenate(found).astype(np.float64)

    def _check(self) -> None:
        if not isinstance(self.module, load().nn.Module):
            raise InputError("module must be a torch.nn.Module, such as Sequential(Flatten(), LazyLinear(10))")
        if (self.weak is None) != (self.strong is None):
            raise InputError("give both views, weak and strong, or neither")
        checks.probability(confidence=self.confidence)
        checks.fraction(ema_decay=self.ema_decay)
        for name in ("mu", "batch_size", "steps"):
            checks.count(**{name: getattr(self, name)})
        checks.positive(learning_rate=self.learning_rate)
        checks.nonnegative(weight_decay=self.weight_decay)
        checks.nonnegative(unlabelled_weight=self.unlabelled_weight)
        if self.seconds is not None:
            checks.positive(seconds=self.seconds)

    def _where(self) -> Any:
        return on(self.device or ("cuda" if load().cuda.is_available() else "cpu"))

    def _views(self, X: npt.ArrayLike, where: Any, like: Album | None = None) -> Views:
        torch = load()
        rows = np.asarray(X)
        if rows.dtype.kind not in "biuf" or rows.ndim < 2 or not len(rows):
            raise InputError("X must be an array of numbers with a row for each label")
        if rows.dtype.kind == "f" and not np.isfinite(rows).all():
            raise InputError("X has cells that are missing or infinite: fill them first")
        if self.shape is not None:
            if rows[0].size != np.prod(self.shape):
                raise InputError("rows of X have another number of cells than shape says")
            rows = rows.reshape(len(rows), *self.shape)
        if self.weak is not None and self.strong is not None:
            return GivenViews(torch.from_numpy(rows.astype(np.float32)).to(where), self.weak, self.strong)
        if rows.ndim != 4 or rows.shape[3] != 3 or rows.shape[1] != rows.shape[2]:
            raise InputError(
                "rows of X are no square colour pictures (n, size, size, 3): give shape for flat rows, or both views"
            )
        if rows.min() < 0 or rows.max() > 255:
            raise InputError("pictures have values from 0 to 255: bring them there")
        return PictureViews(Album.of(torch.from_numpy(rows.astype(np.uint8)).to(where), like=like))
