"""Any torch module as an estimator that is fitted in a session."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.custody.fingerprint import fingerprint
from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats
from leakcap.kernels.gpu.device import Tensor, load
from leakcap.sessions.fitting import Fitting
from leakcap.sessions.networks.gradients import RowGradients
from leakcap.sessions.networks.modules import module_print, refuse_module
from leakcap.sessions.networks.targets import (
    TargetRows,
    codes_of,
    different_classes,
    middle_and_half,
    numbers_of_cells,
)
from leakcap.sessions.networks.training import Inputs, Steps, asked_count, asked_inputs, trained_weights

__all__ = ["NeuralNetwork"]

LOSSES = ("cross_entropy", "mse")
CLIP, CLIP_OF_NUMBERS = 0.05, 0.5
TOGETHER = 4096  # rows that are predicted at a time


@dataclass(eq=False)
class NeuralNetwork:
    """Any torch module, trained in a session by noised sums over people of gradients that are cut row by row.

    `leakcap.Session.fit` takes it, or a bare module, which is then trained with the settings below. The module stays as
    it is; its weights are the start, so they must not come from the data. Weights that need no gradient keep their
    values, and so do buffers.

    Guarantee: that of the session, for the trained weights and all that they predict. What a row brings to a step
    follows from that row and earlier answers alone, and is cut to `clip`.

    Args:
        module: takes rows of numbers, `(rows, columns)`; `torch.nn.Unflatten` in front makes pictures of them. Layers
            that look at several rows at once or at chance (batch norm, dropout) are refused.
        loss: "cross_entropy", for as many outputs as there are classes; "mse", squared errors of one output; or a
            function `(outputs, targets)` of one row, such as `torch.nn.HuberLoss()`. Neither it nor the module may
            leave anything of what it sees elsewhere.
        classes: that there may be, known without the data; pool caps and analysts need them. None: those of the pool.
        target_bounds: `(low, high)` of a target of numbers, known without the data. The module learns it from -1 to 1,
            `predict` gives it as it was.
        steps: how many gradients are asked for, each for its part of the share.
        learning_rate: the noise that all steps together leave in what a neuron adds up.
        clip: the most length of a row's gradient, for weights in units of one over the root of a neuron's inputs. None:
            .05 for classes, .5 for numbers.
        scale: whether features are moved about 0 and to a size of 1, by declarations and their noised mean, which takes
            3 % of the share. False: the module gets them as they are.

    Attributes:
        module_: a copy of the module with the trained weights, on the CPU. It takes what `inputs` makes of features.
        classes_: in the order of the outputs, where there are any.
        inputs_: how features are scaled.
        feature_names_in_: names of the columns.
        certificate_: what the session guarantees; may be published.
    """

    module: Any
    _: KW_ONLY
    loss: str | Callable[[Any, Any], Any] = "cross_entropy"
    classes: Any = None
    target_bounds: tuple[float, float] | None = None
    steps: int = 40
    learning_rate: float = 1.0
    clip: float | None = None
    scale: bool = True
    module_: Any = field(default=None, init=False, repr=False)
    classes_: npt.NDArray[Any] | None = field(default=None, init=False, repr=False)
    inputs_: Inputs | None = field(default=None, init=False, repr=False)
    feature_names_in_: tuple[str, ...] = field(default=(), init=False, repr=False)
    certificate_: Any = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        refuse_module(self.module)
        if not callable(self.loss):
            checks.choice(LOSSES, loss=self.loss)
        if self.loss == "mse" and (self.target_bounds is None or self.classes is not None):
            raise InputError("loss='mse' is for numbers: give target_bounds=(low, high), known without the data")
        middle_and_half(self.target_bounds)
        if self.classes is not None:
            different_classes(self.classes)
        self._steps()

    @property
    def takes_any_features(self) -> bool:
        """Whether features need no bounds: what each row brings is cut all the same."""
        return not self.scale

    def fit_in_session(self, fitting: Fitting) -> NeuralNetwork:
        """A trained copy: `leakcap.Session.fit` calls it.

        Args:
            fitting: the rows, and a way to ask for sums over people.

        Returns:
            The trained copy.

        Raises:
            InputError: the module does not suit the columns or the classes, or is too large for a session.
        """
        made = type(self)(**self._settings)
        made.feature_names_in_ = fitting.names
        rows = made._rows(fitting)
        seen = replace(self, loss=copy.deepcopy(self.loss))  # a loss may keep what it sees, and is published as it was
        slopes = RowGradients(self.module, seen._row_loss, len(fitting.names), codes=made._has_classes)
        made._refuse_size(slopes, fitting)
        made.inputs_ = (asked_inputs if self.scale else asked_count)(fitting, rows)
        made.module_ = slopes.module(trained_weights(fitting, rows, made.inputs_, slopes=slopes, steps=self._steps()))
        return made

    def told_in_session(self) -> dict[str, Any]:
        """What tells this fit from others, the same in every process.

        Returns:
            The settings in words; for module, weights and functions their fingerprints.
        """
        loss = self.loss if isinstance(self.loss, str) else fingerprint(self.loss)[:16]
        return {**self._settings, "module": f"{type(self.module).__name__} {module_print(self.module)}", "loss": loss}

    def inputs(self, X: Any) -> Any:
        """What the module is given for rows of features.

        Args:
            X: rows and columns, as the session had them.

        Returns:
            A tensor `(rows, columns)`.
        """
        if self.inputs_ is None:
            raise InputError("this network is not trained yet: give it to session.fit, which returns a trained one")
        names = list(self.feature_names_in_)
        cells = np.asarray(X[names] if hasattr(X, "columns") else X, dtype=np.float64)
        if cells.ndim != 2 or cells.shape[1] != len(names):
            raise InputError(f"the module was trained on rows of {len(names)} columns: X has the shape {cells.shape}")
        learnt = next(value for value in self.module_.parameters() if value.requires_grad)
        return load().from_numpy(self.inputs_.of(cells)).to(learnt.dtype)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The likeliest class of each row, or its number.

        Args:
            X: rows and columns, as the session had them.

        Returns:
            One entry for each row; where the module makes several numbers and there are no classes, all of them.
        """
        found = self._outputs(X)
        if self.classes_ is not None:
            return np.asarray(self.classes_[found.reshape(len(found), -1).argmax(axis=1)])
        middle, half = middle_and_half(self.target_bounds)
        return middle + half * (found[:, 0] if found.shape[1:] == (1,) else found)

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the classes, for cross entropy.

        Args:
            X: rows and columns, as the session had them.

        Returns:
            `(rows, classes)`, in the order of `classes_`.
        """
        if self.loss != "cross_entropy":
            raise InputError("probabilities are for loss='cross_entropy': predict gives what the module says")
        found = self._outputs(X)
        odds = np.exp(found - found.max(axis=1, keepdims=True))
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))

    @property
    def _settings(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self) if one.init}

    def _steps(self) -> Steps:
        clip = self.clip if self.clip is not None else CLIP if self._has_classes else CLIP_OF_NUMBERS
        return Steps(
            checks.count(steps=self.steps),
            checks.positive(learning_rate=self.learning_rate),
            checks.positive(clip=clip),
            of_numbers=not self._has_classes,
        )

    @property
    def _has_classes(self) -> bool:
        return self.loss == "cross_entropy" or self.classes is not None

    def _outputs(self, X: Any) -> Floats:
        torch, given = load(), self.inputs(X)
        with torch.no_grad():
            parts = [self.module_(given[start : start + TOGETHER]) for start in range(0, len(given), TOGETHER)]
        return np.asarray(torch.cat(parts).double().numpy())

    def _rows(self, fitting: Fitting) -> TargetRows:
        """Rows with a class that there may be, or with a number; the others bring nothing."""
        if fitting.target is None:
            raise InputError("say what is to be predicted: session.fit(module, target='income')")
        if not self._has_classes:
            return TargetRows.of(fitting, numbers_of_cells(fitting.target, self.target_bounds), public=True)
        if self.classes is None and fitting.declared_only:
            raise InputError(
                "declare the classes there may be: NeuralNetwork(module, classes=['no', 'yes']), for example. They "
                "must not come from the data, because a class that shows tells that somebody is in it"
            )
        self.classes_ = different_classes(set(fitting.target.tolist()) if self.classes is None else self.classes)
        return TargetRows.of(fitting, codes_of(fitting.target, self.classes_), public=self.classes is not None)

    def _row_loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        if self.loss == "cross_entropy":
            return load().nn.functional.cross_entropy(outputs, targets)
        if self.loss == "mse":
            return (outputs.reshape(targets.shape) - targets) ** 2
        assert callable(self.loss)
        return self.loss(outputs, targets)

    def _refuse_size(self, slopes: RowGradients, fitting: Fitting) -> None:
        classes = None if self.classes_ is None else len(self.classes_)
        if self.loss == "cross_entropy" and slopes.outputs != (classes,):
            raise InputError(
                f"there are {classes} classes: the module must make as many numbers of a row, and it makes an output "
                f"of shape {slopes.outputs}"
            )
        most = fitting.numbers // self.steps
        if slopes.numbers > most:
            raise InputError(
                f"{slopes.numbers:,} weights in {self.steps} steps are more numbers than the noise of a session is "
                f"exact for: {most:,} can be learnt. Freeze layers with requires_grad_(False), or take fewer steps"
            )
