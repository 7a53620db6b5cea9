"""Networks trained in a session: steps are sums of gradients cut row by row, and nothing else of the data is seen."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn

import leakcap as lc
from leakcap.custody.ledger import accounts
from leakcap.errors import InputError, LeakcapError
from leakcap.estimators import NeuralNetwork
from leakcap.sessions import desk
from leakcap.sessions.networks.gradients import LEVEL, RowGradients
from leakcap.sessions.networks.sums import GradientSums
from leakcap.sessions.products import BITS
from leakcap.sessions.seats import Seats
from leakcap.worlds import Units

GRAIN = 2.0 ** (-2 * BITS)
CLIP = 0.3
rng = np.random.default_rng(0)
ROWS = rng.standard_normal((90, 16)).astype(np.float32)
CODES = rng.integers(0, 3, 90).astype(float)
PLAIN = {"target": "4", "bounds": (0, 1), "share": 0.5}


def seeded(make: Any) -> Any:
    torch.manual_seed(0)
    return make()


class Twice(nn.Module):
    """Linear layers in all their uses: once, twice, on several places of a row, and with borrowed weights."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.again, self.places = nn.Linear(16, 8), nn.Linear(8, 8), nn.Linear(4, 3)
        self.out = nn.Linear(8, 3, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.tanh(self.again(torch.tanh(self.again(torch.tanh(self.first(x))))))
        borrowed = nn.functional.linear(x[:, :8], self.out.weight)
        return self.out(hidden) + borrowed + self.places(x.reshape(len(x), 4, 4)).mean(dim=1)


def frozen() -> nn.Module:
    made = nn.Sequential(nn.Linear(16, 8), nn.Tanh(), nn.Linear(8, 3))
    made[0].weight.requires_grad_(False)
    return made


MODULES = {
    "linear": lambda: nn.Linear(16, 3),
    "dense": lambda: nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.LayerNorm(8), nn.Linear(8, 3, bias=False)),
    "pictures": lambda: nn.Sequential(
        nn.Unflatten(1, (1, 4, 4)), nn.Conv2d(1, 4, 2), nn.GroupNorm(2, 4), nn.Flatten(), nn.Linear(36, 3)
    ),
    "all uses": Twice,
    "frozen": frozen,
    "double": lambda: nn.Linear(16, 3).double(),
}


def slopes_of(module: nn.Module) -> RowGradients:
    return RowGradients(module, nn.functional.cross_entropy, 16, codes=True)


def sums_of(slopes: RowGradients, places: Any = slice(None)) -> GradientSums:
    rows = ROWS[places].astype(slopes.kind)
    seats = Seats.of(rows, CODES[places], 2**15)
    how: dict[str, Any] = {"clip": CLIP, "most_rows": 1, "finish": np.asarray}
    return GradientSums(seats, slopes.at(slopes.start), slopes.shapes, units=Units.of(len(rows), None), **how)


def total(sums: GradientSums, takes_part: np.ndarray) -> np.ndarray:
    everybody = np.ones(len(takes_part), dtype=bool)
    found, _, _ = sums.totals(np.full(sums.numbers, 5.0), everybody, takes_part, everybody=True)
    return np.asarray(found)


def by_hand(module: nn.Module, row: np.ndarray, code: float, scale: dict[str, float]) -> dict[str, np.ndarray]:
    """One row's gradient by plain autograd, cut, in units of clip: by how much it moves each weight."""
    learnt = {name: value for name, value in module.named_parameters() if value.requires_grad}
    given = torch.tensor(row[None], dtype=next(iter(learnt.values())).dtype)
    loss = nn.functional.cross_entropy(module(given), torch.tensor([int(code)]))
    found = torch.autograd.grad(loss, list(learnt.values()))
    own = {name: one.double().numpy() * scale[name] for name, one in zip(learnt, found, strict=True)}
    length = np.sqrt(sum((one**2).sum() for one in own.values()))
    return {name: one / max(CLIP, length) * scale[name] for name, one in own.items()}


@pytest.mark.parametrize("kind", MODULES)
def test_sums_are_those_of_plain_gradients_cut_row_by_row(kind: str) -> None:
    module = seeded(MODULES[kind])
    slopes = slopes_of(module)
    takes_part = rng.random(90) < 0.5
    each = [by_hand(module, ROWS[place], CODES[place], slopes.scale) for place in np.flatnonzero(takes_part)]
    moved = slopes.moved(slopes.start, total(sums_of(slopes), takes_part) * GRAIN)
    for name, value in slopes.start.items():
        wanted = sum(one[name] for one in each)
        assert np.allclose((moved[name] - value).double().numpy(), wanted, atol=2e-3 * slopes.scale[name]), name
        assert np.abs(wanted).max() > 20e-3 * slopes.scale[name], "nothing was compared"
    assert all(scale == LEVEL for name, scale in slopes.scale.items() if slopes.start[name].ndim == 1)


def test_products_stand_for_linear_layers_where_they_are_the_gradient_and_nowhere_else() -> None:
    shapes = {kind: slopes_of(seeded(make)).shapes for kind, make in MODULES.items()}
    assert shapes["linear"] == shapes["double"] == ((17, 3),)
    assert shapes["dense"] == ((17, 8), (8, 3), (1, 16))
    assert shapes["pictures"] == ((37, 3), (1, 4 * 4 + 4 + 8))
    assert shapes["frozen"] == ((9, 3), (1, 8))
    assert shapes["all uses"] == ((17, 8), (1, 8 * 8 + 8 + 4 * 3 + 3 + 8 * 3)), "used twice, borrowed, many places"


@pytest.mark.parametrize("kind", ["dense", "pictures"])
def test_what_somebody_brings_is_the_same_to_the_last_digit_whoever_else_is_there(kind: str) -> None:
    slopes = slopes_of(seeded(MODULES[kind]))
    crowds = [np.arange(90), np.r_[0:3, 40:90], np.arange(3), np.r_[80:20:-3, 2, 1, 0]]
    found = []
    for people in crowds:
        sums = sums_of(slopes, people)
        found.append([total(sums, people == person) for person in range(3)])
    assert all(np.array_equal(found[0], other) for other in found[1:])
    whole = sums_of(slopes)
    parts = sum(total(whole, np.arange(90) == person) for person in range(90))
    assert np.array_equal(total(whole, np.ones(90, dtype=bool)), parts), "a sum is what its people bring"


class Mixing(nn.Linear):
    """Would make one row's output of all rows, were it given more than one."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x + x.sum(dim=0))


def test_a_module_never_sees_two_rows() -> None:
    module = seeded(lambda: Mixing(16, 3))
    slopes = slopes_of(module)
    wanted = by_hand(module, ROWS[4], CODES[4], slopes.scale)
    moved = slopes.moved(slopes.start, total(sums_of(slopes), np.arange(90) == 4) * GRAIN)
    for name, value in slopes.start.items():
        assert np.allclose((moved[name] - value).numpy(), wanted[name], atol=1e-3 * slopes.scale[name])


class Chooses(nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) if bool(x.sum() > 1) else super().forward(-x)


class Counting(nn.Linear):
    def __init__(self, *shape: int) -> None:
        super().__init__(*shape)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls = self.calls + 1
        return super().forward(x)


class Pair(nn.Linear):
    def forward(self, x: torch.Tensor) -> Any:
        return super().forward(x), x


class Noisy(nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x + torch.randn(x.shape))


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: NeuralNetwork(np.mean), "torch.nn.Module"),
        (lambda: NeuralNetwork(nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))), "GroupNorm or LayerNorm"),
        (lambda: NeuralNetwork(nn.Sequential(nn.InstanceNorm2d(3, track_running_stats=True))), "GroupNorm"),
        (lambda: NeuralNetwork(nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.2))), "Dropout drops by chance"),
        (lambda: NeuralNetwork(nn.TransformerEncoderLayer(4, 2)), "by chance"),
        (lambda: NeuralNetwork(nn.LSTM(4, 3, num_layers=2, dropout=0.1)), "LSTM drops by chance"),
        (lambda: NeuralNetwork(nn.ReLU()), "nothing to learn"),
        (lambda: NeuralNetwork(nn.LazyLinear(3)), "its own shapes"),
        (lambda: NeuralNetwork(nn.Linear(4, 3), loss="hinge"), "loss"),
        (lambda: NeuralNetwork(nn.Linear(4, 1), loss="mse"), "target_bounds"),
        (lambda: NeuralNetwork(nn.Linear(4, 1), loss="mse", target_bounds=(1, 1)), "low below high"),
        (lambda: NeuralNetwork(nn.Linear(4, 3), classes=[1, 1]), "different"),
        (lambda: NeuralNetwork(nn.Linear(4, 3), steps=0), "steps"),
        (lambda: NeuralNetwork(nn.Linear(4, 3), clip=-1.0), "clip"),
        (lambda: NeuralNetwork(nn.Linear(4, 3), learning_rate=0), "learning_rate"),
    ],
)
def test_what_cannot_be_trained_row_by_row_is_refused_at_once(made: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        made()


def quarters(people: int = 400) -> pd.DataFrame:
    """Three classes by two of four columns."""
    cells = np.random.default_rng(3).random((people, 4))
    kinds = np.select([cells[:, 0] > 0.6, cells[:, 1] > 0.5], ["a", "b"], "c")
    return pd.DataFrame(cells, columns=list("0123")).assign(**{"4": kinds})


def plain_session(**how: Any) -> lc.Session:
    return lc.Session(quarters(), **{"cap": 0.9, "seed": 1, **how})


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (nn.Linear(5, 3), "one row of 4 numbers"),
        (nn.Linear(4, 2), "3 classes"),
        (Chooses(4, 3), "without looking"),
        (Noisy(4, 3), "without chance"),
        (Counting(4, 3), "buffers"),
        (NeuralNetwork(Pair(4, 3), loss=lambda made, of: made[0].sum() * of, target_bounds=(0, 1)), "one tensor"),
        (nn.Sequential(nn.Linear(4, 6000), nn.Linear(6000, 200), nn.Linear(200, 3)), "more numbers than"),
    ],
)
def test_what_does_not_suit_is_refused_before_anything_is_asked(module: Any, words: str) -> None:
    session = plain_session()
    with pytest.raises(InputError, match=words):
        session.fit(module, **PLAIN)
    with pytest.raises(InputError, match="what is to be predicted"):
        session.fit(nn.Linear(4, 3), ["0", "1", "2", "3"], bounds=(0, 1))
    assert session.spent.share == 0 and not session.history


def weights_of(module: nn.Module) -> np.ndarray:
    return np.concatenate([value.detach().numpy().ravel() for value in module.state_dict().values()])


def test_the_same_fit_again_is_the_same_for_nothing_and_another_start_is_another_fit() -> None:
    session, module = plain_session(), seeded(lambda: nn.Linear(4, 3))
    before = weights_of(module)
    first = session.fit(module, **PLAIN)
    assert np.array_equal(weights_of(module), before) and not np.array_equal(weights_of(first.module_), before)
    spent, answers = session.spent, len(session.history)
    assert spent.share <= PLAIN["share"] * (1 + 1e-9) and answers == 41
    again = session.fit(NeuralNetwork(seeded(lambda: nn.Linear(4, 3))), **PLAIN)
    assert np.array_equal(weights_of(first.module_), weights_of(again.module_))
    assert (session.spent, len(session.history)) == (spent, answers)
    other = session.fit(NeuralNetwork(nn.Linear(4, 3), steps=2), **{**PLAIN, "share": 0.1})
    more = session.fit(NeuralNetwork(nn.Linear(4, 3), steps=2), **{**PLAIN, "share": 0.1})
    assert not np.array_equal(weights_of(other.module_), weights_of(more.module_)), "they start elsewhere"
    assert len(session.history) == answers + 6


@pytest.mark.parametrize("cap", [0.7, lc.pool_membership(0.7)])
def test_digits_are_learnt_also_by_analysts_and_under_pool_caps(cap: Any) -> None:
    digits = load_digits()
    table = pd.DataFrame(digits.data, columns=[f"pixel {place}" for place in range(64)]).assign(digit=digits.target)
    module = seeded(lambda: nn.Sequential(nn.Linear(64, 24), nn.ReLU(), nn.Linear(24, 10)))
    session = lc.Session(table, cap=cap, seed=1, analyst="ann")
    pixels = list(table.columns[:64])
    network = NeuralNetwork(module, classes=range(10), steps=12)
    made = session.fit(network, pixels, "digit", bounds=(0, 16.5), share=1.0)
    # 1,797 digits, which it was trained on; chance is .1, without noise .99 are right.
    assert (made.predict(table) == digits.target).mean() > 0.85
    odds = made.predict_proba(table)
    assert odds.shape == (1797, 10) and np.allclose(odds.sum(axis=1), 1)
    assert np.array_equal(made.classes_[odds.argmax(axis=1)], made.predict(table))
    assert np.allclose(made.module_(made.inputs(table)).softmax(1).detach().numpy(), odds, atol=1e-5)
    with pytest.raises(InputError, match="declare the classes"):
        session.fit(module, pixels, "digit", bounds=(0, 16.5))
    content = pickle.dumps(made)
    assert not any(word in content for word in (b"sessions.session", b"Seats", b"Fitting", b"Secret"))
    assert np.array_equal(pickle.loads(content).predict(table), made.predict(table))


@pytest.mark.parametrize(("loss", "scale"), [("mse", True), (nn.HuberLoss(), True), ("mse", False)])
def test_numbers_are_learnt(loss: Any, scale: bool) -> None:
    cells = np.random.default_rng(5).uniform(0, 2, size=(1000, 3))
    goal = 40 + 5 * cells[:, 0] - 8 * cells[:, 1] * (cells[:, 2] > 1)
    module = seeded(lambda: nn.Sequential(nn.Linear(3, 24), nn.ReLU(), nn.Linear(24, 1)))
    network = NeuralNetwork(module, loss=loss, target_bounds=(20, 60), scale=scale)
    session = lc.Session((cells, goal), cap=0.9, seed=1)
    made = session.fit(network, target="3", bounds=(0, 2.5), share=1.0)
    off = made.predict(cells) - goal
    assert off.shape == (1000,) and (off**2).mean() < 0.3 * goal.var()
    with pytest.raises(InputError, match="probabilities"):
        made.predict_proba(cells)


class Remembering(nn.Module):
    """A loss that keeps what it sees."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []

    def forward(self, made: torch.Tensor, goal: torch.Tensor) -> torch.Tensor:
        self.seen.append(goal)
        return ((made - goal) ** 2).sum()


def test_a_loss_that_keeps_what_it_sees_is_published_as_it_was() -> None:
    cells, loss = np.random.default_rng(5).uniform(0, 2, size=(50, 3)), Remembering()
    network = NeuralNetwork(nn.Linear(3, 1), loss=loss, target_bounds=(0, 2), steps=2)
    made = lc.Session((cells, cells[:, 0]), cap=0.9, seed=1).fit(network, target="3", bounds=(0, 2), share=1.0)
    assert made.loss.seen == loss.seen == []


class Category(nn.Module):
    """Looks up its first column, which raises for whatever is no place in its table."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.out = nn.Embedding(5, 4), nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.table(x[:, 0].long()))


def odd_table(odd: bool) -> pd.DataFrame:
    """The same columns with and without one person whose cells suit nothing."""
    table = quarters(60).assign(**{"0": lambda made: (made["0"] * 5).astype(int)})
    if odd:
        table["4"] = table["4"].astype(object)
        table.loc[7, "0"], table.loc[8, "4"], table.loc[9, "1"] = 99, "nothing that was declared", np.inf
        table.at[10, "4"] = 5
    return table


@pytest.mark.parametrize("declared", [{"bounds": (0, 1)}, {"norm": 2.0}])
def test_nobody_with_a_class_is_no_error(declared: Any) -> None:
    session = lc.Session(quarters(20), cap=lc.pool_membership(0.6), seed=1, analyst="ann")
    network = NeuralNetwork(nn.Linear(4, 3), classes=["x", "y", "z"], steps=2)
    made = session.fit(network, ["0", "1", "2", "3"], "4", **declared)
    assert set(made.predict(quarters(20))) <= {"x", "y", "z"}


@pytest.mark.parametrize("odd", [False, True])
def test_nothing_that_one_person_brings_is_told_to_anybody(odd: bool, capfd: Any) -> None:
    network = NeuralNetwork(seeded(Category), classes=["a", "b", "c"], steps=3, scale=False)
    session = lc.Session(odd_table(odd), cap=lc.pool_membership(0.6), seed=1, analyst="ann")
    made = session.fit(network, ["0", "1"], "4", share=0.5)
    assert np.isfinite(weights_of(made.module_)).all() and len(session.history) == 4
    assert capfd.readouterr() == ("", "")


class Stopped(datetime):
    @classmethod
    def now(cls, tz: Any = None) -> Stopped:
        return cls(2026, 1, 1, tzinfo=UTC)


def all_that_is_shown(session: lc.Session) -> list[bytes]:
    module = seeded(lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 3)))
    shown = []
    for share, bounds in ((0.5, (0, 1)), (0.6, (0, 1)), (0.6, None), (0.9, (0, 1))):  # people retire
        try:
            network = NeuralNetwork(module, classes=["a", "b", "c"], steps=4)
            made = session.fit(network, ["0", "1", "2", "3"], "4", bounds=bounds, share=share)
            shown += [weights_of(made.module_).tobytes(), made.predict_proba(quarters(9)).tobytes()]
            shown += [repr(made).encode(), made.certificate_.to_json().encode()]
        except LeakcapError as error:
            shown.append(f"{type(error).__name__}: {error}".encode())
    return [*shown, repr((session.spent, session.remaining, session.history)).encode()]


def rig(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Coins by a seed, and noise that makes the answers the same whatever they are."""
    monkeypatch.setattr(accounts.secrets, "token_bytes", np.random.default_rng(seed).bytes)
    monkeypatch.setattr(desk, "with_noise", lambda total, grains, deviations, _: np.arange(len(total)) % 7 - 3.0)
    monkeypatch.setattr(desk, "datetime", Stopped)


def shown_by_coins(monkeypatch: pytest.MonkeyPatch, folder: Path, analyst: str | None) -> list[list[bytes]]:
    shown, coins = [], []
    for seed in range(3):
        rig(monkeypatch, seed)
        where = f"sqlite:///{folder / f'{seed}.db'}"
        session = lc.Session(quarters(60), cap=0.6, ledger=where, name="people", analyst=analyst)
        shown.append(all_that_is_shown(session))
        coins.append(session._desk.coins.copy())
    assert not np.array_equal(coins[0], coins[1]), "the coins are the same: nothing was compared"
    return shown


@pytest.mark.parametrize("analyst", ["ann", None])
def test_with_the_answers_fixed_all_that_is_shown_is_the_same_whichever_coins_were_secret(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own_key: Path, analyst: str | None
) -> None:
    shown = shown_by_coins(monkeypatch, tmp_path, analyst)
    assert shown[0] == shown[1] == shown[2]


def test_a_planted_error_that_reads_the_coins_is_caught(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own_key: Path
) -> None:
    honest = GradientSums.totals

    def tells(self: GradientSums, deviations: Any, pays: Any, coins: Any, everybody: bool) -> Any:
        if coins[:8].sum() > 4:
            raise LeakcapError("somebody's gradient is not finite")
        return honest(self, deviations, pays, coins, everybody)

    monkeypatch.setattr(GradientSums, "totals", tells)
    shown = shown_by_coins(monkeypatch, tmp_path, None)
    assert not shown[0] == shown[1] == shown[2]
