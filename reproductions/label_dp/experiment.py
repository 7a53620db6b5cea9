"""One recipe from secret labels to a record of what came out."""

from __future__ import annotations

import platform
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import torch
from torch import Tensor

import leakcap as lc
from reproductions.label_dp import evidence
from reproductions.label_dp.augment import Album
from reproductions.label_dp.judge import accuracy, likelihood_gain, memorisation, predict, recalibrate
from reproductions.label_dp.pictures import Pictures
from reproductions.label_dp.recipe import Recipe
from reproductions.label_dp.train import Fitted, Lesson, Say, fit


class Experiment:
    """Data on the device, and the steps of a run on it."""

    def __init__(
        self, recipe: Recipe, data: Pictures, device: torch.device, *, compiled: bool = False, say: Say = print
    ) -> None:
        self.recipe, self.data, self.device = recipe, data, device
        self.compiled, self.say = compiled, say
        self.classes = data.n_classes
        self.draw = np.random.default_rng(recipe.seed)
        torch.manual_seed(recipe.seed)
        if device.type == "cuda":
            torch.backends.cudnn.benchmark = True
            torch.set_float32_matmul_precision("high")
        everything = recipe.limit or len(data.y_train)
        taught = everything - recipe.held_out
        self.y = data.y_train[:everything]
        self.taught = slice(0, taught)
        self.album = Album.of(self._there(data.x_train[:taught]))
        if recipe.held_out:
            self.judged = Album.of(self._there(data.x_train[taught:everything]), like=self.album)
            self.truth = self._there(data.y_train[taught:everything])
        else:
            some = slice(0, recipe.limit or None)
            self.judged = Album.of(self._there(data.x_test[some]), like=self.album)
            self.truth = self._there(data.y_test[some])
        self.seconds, self.pictures = 0.0, 0

    def run(self) -> dict[str, Any]:
        """Privatise, train, judge."""
        began = time.perf_counter()
        recipe, secret, canaries = self.recipe, self.y, None
        if recipe.canaries:
            known_labels, seed = self.y[self.taught], int(self.draw.integers(2**62))
            changed, canaries = lc.audit.plant(known_labels, recipe.canaries, classes=range(self.classes), seed=seed)
            secret = np.concatenate([changed, self.y[self.taught.stop :]])
        scores, used = self._scores(secret)
        fitted = self._train(self._lesson(scores, secret))
        for net in (fitted.last, fitted.averaged):
            recalibrate(net, self.album, self.device)
        known = predict(fitted.averaged, self.album, self.device)
        outside = predict(fitted.averaged, self.judged, self.device)
        one_look = predict(fitted.averaged, self.judged, self.device, flip=False)
        last = predict(fitted.last, self.judged, self.device)
        there = self._there(secret[self.taught])
        cuda = self.device.type == "cuda"
        return {
            "name": recipe.name,
            "recipe": recipe.to_dict(),
            "mechanism": used,
            "judged_on": "held-out training pictures" if recipe.held_out else "test pictures",
            "accuracy": accuracy(outside, self.truth),
            "accuracy_without_flip": accuracy(one_look, self.truth),
            "accuracy_last_weights": accuracy(last, self.truth),
            "training_accuracy": accuracy(known, there),
            "posterior_accuracy": None if scores is None else accuracy(known + scores[self.taught], there),
            "held_out_gain": self._held_out_gain(scores, outside),
            "memorisation": None if canaries is None else memorisation(known, canaries),
            "seconds": time.perf_counter() - began,
            "training_seconds": self.seconds,
            "pictures_per_second": self.pictures / max(self.seconds, 1e-9),
            "compiled": self.compiled,
            "device": torch.cuda.get_device_name(self.device) if cuda else platform.processor() or "CPU",
            "torch": torch.__version__,
            "leakcap": lc.__version__,
            "written": datetime.now(UTC).isoformat(timespec="seconds"),
        }

    def _scores(self, secret: np.ndarray) -> tuple[Tensor | None, str]:
        """Log-likelihoods of the observations. Every label is privatised exactly once."""
        recipe = self.recipe
        if recipe.labels == "true":
            return None, "none"
        if recipe.stages == 1:
            scores, used = evidence.first_scores(recipe, secret, self.classes)
            return self._there(scores), used
        first, second = self._halves()
        if recipe.held_out:  # their labels are judged, not taught: any half will do
            first = np.concatenate([first, np.arange(self.taught.stop, len(secret))])
        found = np.empty((len(secret), self.classes), dtype=np.float32)
        found[first], used = evidence.first_scores(recipe, secret[first], self.classes)
        prior = self._prior_from(first[first < self.taught.stop], self._there(found), second)
        found[second] = evidence.second_scores(recipe, secret[second], prior.exp().cpu().numpy())
        return self._there(found), f"{used}, then RRWithPrior"

    def _lesson(self, scores: Tensor | None, secret: np.ndarray) -> Lesson:
        recipe = self.recipe
        if scores is None:
            return Lesson(targets=self._one_hot(self._there(secret[self.taught])))
        scores = scores[self.taught]
        if recipe.labels == "observed":
            return Lesson(targets=self._one_hot(scores.argmax(1)))
        shares = self._there(evidence.class_shares(scores.cpu().numpy())) if recipe.balance else None
        first_prior = None
        if recipe.rounds == 2:
            halves = self._halves()
            first_prior = torch.empty_like(scores)
            for mine, other in (halves, halves[::-1]):
                first_prior[self._there(other)] = self._prior_from(mine, scores, other)
        return Lesson(scores=scores, first_prior=first_prior, shares=shares)

    def _prior_from(self, mine: np.ndarray, scores: Tensor, other: np.ndarray) -> Tensor:
        """Log-probabilities for pictures from a network that saw none of their labels."""
        inside, outside = self._there(mine), self._there(other)
        album = Album.of(self.album.pixels[inside], like=self.album)
        recipe = replace(self.recipe, balance=False)
        fitted = self._train(Lesson(scores=scores[inside]), album, recipe)
        recalibrate(fitted.averaged, self.album, self.device)
        return predict(fitted.averaged, Album.of(self.album.pixels[outside], like=self.album), self.device)

    def _train(self, lesson: Lesson, album: Album | None = None, recipe: Recipe | None = None) -> Fitted:
        fitted = fit(
            recipe or self.recipe,
            album or self.album,
            lesson,
            self.classes,
            self.device,
            compiled=self.compiled,
            say=self.say,
        )
        self.seconds += fitted.seconds
        self.pictures += fitted.pictures
        return fitted

    def _held_out_gain(self, scores: Tensor | None, outside: Tensor) -> float | None:
        if scores is None or not self.recipe.held_out:
            return None
        return likelihood_gain(scores[self.taught.stop :], outside)

    def _halves(self) -> tuple[np.ndarray, np.ndarray]:
        order = self.draw.permutation(self.taught.stop)
        return np.sort(order[: len(order) // 2]), np.sort(order[len(order) // 2 :])

    def _one_hot(self, codes: Tensor) -> Tensor:
        return torch.nn.functional.one_hot(codes, self.classes).float()

    def _there(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)
