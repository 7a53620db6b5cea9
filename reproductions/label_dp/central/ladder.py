"""The stages of a run in order: what they need from each other, what they cost, and what came out."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

import leakcap as lc
from reproductions.label_dp.augment import Album
from reproductions.label_dp.central import likelihood, looks
from reproductions.label_dp.central.crossed import unseen_beliefs
from reproductions.label_dp.central.encoder import Encoder, PictureClassifier
from reproductions.label_dp.central.releases import Responses, Sums, further_epsilon, noised_share, spent
from reproductions.label_dp.central.selftrain import School, Schooling
from reproductions.label_dp.central.settings import SUMS_AT, SUMS_BEFORE_RESPONSES, Settings
from reproductions.label_dp.judge import accuracy, memorisation, predict, recalibrate
from reproductions.label_dp.pictures import Pictures
from reproductions.label_dp.train import Lesson, Say

FLATTER, DOUBTED = 0.5, 0.25  # powers of a prediction that is surer than right, and of one that is doubted
SUMS_SHARE = 0.6  # of further sums beside the network's own prediction
SETTLING, CROSSED, SETTLED = 0.25, 0.4, 0.8  # shares of the time for responses; how sure a target is that does not wait
AGAIN = (4.0, 1.0)  # weight of anchors that come from a schooled network


@dataclass(frozen=True)
class Rung:
    """A schooled network and what it says of the training pictures; `facts`: what was released so far."""

    net: PictureClassifier
    chances: Tensor
    sums: tuple[Sums, ...]
    facts: dict[str, Any]


class Ladder:
    """Pictures on the device, an encoder made without labels, and the steps from it to a classifier."""

    def __init__(
        self, settings: Settings, data: Pictures, device: torch.device, say: Say = print, *, compiled: bool = False
    ) -> None:
        self.settings, self.device, self.say, self.compiled = settings, device, say, compiled
        self.classes = data.n_classes
        torch.manual_seed(settings.seed)
        taught = len(data.y_train) - settings.held_out
        self.labels, self.canaries = data.y_train[:taught], None
        if settings.canaries:
            planted = lc.audit.plant(self.labels, settings.canaries, classes=range(self.classes), seed=settings.seed)
            self.labels, self.canaries = planted
        self.album = Album.of(self._there(data.x_train[:taught]))
        judged = (data.x_train[taught:], data.y_train[taught:]) if settings.held_out else (data.x_test, data.y_test)
        self.judged, self.truth = Album.of(self._there(judged[0]), like=self.album), self._there(judged[1])
        self.encoder = Encoder(settings.width, device)
        self.contrastive: dict[str, Any] = {}  # how long it was trained
        self.seen = torch.empty(0)
        self.judged_seen = torch.empty(0)

    def look(self) -> None:
        """Features of all pictures, by the encoder as it is now."""
        recalibrate(self.encoder, self.album, self.device)
        self.seen = self._features(self.encoder, self.album)
        self.judged_seen = self._features(self.encoder, self.judged)

    def sums(self, epsilon: float) -> Sums:
        """Noised sums of the encoder's features. Spends epsilon."""
        return Sums.of(self.seen.cpu().numpy(), self.labels, epsilon, **self._ridge())

    def sums_accuracy(self, sums: Sums) -> float:
        return accuracy(self._there(sums.chances(self.judged_seen.cpu().numpy())), self.truth)

    def first(self, epsilon: float, seconds: float = math.inf) -> Rung:
        """From noised sums to a network: the first rung."""
        sums = self.sums(epsilon)
        shares = self._there(sums.shares)
        chances = self._there(sums.chances(self.seen.cpu().numpy()))
        chances, anchors = self._anchored(chances, self.seen, shares)
        net = PictureClassifier(copy.deepcopy(self.encoder), self.classes)
        net.start(self.seen, chances)
        facts = {
            "first": {
                **self._certified(sums.certificate),
                **self._told(
                    lambda truth: {
                        "sums_accuracy": self.sums_accuracy(sums),
                        "smoothed_training_accuracy": accuracy(chances, truth),
                        "anchors_right": self._anchors_right(anchors),
                    }
                ),
            }
        }
        self.say(f"sums at {epsilon:g}: {facts['first']}")
        lesson = Schooling(anchors, shares, self.settings.school_lr)
        each = seconds / self.settings.school_rounds
        rung = self._schooled(net, lesson, (sums,), each, facts)
        for _ in range(self.settings.school_rounds - 1):
            rung = self.again(rung, each)
        return rung

    def again(self, below: Rung, seconds: float = math.inf) -> Rung:
        """Anchors chosen anew by the network itself, with its own features: post-processing, which costs nothing."""
        seen = self._features(below.net.encoder, self.album)
        return self._again(below, seen, _flatter(below.chances), seconds, below.facts)

    def further(self, below: Rung, epsilon: float, seconds: float = math.inf) -> Rung:
        """Sums again, over the pictures that the network doubts, with its own features; within epsilon in all."""
        step = further_epsilon(below.sums, epsilon, self.settings.delta)
        seen = self._features(below.net.encoder, self.album)
        flat = _flatter(below.chances)
        top = flat.topk(2, dim=1).values
        doubted = (top[:, 0] - top[:, 1]).argsort()[: int(self.settings.doubted * len(seen))].sort().values
        rows, looks_like = doubted.cpu().numpy(), seen[doubted].cpu().numpy()
        sums = Sums.of(looks_like, self.labels[rows], step, **self._ridge())
        together = (*below.sums, sums)
        said = self._there(sums.chances(looks_like))
        joined = flat.clone()
        joined[doubted] = (1 - SUMS_SHARE) * _flatter(below.chances, DOUBTED)[doubted] + SUMS_SHARE * said
        cost = {"epsilon": spent(together, self.settings.delta), "delta": self.settings.delta}
        release = {
            **self._certified(sums.certificate),
            **self._told(
                lambda truth: {
                    "doubted_before": accuracy(below.chances[doubted], truth[doubted]),
                    "doubted_by_sums": accuracy(said, truth[doubted]),
                    "doubted_joined": accuracy(joined[doubted], truth[doubted]),
                }
            ),
        }
        facts = {
            **below.facts,
            "further": [*below.facts.get("further", []), release],
            "together": {**cost, "by": "Gaussian composition"},
        }
        self.say(f"further sums: {release}, together {cost}")
        return self._again(replace(below, sums=together), seen, joined, seconds, facts)

    def responses(self, below: Rung, epsilon: float, seconds: float = math.inf) -> Rung:
        """Every label, one by one, among the classes that the network holds likely; within epsilon in all."""
        step = epsilon - spent(below.sums, self.settings.delta)
        given = Responses.of(below.chances.exp().cpu().numpy(), self.labels, step)
        scores = self._there(given.among_likely())
        net = below.net.trainable(likelihood.SCALE)
        belief = likelihood.tempered(net, below.chances, scores)
        facts = {
            **below.facts,
            "responses": {
                **self._certified(given.certificate),
                "likely_classes": given.classes_on_average,
                "mean_belief": float(belief.amax(1).exp().mean()),
                **self._told(
                    lambda truth: {
                        "training_accuracy_before": accuracy(below.chances, truth),
                        "joined_training_accuracy": accuracy(scores + belief, truth),
                    }
                ),
            },
            "together": {
                "epsilon": epsilon,
                "delta": self.settings.delta,
                "by": "Gaussian composition of the sums; then epsilon and delta of sums and responses add up",
            },
        }
        self.say(f"responses: {facts['responses']}, together {facts['together']}")
        lesson = likelihood.observed(scores, belief, self._there(below.sums[0].shares))
        if self.settings.crossed:
            return self._crossed(replace(below, facts=facts), net, lesson, step, seconds)
        return self._observed(replace(below, facts=facts), net, lesson, step, seconds)

    def _observed(self, below: Rung, net: PictureClassifier, lesson: Lesson, step: float, seconds: float) -> Rung:
        """Learn the observations; last, what is still unclear waits, and the network settles on what is not."""
        began = time.perf_counter()
        fitted, epochs = likelihood.taught(
            net, self.album, lesson, likelihood.recipe(self.settings, step), **self._for(1 - SETTLING, seconds)
        )
        recalibrate(fitted.averaged, self.album, self.device)
        facts = self._taught(below.facts, epochs, began, lambda: self._says(fitted.averaged))
        scores, shares = lesson.scores, lesson.shares
        assert scores is not None and shares is not None
        settling = Schooling(scores, shares, self.settings.school_lr, weight=(1.0, 1.0), sure=SETTLED)
        return self._schooled(fitted.averaged.trainable(), settling, below.sums, SETTLING * seconds, facts)

    def _crossed(self, below: Rung, net: PictureClassifier, lesson: Lesson, step: float, seconds: float) -> Rung:
        """Evidence from observations and from networks that have not seen them, and a school on it."""
        began = time.perf_counter()
        chosen = likelihood.recipe(self.settings, step)
        unseen, epochs = unseen_beliefs(net, self.album, lesson, chosen, **self._for(1 - CROSSED, seconds))
        scores, shares = lesson.scores, lesson.shares
        assert scores is not None and shares is not None
        evidence = scores + (likelihood.as_sure_as_right(unseen, scores) * unseen).log_softmax(1)
        facts = self._taught(below.facts, epochs, began, lambda: evidence)
        # The evidence holds what networks believe already: the own belief comes to it later.
        lesson_last = Schooling(
            evidence, shares, self.settings.school_lr, weight=(1.0, 1.0), power=(0.0, 1.0), sure=SETTLED
        )
        return self._schooled(below.net.trainable(), lesson_last, below.sums, CROSSED * seconds, facts)

    def _for(self, share: float, seconds: float) -> dict[str, Any]:
        return {"seconds": share * seconds, "compiled": self.compiled, "say": self.say}

    def _taught(self, facts: dict[str, Any], epochs: int, began: float, says: Callable[[], Tensor]) -> dict[str, Any]:
        """The facts with a training by observations; what true labels say of it is for the custodian."""
        told = self._told(lambda truth: {"training_accuracy": accuracy(says(), truth)})
        made = {"epochs": epochs, "seconds": time.perf_counter() - began, **told}
        return {**facts, "schools": [*facts["schools"], made]}

    def rung(self, net: PictureClassifier, sums: tuple[Sums, ...], facts: dict[str, Any]) -> Rung:
        """A network with what it says of the training pictures."""
        return Rung(net, self._says(net), sums, facts)

    def result(self, rung: Rung, epsilon: float) -> dict[str, Any]:
        """The record of a run; accuracy on pictures that no stage has seen. Accuracies are for the custodian alone."""
        cuda = self.device.type == "cuda"
        return {
            "epsilon": epsilon,
            "delta": self.settings.delta,
            **self._judged(rung),
            **self._shown(rung),
            "contrastive": self.contrastive,
            "facts": rung.facts,
            "settings": asdict(self.settings),
            "device": torch.cuda.get_device_name(self.device) if cuda else "CPU",
            "torch": torch.__version__,
            "leakcap": lc.__version__,
        }

    def _says(self, net: PictureClassifier) -> Tensor:
        return predict(net, self.album, self.device)

    def _judged(self, rung: Rung) -> dict[str, Any]:
        """On test pictures, as it is; on held-out training pictures by one noised count, whose price is told."""
        both = predict(rung.net, self.judged, self.device)
        if self.settings.held_out:
            right = (both.argmax(1) == self.truth).cpu().numpy()
            share, deviation = noised_share(right, self.settings.held_out_epsilon, self.settings.delta)
            cost = {"epsilon": self.settings.held_out_epsilon, "delta": self.settings.delta, "deviation": deviation}
            return {"accuracy": share, "judged_on": "held-out training pictures, by a noised count", "judging": cost}
        alone = predict(rung.net, self.judged, self.device, flip=False)
        return {
            "accuracy": accuracy(both, self.truth),
            "accuracy_without_flip": accuracy(alone, self.truth),
            "training_accuracy": accuracy(rung.chances, self._there(self.labels)),
            "judged_on": "test pictures",
        }

    def _shown(self, rung: Rung) -> dict[str, Any]:
        """What the network shows of planted labels, to the custodian who planted them."""
        return {} if self.canaries is None else {"memorisation": memorisation(rung.chances, self.canaries)}

    def _told(self, count: Callable[[Tensor], dict[str, float]]) -> dict[str, float]:
        """What true labels say of a stage, to the custodian; nothing where settings are being chosen."""
        return {} if self.settings.held_out else count(self._there(self.labels))

    def _anchored(self, chances: Tensor, seen: Tensor, shares: Tensor) -> tuple[Tensor, Tensor]:
        """Chances joined with those of neighbours, at the right shares; and the surest of them."""
        chances = looks.balanced(looks.smoothed(chances, seen, self.settings.neighbours), shares)
        return chances, looks.anchors(chances, self.settings.surest)

    def _again(self, below: Rung, seen: Tensor, chances: Tensor, seconds: float, facts: dict[str, Any]) -> Rung:
        shares = self._there(below.sums[0].shares)
        chances, anchors = self._anchored(chances, seen, shares)
        self.say(f"anchors again: {self._told(lambda truth: {'right': self._anchors_right(anchors)})}")
        net = below.net.trainable()
        net.start(seen, chances)
        lesson = replace(Schooling(anchors, shares, self.settings.school_lr), weight=AGAIN)
        return self._schooled(net, lesson, below.sums, seconds, facts)

    def _schooled(
        self, net: PictureClassifier, lesson: Schooling, sums: tuple[Sums, ...], seconds: float, facts: dict[str, Any]
    ) -> Rung:
        began = time.perf_counter()
        school = School(net, self.album, lesson, self.settings, self.say, compiled=self.compiled)
        epochs = school.run(seconds)
        recalibrate(school.averaged, self.album, self.device)
        rounds = [*facts.get("schools", []), {"epochs": epochs, "seconds": time.perf_counter() - began}]
        return self.rung(school.averaged, sums, {**facts, "schools": rounds})

    def _features(self, encoder: Encoder, album: Album) -> Tensor:
        return looks.features(encoder, album, self.settings.crops, self.settings.smallest_crop)

    def _ridge(self) -> dict[str, Any]:
        return {
            "n_classes": self.classes,
            "delta": self.settings.delta,
            "components": self.settings.components,
            "random_state": self.settings.seed,
        }

    def _certified(self, certificate: Any) -> dict[str, Any]:
        settings = {name: float(value) for name, value in certificate.settings}
        return {"epsilon": float(certificate.epsilon), "delta": float(certificate.delta), "settings": settings}

    def _anchors_right(self, anchors: Tensor) -> float:
        """Told to the custodian only: it is printed beside the result and decides nothing."""
        rows = anchors.amax(1) > 0
        return accuracy(anchors[rows], self._there(self.labels)[rows])

    def _there(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)


def _flatter(chances: Tensor, power: float = FLATTER) -> Tensor:
    return (power * chances).softmax(1)


def stages(epsilon: float, responses_from: float = Settings.responses_from) -> tuple[tuple[float, ...], bool]:
    """What all sums have cost after each of them, and whether responses follow."""
    if epsilon >= responses_from:
        return tuple(level for level in SUMS_AT if level <= SUMS_BEFORE_RESPONSES), True
    return (*(level for level in SUMS_AT if 1.1 * level < epsilon), epsilon), False
