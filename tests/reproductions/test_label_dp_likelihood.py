"""Labels privatised one by one make a schooled network better: by their likelihood, not by fixed targets. Toys."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from reproductions.label_dp.augment import Album
from reproductions.label_dp.central import likelihood
from reproductions.label_dp.central.__main__ import toy_pictures
from reproductions.label_dp.central.encoder import Encoder, PictureClassifier
from reproductions.label_dp.central.ladder import Ladder, Rung
from reproductions.label_dp.central.releases import Responses, Sums
from reproductions.label_dp.central.rungs import load_rung, save_rung
from reproductions.label_dp.central.settings import SMOKE
from reproductions.label_dp.judge import accuracy, predict, recalibrate
from reproductions.label_dp.recipe import Recipe
from reproductions.label_dp.train import Lesson, fit

CPU = torch.device("cpu")
EPSILON = 1.42


@pytest.fixture(scope="module")
def schooled() -> tuple[Ladder, Rung, Responses]:
    """A network that half knows the classes of blurred toy pictures, and responses among those it holds likely."""
    torch.manual_seed(0)
    data, draw = toy_pictures(), np.random.default_rng(3)

    def blurred(x: np.ndarray) -> np.ndarray:
        return np.clip(128 + 0.5 * (x.astype(float) - 128) + draw.normal(0, 30, x.shape), 0, 255).astype(np.uint8)

    data = replace(data, x_train=blurred(data.x_train), x_test=blurred(data.x_test))
    ladder = Ladder(replace(SMOKE, school_rounds=1, school_epochs=1), data, CPU, lambda line: None)
    ladder.look()
    rung = ladder.first(0.29)
    return ladder, rung, Responses.of(rung.chances.exp().numpy(), ladder.labels, EPSILON)


def judged(ladder: Ladder, net: torch.nn.Module) -> float:
    recalibrate(net, ladder.album, CPU)
    return accuracy(predict(net, ladder.judged, CPU), ladder.truth)


def chosen() -> Recipe:
    return replace(likelihood.recipe(SMOKE, EPSILON), epochs=8)


def test_the_likelihood_of_responses_improves_on_the_network_they_were_asked_for(
    schooled: tuple[Ladder, Rung, Responses],
) -> None:
    ladder, rung, given = schooled
    scores = torch.from_numpy(given.among_likely())
    before = judged(ladder, rung.net)
    net = rung.net.trainable()
    power = likelihood.tempered(net, rung.chances, scores)
    torch.manual_seed(1)
    fitted, epochs = likelihood.taught(net, ladder.album, scores, chosen(), say=lambda line: None)
    found = judged(ladder, fitted.averaged)

    torch.manual_seed(1)
    targets = Lesson(targets=(scores + power * rung.chances).softmax(1))  # the same evidence, once and for all
    fixed = fit(
        chosen(), ladder.album, targets, 10, CPU, start=rung.net.trainable(), largest_gradient=5.0, say=lambda line: None
    )
    print(before, found, judged(ladder, fixed.averaged))
    assert epochs == 8
    assert found > before + 0.08
    assert judged(ladder, fixed.averaged) < found - 0.04


def test_a_bias_that_steps_with_the_scaled_logits_loses_classes(schooled: tuple[Ladder, Rung, Responses]) -> None:
    """Why the bias of the head stands still: the planted fault takes whole classes away."""
    ladder, rung, given = schooled
    scores = torch.from_numpy(given.among_likely())

    def classes_left(loose: bool) -> int:
        torch.manual_seed(1)
        net = rung.net.trainable()
        net.head.bias.requires_grad_(loose)
        steps = replace(chosen(), epochs=4, peak_lr=0.4)
        fitted, _ = likelihood.taught(net, ladder.album, scores, steps, say=lambda line: None)
        recalibrate(fitted.averaged, ladder.album, CPU)
        named = torch.bincount(predict(fitted.averaged, ladder.judged, CPU).argmax(1), minlength=10)
        return int((named > 5).sum())

    assert not rung.net.trainable().head.bias.requires_grad
    print(classes_left(False), classes_left(True))
    assert classes_left(False) >= 9
    assert classes_left(True) <= 7
