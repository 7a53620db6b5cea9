"""Labels privatised one by one make a network better: by their likelihood, more than by fixed targets. Toys."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from reproductions.label_dp.augment import Album
from reproductions.label_dp.central import crossed, likelihood
from reproductions.label_dp.central.__main__ import toy_pictures
from reproductions.label_dp.central.encoder import LOGITS, PictureClassifier
from reproductions.label_dp.central.ladder import Ladder, Rung
from reproductions.label_dp.central.releases import Responses, Sums
from reproductions.label_dp.central.rungs import load_rung, save_rung
from reproductions.label_dp.central.settings import SMOKE
from reproductions.label_dp.judge import accuracy, predict, recalibrate
from reproductions.label_dp.train import Lesson, Teacher
from torch import Tensor, nn

CPU = torch.device("cpu")
EPSILON, WRONG, LIKELY, COUNT = 1.42, 0.6, 3, 2000


class SmallEncoder(nn.Module):
    """Two convolutions: enough for stripes."""

    def __init__(self) -> None:
        super().__init__()
        self.size = 64
        self.features = nn.Sequential(
            *(nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU()),
            *(nn.Conv2d(32, self.size, 3, 1, 1, bias=False), nn.BatchNorm2d(self.size), nn.ReLU()),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.features(x).mean((2, 3))


@dataclass(frozen=True)
class Toy:
    """Pictures, a network that half knows their ten classes, and seeded responses among those it holds likeliest."""

    album: Album
    judged: Album
    truth: Tensor
    net: PictureClassifier
    chances: Tensor
    scores: Tensor
    labels: Tensor

    def accuracy(self, net: nn.Module) -> float:
        recalibrate(net, self.album, CPU)
        return accuracy(predict(net, self.judged, CPU), self.truth)

    def taught(self, *, fixed: bool = False, loose: bool = False) -> nn.Module:
        torch.manual_seed(1)
        net = self.net.trainable(LOGITS if loose else likelihood.SCALE)
        net.head.bias.requires_grad_(loose)
        belief = likelihood.tempered(net, self.chances, self.scores)
        lesson = likelihood.observed(self.scores, belief, torch.full((10,), 0.1))
        if fixed:
            lesson = Lesson(targets=(self.scores + belief).softmax(1))
        chosen = replace(likelihood.recipe(SMOKE, EPSILON), epochs=6)
        return likelihood.taught(net, self.album, lesson, chosen, say=lambda line: None)[0].averaged


@pytest.fixture(scope="module")
def toy() -> Toy:
    torch.manual_seed(0)
    data, draw = toy_pictures(), np.random.default_rng(3)

    def blurred(x: np.ndarray) -> Tensor:
        noise = draw.normal(0, 30, x.shape)
        return torch.from_numpy(np.clip(128 + 0.5 * (x.astype(float) - 128) + noise, 0, 255).astype(np.uint8))

    album = Album.of(blurred(data.x_train[:COUNT]))
    y = data.y_train[:COUNT]
    net = PictureClassifier(SmallEncoder(), 10)  # type: ignore[arg-type]
    recalibrate(net, album, CPU)
    wrong = np.where(draw.random(COUNT) < WRONG, draw.integers(0, 10, COUNT), y)
    with torch.no_grad():
        net.start(net.encoder(album.plain(slice(None))), torch.eye(10)[torch.from_numpy(wrong)])
    chances = predict(net, album, CPU)
    likely = chances.topk(LIKELY, dim=1).indices.numpy()
    odds = np.where(likely == y[:, None], math.exp(EPSILON), 1.0)
    place = (odds.cumsum(1) / odds.sum(1, keepdims=True) < draw.random((COUNT, 1))).sum(1)
    scores = EPSILON * torch.eye(10)[torch.from_numpy(likely[np.arange(COUNT), place])]
    return Toy(
        album,
        Album.of(blurred(data.x_test), like=album),
        torch.from_numpy(data.y_test),
        net,
        chances,
        scores,
        torch.from_numpy(y),
    )


def test_responses_improve_a_network_by_their_likelihood_and_less_as_fixed_targets(toy: Toy) -> None:
    """Twin: the same evidence joined once and for all teaches the first belief's mistakes again."""
    before, after, fixed = (toy.accuracy(net) for net in (toy.net, toy.taught(), toy.taught(fixed=True)))
    assert after > before + 0.08
    assert fixed < after - 0.02


def test_a_bias_that_steps_with_scaled_logits_loses_classes(toy: Toy) -> None:
    """Why the bias of the head stands still and logits are scaled less: the planted fault takes whole classes away."""
    assert not toy.net.trainable().head.bias.requires_grad
    assert toy.accuracy(toy.taught(loose=True)) < toy.accuracy(toy.net) - 0.1


def test_a_belief_about_a_picture_is_of_a_network_that_never_saw_its_response(
    toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[tuple[Album, Album]] = []
    taught, predicted = crossed.taught, crossed.predict
    learnt: list[Album] = []

    def teach(net: Any, album: Album, *rest: Any, **settings: Any) -> Any:
        learnt.append(album)
        return taught(net, album, *rest, **settings)

    def say(net: nn.Module, album: Album, *rest: Any) -> Tensor:
        said.append((learnt[-1], album))
        return predicted(net, album, *rest)

    monkeypatch.setattr(crossed, "taught", teach)
    monkeypatch.setattr(crossed, "predict", say)
    torch.manual_seed(1)
    net = toy.net.trainable(likelihood.SCALE)
    belief = likelihood.tempered(net, toy.chances, toy.scores)
    lesson = likelihood.observed(toy.scores, belief, torch.full((10,), 0.1))
    unseen, _ = crossed.unseen_beliefs(
        net, toy.album, lesson, replace(likelihood.recipe(SMOKE, EPSILON), epochs=6), say=lambda line: None
    )
    assert len(said) == 2
    for seen, asked in said:
        both = torch.cat((seen.pixels, asked.pixels)).flatten(1)
        assert len(both) == COUNT and len(torch.unique(both, dim=0)) == COUNT  # no picture is in both
    evidence = toy.scores + (likelihood.as_sure_as_right(unseen, toy.scores) * unseen).log_softmax(1)
    assert accuracy(evidence, toy.labels) > accuracy(toy.scores + belief, toy.labels) + 0.05


def test_another_scale_is_the_same_function(toy: Toy) -> None:
    toy.net.eval()
    x = toy.album.plain(slice(0, 20))
    scaled = toy.net.trainable(2.0).eval()
    assert torch.allclose(toy.net(x), scaled(x), atol=1e-4) and float(scaled.scale) == 2


def test_a_belief_is_made_as_sure_as_observations_allow(toy: Toy) -> None:
    torch.manual_seed(2)
    y = torch.randint(0, 4, (4000,))
    likelihood_of = torch.full((4000, 4), 0.1).index_put_((torch.arange(4000), y), torch.tensor(0.7)).log()
    seen = torch.distributions.Categorical(logits=likelihood_of).sample()  # right in seven of ten
    scores = (0.7 * torch.eye(4) + 0.1 * (1 - torch.eye(4))).log()[seen]
    for right in (0.6, 0.9):
        named = torch.where(torch.rand(4000) < right, y, (y + 1) % 4)
        sure = (0.98 * torch.eye(4)[named] + 0.005).log().log_softmax(1)
        belief = likelihood.tempered(toy.net.trainable(), sure, scores).amax(1).exp().mean()
        assert abs(float(belief) - right) < 0.08


def test_a_first_belief_gives_way_to_the_networks_own() -> None:
    own, first = torch.tensor([[2.0, 0.0]]), torch.tensor([[0.0, 2.0]]).log_softmax(1)
    lesson = Lesson(scores=torch.zeros(1, 2), first_prior=first, first_until=0.4)
    teacher = Teacher(replace(likelihood.recipe(SMOKE, EPSILON), balance=False), lesson, 2, CPU)
    at = [float(teacher.targets(torch.tensor([0]), own, done)[0, 0]) for done in (0.0, 0.2, 0.4, 1.0)]
    assert at[0] == pytest.approx(float(first.exp()[0, 0])) and at[1] == pytest.approx(0.5)
    assert at[2] == at[3] == pytest.approx(float(own.softmax(1)[0, 0]))


def test_unlikely_classes_explain_no_better_than_likely_ones_not_observed() -> None:
    draw = np.random.default_rng(0)
    chances = draw.dirichlet(np.full(6, 0.2), 500).astype(np.float32)
    given = Responses.of(chances, draw.integers(0, 6, 500), EPSILON)
    found = given.among_likely()
    assert np.unique(found).tolist() == [0.0, np.float32(EPSILON)]
    assert ((found > 0).sum(1) == 1).all() and (found.argmax(1) == given.scores.argmax(1)).all()
    assert ((given.scores > 0) & (given.scores < EPSILON - 0.01)).any()  # the mechanism's own odds are others


def test_a_rung_comes_back_from_its_files_and_spends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = toy_pictures()
    data = replace(data, x_train=data.x_train[:300], y_train=data.y_train[:300])
    ladder = Ladder(SMOKE, data, CPU, lambda line: None)
    ladder.look()
    sums = ladder.sums(0.18)
    made = (sums, ladder.sums(0.12))
    rung = ladder.rung(PictureClassifier(ladder.encoder, 10).requires_grad_(False), made, {"schools": []})
    save_rung(tmp_path, "rung", rung)
    monkeypatch.setattr(Sums, "of", None)  # nothing may be released while it is read
    found: Rung | None = load_rung(tmp_path, "rung", ladder)
    assert found is not None and [part.certificate for part in found.sums] == [part.certificate for part in made]
    assert [(part.sigma, part.distance) for part in found.sums] == [(part.sigma, part.distance) for part in made]
    assert torch.allclose(found.chances.exp(), rung.chances.exp(), atol=0.02)
    assert load_rung(tmp_path, "other", ladder) is None
