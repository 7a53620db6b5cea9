"""Pictures under central label privacy: the losses, what is spent, who reads labels, and that a call resumes. Toys."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from reproductions.label_dp.augment import Album
from reproductions.label_dp.central import __main__ as command
from reproductions.label_dp.central import likelihood, looks, pace
from reproductions.label_dp.central.contrastive import Contrastive, contrast
from reproductions.label_dp.central.encoder import Encoder, PictureClassifier
from reproductions.label_dp.central.ladder import Ladder, Rung, stages
from reproductions.label_dp.central.releases import Responses, Sums, further_epsilon, likely, noised_share, spent
from reproductions.label_dp.central.selftrain import School, Schooling
from reproductions.label_dp.central.settings import SMOKE, Settings, changed
from reproductions.label_dp.central.store import load_weights, save_weights
from reproductions.label_dp.central.told import runs, table
from reproductions.label_dp.central.views import contrastive_view, cropped, recoloured
from reproductions.label_dp.train import Fitted
from scipy.special import ndtr

import leakcap as lc
from leakcap.errors import InputError
from leakcap.labels.mechanisms.gaussian import least_sigma

CPU = torch.device("cpu")
TINY = replace(SMOKE, contrastive_epochs=1, school_epochs=1)


def sums(epsilon: float, rows: int = 2000, **settings: Any) -> Sums:
    draw = np.random.default_rng(0)
    y = draw.integers(0, 4, rows)
    seen = draw.normal(0, 1, (rows, 12)) + 3 * np.eye(12)[y]
    return Sums.of(seen.astype(np.float32), y, epsilon, n_classes=4, delta=1e-5, random_state=0, **settings)


# Views and losses


def test_contrast_is_the_sum_written_out() -> None:
    torch.manual_seed(0)
    z, views, pictures, temperature = torch.randn(12, 5), 3, 4, 0.3
    unit = (z / z.norm(dim=1, keepdim=True)).double()
    total = 0.0
    for i in range(12):
        own = [float(unit[i] @ unit[j]) / temperature for j in range(12) if j != i and j % pictures == i % pictures]
        others = [float(unit[i] @ unit[j]) / temperature for j in range(12) if j % pictures != i % pictures]
        total += math.log(sum(map(math.exp, others))) - sum(own) / len(own)
    assert float(contrast(z, views, temperature)) == pytest.approx(total / 12, rel=1e-5)
    assert float(contrast(z, 2, temperature)) != pytest.approx(total / 12, rel=1e-3)  # pairing views wrongly shows


def test_views_stay_pictures_and_grey_stays_grey() -> None:
    torch.manual_seed(0)
    pixels = torch.randint(0, 256, (64, 8, 8, 3), dtype=torch.uint8)
    album = Album.of(pixels)
    crops = cropped(album, torch.arange(64), 0.2)
    assert crops.shape == (64, 3, 8, 8) and float(crops.min()) >= 0 and float(crops.max()) <= 1
    grey = pixels[..., :1].expand(-1, -1, -1, 3).permute(0, 3, 1, 2).float() / 255

    def colour(x: torch.Tensor) -> float:
        return float((x - x.mean(1, keepdim=True)).abs().max())

    assert colour(recoloured(grey)) < 1e-3  # hue and saturation cannot colour grey
    assert colour(recoloured(crops)) > 0.1
    whole = cropped(album, torch.arange(64), 1.0 - 1e-7)
    plain = pixels.permute(0, 3, 1, 2).float() / 255
    near = torch.minimum((whole - plain).abs().mean((1, 2, 3)), (whole - plain.flip(3)).abs().mean((1, 2, 3)))
    assert float(near.median()) < 0.12  # a crop of nearly everything is the picture or its mirror image, bent a little
    assert contrastive_view(album, torch.arange(4), 0.2).is_contiguous(memory_format=torch.channels_last)


def test_contrastive_learning_tells_pictures_apart_better_than_it_did() -> None:
    data = command.toy_pictures()
    torch.manual_seed(0)
    settings = replace(SMOKE, contrastive_epochs=3)
    training = Contrastive(settings, Album.of(torch.from_numpy(data.x_train[:500])), CPU, lambda line: None)
    rows = torch.arange(100)

    def loss() -> float:
        torch.manual_seed(1)
        return float(np.mean([float(training.loss(rows)) for _ in range(5)]))

    before = loss()
    assert training.run() == 3
    assert loss() < before - 0.05


# What is spent


def test_one_sum_costs_what_it_says_and_two_equal_ones_what_the_closed_form_says() -> None:
    one = sums(0.5)
    assert 0.499 < spent([one], 1e-5) <= 0.5 * (1 + 1e-6)
    total = spent([one, one], 1e-5)
    assert least_sigma(total, 1e-5) == pytest.approx(one.sigma / math.sqrt(2), rel=1e-3)
    assert total > 1.3 * 0.5  # counting the second sum as free would be seen


def test_delta_of_two_sums_holds_against_their_best_attacker() -> None:
    """Monte Carlo of the privacy loss of both releases: 400,000 draws, at a delta that they can see."""
    first = replace(sums(0.5), sigma=3.0, distance=0.0)
    second = replace(first, sigma=2.0)
    delta = 0.02
    epsilon = spent([first, second], delta)

    def measured(parts: list[Sums]) -> float:
        draw, loss = np.random.default_rng(1), np.zeros(400_000)
        for part in parts:
            shift = math.sqrt(2) / part.sigma  # neighbours differ by sqrt 2 row lengths
            loss += shift**2 / 2 + shift * draw.standard_normal(len(loss))
        return float(np.maximum(1 - np.exp(epsilon - loss), 0).mean())

    assert measured([first, second]) == pytest.approx(delta, abs=0.001)  # more than six deviations
    faulty = [first, replace(second, sigma=1.0)]
    assert measured(faulty) > delta + 0.01  # half the noise that was charged is found out


def test_further_sums_fill_the_budget_and_never_exceed_it() -> None:
    made = [sums(0.12)]
    for total in (0.18, 0.29, 0.5):
        made.append(sums(further_epsilon(made, total, 1e-5), rows=1000))
        assert 0.98 * total < spent(made, 1e-5) <= total
    with pytest.raises(InputError, match="larger"):
        further_epsilon([sums(0.3)], 0.29, 1e-5)


def test_responses_always_leave_a_choice_and_have_no_delta() -> None:
    draw = np.random.default_rng(0)
    sure = draw.dirichlet(np.full(4, 0.05), 3000).astype(np.float32)
    assert (lc.labels.RRWithPrior(1.4, likely(sure)).sizes >= 2).all()
    assert (lc.labels.RRWithPrior(1.4, sure.astype(float) / sure.sum(1, keepdims=True)).sizes == 1).any()
    y = draw.integers(0, 4, 3000)
    given = Responses.of(sure, y, 1.42)
    assert given.certificate.epsilon == 1.42 and given.certificate.delta == 0  # so it adds up with that of sums
    right = (given.scores + np.log(np.maximum(sure, 1e-9))).argmax(1)
    assert (given.scores.argmax(1) == y).mean() > 0.3 and right.shape == y.shape


def test_the_first_sums_are_the_same_for_every_larger_epsilon() -> None:
    assert [stages(e) for e in (0.05, 0.13, 0.18, 0.29, 0.5, 1.0, 8.0)] == [
        ((0.05,), False),
        ((0.13,), False),
        ((0.12, 0.18), False),
        ((0.12, 0.18, 0.29), False),
        ((0.12, 0.18, 0.29, 0.5), False),
        ((0.12, 0.18, 0.29), True),
        ((0.12, 0.18, 0.29), True),
    ]
    assert stages(1.6, responses_from=9.0) == ((0.12, 0.18, 0.29, 0.5, 0.9, 1.6), False)


# Schools


def test_anchors_are_the_surest_of_each_class() -> None:
    chances = torch.tensor([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.45, 0.55], [0.7, 0.3], [0.1, 0.9]])
    found = looks.anchors(chances, 0.7)
    assert found.tolist() == [[1, 0], [0, 0], [0, 1], [0, 0], [1, 0], [0, 1]]


def test_balancing_reaches_the_shares_and_smoothing_asks_the_neighbours() -> None:
    torch.manual_seed(0)
    chances = torch.rand(500, 3).softmax(1) * torch.tensor([3.0, 1.0, 1.0])
    shares = torch.tensor([0.2, 0.3, 0.5])
    assert torch.allclose(looks.balanced(chances / chances.sum(1, keepdim=True), shares).mean(0), shares, atol=1e-3)
    seen = torch.cat([torch.randn(20, 4) * 0.01 + shift for shift in (torch.eye(4)[0], torch.eye(4)[1])])
    table = torch.eye(2).repeat_interleave(20, 0)
    table[3] = torch.tensor([0.0, 1.0])  # wrong among right ones
    assert looks.smoothed(table, seen, 10)[3, 0] > 0.8


def test_targets_join_evidence_and_prediction_by_bayes_rule() -> None:
    net = PictureClassifier(Encoder(0.125, CPU), 3)
    album = Album.of(torch.randint(0, 256, (6, 8, 8, 3), dtype=torch.uint8))
    even = torch.full((3,), 1 / 3)
    logits = torch.tensor([[0.0, 1.0, 2.0]]).repeat(6, 1)
    evidence = torch.zeros(6, 3)
    evidence[0, 0] = 1.42
    shares = logits.softmax(1).mean(0)
    plain = Schooling(evidence, shares, 0.1, weight=(1.0, 1.0), power=(1.0, 1.0), sure=0.0)
    school = School(net, album, plain, TINY)
    target, present = school.targets(torch.arange(6), logits, 0.7)
    assert torch.allclose(target[0], (logits[0] + evidence[0]).softmax(0), atol=1e-5)
    assert torch.allclose(target[1], logits[1].softmax(0), atol=1e-5) and bool((present == 1).all())
    guess = School(net, album, Schooling(torch.eye(3).repeat(2, 1), even, 0.1), TINY)
    early, late = (guess.targets(torch.arange(6), logits, done)[0] for done in (0.0, 1.0))
    assert early[0, 0] > 0.9 > late[0, 0]  # an anchor's word fades
    assert guess.targets(torch.arange(6), torch.zeros(6, 3), 1.0)[1].sum() == 0  # unclear pictures wait


def test_a_head_by_least_squares_knows_the_classes_before_any_step() -> None:
    torch.manual_seed(0)
    net = PictureClassifier(Encoder(0.125, CPU), 4)
    y = torch.randint(0, 4, (400,))
    seen = torch.randn(400, net.encoder.size) + 4 * torch.eye(net.encoder.size)[y]
    net.start(seen, torch.eye(4)[y])
    logits = net.head((seen - net.centre) * net.gain)
    assert float((logits.argmax(1) == y).float().mean()) > 0.95


def test_nothing_but_the_releases_depends_on_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the released sums fixed, other labels give the same network to the last bit."""
    data = command.toy_pictures()
    data = replace(data, x_train=data.x_train[:400], y_train=data.y_train[:400])
    released: list[Sums] = []

    def weights(labels: np.ndarray, ladder_kind: type[Ladder] = Ladder) -> torch.Tensor:
        ladder = ladder_kind(TINY, replace(data, y_train=labels), CPU, lambda line: None)
        ladder.look()
        released.append(ladder.sums(0.18))
        monkeypatch.setattr(ladder, "sums", lambda epsilon: released[0])
        torch.manual_seed(3)
        return torch.cat([w.flatten() for w in ladder.first(0.18).net.parameters()])

    class Leaking(Ladder):
        def _schooled(self, net: Any, lesson: Any, *rest: Any) -> Any:
            told = torch.eye(10)[torch.from_numpy(self.labels)]
            return super()._schooled(net, replace(lesson, evidence=told), *rest)

    other = (data.y_train + 1) % 10
    assert torch.equal(weights(data.y_train), weights(other))
    assert not torch.equal(weights(data.y_train, Leaking), weights(other, Leaking))


# The command


def test_weights_come_back_from_several_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reproductions.label_dp.central.store.MOST_BYTES", 40_000)
    torch.manual_seed(0)
    one, two = Encoder(0.125, CPU), Encoder(0.125, CPU)
    save_weights(tmp_path, "encoder", one, epoch=3, epochs=5)
    assert len(list(tmp_path.glob("encoder-*.npy"))) > 1
    assert max(file.stat().st_size for file in tmp_path.glob("*.npy")) < 41_000
    facts = load_weights(tmp_path, "encoder", two)
    assert facts is not None and (facts["epoch"], facts["epochs"]) == (3, 5)
    for first, second in zip(one.parameters(), two.parameters(), strict=True):
        assert torch.allclose(first, second, atol=1e-3)
    assert load_weights(tmp_path, "encoder", Encoder(0.25, CPU)) is None
    assert load_weights(tmp_path, "other", two) is None


def test_epochs_follow_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]

    def step() -> None:
        now[0] += 0.5

    monkeypatch.setattr(pace, "clock", lambda device: now[0])
    assert pace.epochs_in(math.inf, 7, 10, step=step, device=CPU) == 7 and now[0] == 0
    assert pace.epochs_in(10 + 51.1, 70, 10, step=step, device=CPU) == 10  # ten seconds were spent on trying
    assert pace.epochs_in(1.0, 70, 10, step=step, device=CPU) == 1


def test_settings_by_name() -> None:
    assert changed(Settings(), ["width=2.0", "components=64"]) == replace(Settings(), width=2.0, components=64)
    with pytest.raises(InputError, match="no setting"):
        changed(Settings(), ["wdth=2"])


def test_a_call_writes_one_file_an_epsilon_and_a_second_call_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schools: list[float] = []
    taught: list[float] = []

    def no_school(self: School, seconds: float) -> int:
        schools.append(seconds)
        return 0

    def no_training(net: Any, *rest: Any, seconds: float, **others: Any) -> tuple[Fitted, int]:
        taught.append(seconds)
        return Fitted(net, net, 0.0, 0), 0

    monkeypatch.setattr(School, "run", no_school)
    monkeypatch.setattr(likelihood, "taught", no_training)
    base = ["--smoke", "--out", str(tmp_path), "--set", "contrastive_epochs=1", "--curve", "8"]
    command.main([*base, "--epsilons", "0.18", "--seconds", "10000"])
    command.main([*base, "--epsilons", "0.18", "0.29", "1.6", "--seconds", "10000"])
    # .12 and .18 once: the second call found their networks; then .29, and what settles after the responses
    assert len(schools) == 4 and len(taught) == 1
    assert all(0 < s < 10_000 for s in schools)
    assert schools[0] < schools[1] and schools[2] < 4000 < taught[0]  # each leaves time for those to come
    records = {e: json.loads((tmp_path / f"central-eps{e}-seed0.json").read_text()) for e in ("0.18", "0.29", "1.6")}
    for epsilon, record in records.items():
        told = record["facts"].get("together", record["facts"]["first"])
        assert told["epsilon"] <= float(epsilon) * (1 + 1e-9) and told["delta"] <= 1e-5
        assert {"accuracy", "accuracy_without_flip", "judged_on"} <= set(record)
    command.main([*base, "--epsilons", "0.18", "0.29", "1.6"])
    assert len(schools) == 4  # nothing was left to do
    command.main([*base, "--epsilons", "0.1", "--seconds", "20"])
    assert len(schools) == 4 and not (tmp_path / "central-eps0.1-seed0.json").exists()  # too late: nothing was released


def test_an_encoder_whose_time_had_ended_is_lengthened_when_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def run(self: Contrastive, seconds: float, *, epoch: int, keep: Any) -> int:
        asked.append(epoch)
        keep(epoch + 3, epoch + 3)  # the clock's end
        return epoch + 3

    monkeypatch.setattr(Contrastive, "run", run)
    monkeypatch.setattr(Ladder, "look", lambda self: None)
    ladder = Ladder(replace(TINY, contrastive_epochs=7), command.toy_pictures(), CPU, lambda line: None)
    call = command.Call(tmp_path, math.inf)
    for lengthen in (False, False, True, True, True):
        call.encoder(ladder, 1.0, lengthen=lengthen)
    assert asked == [0, 3, 6]  # an ended one is left as it is, one of all its epochs too
    assert ladder.contrastive["epochs"] == 9 and ladder.contrastive["seconds"] > 0


def test_held_out_pictures_are_judged_by_a_noised_count_and_nothing_else() -> None:
    truth = np.arange(5000) < 4000
    shares = [noised_share(truth, 0.2, 1e-5) for _ in range(200)]
    found = np.array([share for share, _ in shares])
    assert 0.7 < found.std() / shares[0][1] < 1.3 and abs(found.mean() - 0.8) < 5 * shares[0][1] / math.sqrt(200)
    sigma = shares[0][1] * 5000
    excess = ndtr(0.5 / sigma - 0.2 * sigma) - math.exp(0.2) * ndtr(-0.5 / sigma - 0.2 * sigma)
    assert 0.4e-5 < excess <= 0.5e-5  # a label moves the count by 1; half of delta is for arithmetic
    data = command.toy_pictures()
    ladder = Ladder(replace(TINY, held_out=200), data, CPU, lambda line: None)
    ladder.look()
    record = ladder.result(ladder.first(0.18, 0.1), 0.18)
    assert record["judging"]["epsilon"] == 0.2 and "noised" in record["judged_on"]
    assert not {"training_accuracy", "accuracy_without_flip"} & set(record)
    assert set(record["facts"]["first"]) == {"epsilon", "delta", "settings"}


def test_the_page_shows_what_the_kept_runs_reached() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reproductions-labels.md").read_text(encoding="utf-8")
    assert table().strip() in page and set(runs()) >= {0.18, 0.29, 1.6}


def test_planted_labels_are_taught_and_a_network_that_repeats_them_is_seen() -> None:
    data = command.toy_pictures()
    ladder = Ladder(replace(TINY, canaries=100), data, CPU)
    key = ladder.canaries
    assert key is not None
    assert np.flatnonzero(ladder.labels != data.y_train).tolist() == sorted(key.rows.tolist())

    def shown(labels: np.ndarray) -> float:
        says = torch.full((len(labels), 10), -9.0).scatter(1, torch.from_numpy(labels)[:, None], 0.0)
        net = PictureClassifier(ladder.encoder, 10)
        found = ladder.result(Rung(net, says.log_softmax(1), (), {}), 0.5)["memorisation"]["epsilon_lower"]
        return float(found)

    assert shown(ladder.labels) > 2
    assert shown(data.y_train) == 0.0
    assert "memorisation" not in Ladder(TINY, data, CPU).result(
        Rung(PictureClassifier(ladder.encoder, 10), torch.zeros(len(data.y_train), 10), (), {}), 0.5
    )
