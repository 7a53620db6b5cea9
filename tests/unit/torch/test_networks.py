"""Networks trained in all worlds together are those that plain training gives in each."""

from __future__ import annotations

from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch

from leakcap.errors import InputError, NumericalError
from leakcap.kernels.gpu import ensemble, mlp, unflatten
from leakcap.worlds import draw_worlds, given_worlds

rng = np.random.default_rng(7)
X = rng.normal(size=(203, 20))
Y = (X[:, :5] + 0.3 * rng.normal(size=(203, 5))).argmax(axis=1)
WORLDS = draw_worlds(203, 6, rng)


def start_of(*sizes: int) -> list[tuple[np.ndarray, np.ndarray]]:
    draw = np.random.default_rng(len(sizes))
    return [(draw.normal(size=(a, b)) / np.sqrt(a), 0.1 * draw.normal(size=b)) for a, b in pairwise(sizes)]


def module_of(start: list[tuple[np.ndarray, np.ndarray]]) -> Any:
    layers: list[Any] = []
    for weight, bias in start:
        layer = torch.nn.Linear(*weight.shape)
        layer.weight.data, layer.bias.data = torch.tensor(weight.T.copy()), torch.tensor(bias)
        layers += [layer, torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def plain(start: list[tuple[np.ndarray, np.ndarray]], mask: np.ndarray, steps: int, rate: float) -> np.ndarray:
    """One world, by torch's own optimiser, in f64."""
    model = module_of(start)
    optimiser = torch.optim.SGD(model.parameters(), lr=rate)
    rows, labels = torch.tensor(X[mask]), torch.tensor(Y[mask])
    for _ in range(steps):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(model(rows), labels).backward()
        optimiser.step()
    linear = [layer for layer in model if isinstance(layer, torch.nn.Linear)]
    return np.concatenate([p.detach().numpy().T.ravel() for layer in linear for p in (layer.weight, layer.bias)])


def apart(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


@pytest.mark.parametrize("sizes", [(20, 5), (20, 17, 5), (20, 30, 12, 5), (20, 9, 8, 7, 5)], ids=str)
@pytest.mark.parametrize(("precision", "to"), [("f64", 1e-12), ("f32", 1e-6)])
def test_weights_equal_plain_training_in_every_world(
    sizes: tuple[int, ...], precision: str, to: float, device: str
) -> None:
    start = start_of(*sizes)
    found = mlp(X, Y, WORLDS, start, steps=40, rate=0.1, precision=precision, device=device)
    expected = np.stack([plain(start, mask, 40, 0.1) for mask in WORLDS.masks()])
    assert found.shape == expected.shape
    # Rounding can switch a neuron on for a row where it would be off: a world in some then differs by more.
    each = [apart(a, b) for a, b in zip(found, expected, strict=True)]
    assert np.median(each) < to
    assert max(each) < 100 * to


@pytest.mark.parametrize(("precision", "to"), [("tf32", 2e-3), ("bf16", 2e-2)])
def test_coarser_precisions_stay_near(precision: str, to: float, device: str) -> None:
    if device == "cpu":
        with pytest.raises(InputError, match="GPU"):
            mlp(X, Y, WORLDS, start_of(20, 30, 12, 5), precision=precision, device=device)
        return
    start = start_of(20, 30, 12, 5)
    found = mlp(X, Y, WORLDS, start, steps=40, rate=0.1, precision=precision, device=device)
    expected = np.stack([plain(start, mask, 40, 0.1) for mask in WORLDS.masks()])
    assert 1e-7 < apart(found, expected) < to


@pytest.mark.parametrize(("middle", "spread"), [(0.0, 1.0), (0.13, 0.31)], ids=["pixels", "standardised"])
def test_whole_multiples_give_the_same_as_other_numbers(middle: float, spread: float, device: str) -> None:
    """They take a shorter way on a GPU."""
    pixels = (np.round(np.abs(X) * 50) / 255 - middle) / spread
    pixels[:, 3] = 7.0  # a constant column
    start = start_of(20, 30, 12, 5)
    found = mlp(pixels, Y, WORLDS, start, steps=20, device=device)
    nearly = mlp(pixels + 1e-7 * X, Y, WORLDS, start, steps=20, device=device)
    exact = mlp(pixels, Y, WORLDS, start, steps=20, precision="f64", device=device)
    assert apart(found, exact) < 1e-5
    assert apart(nearly, exact) < 1e-5


def test_whole_numbers_are_found_behind_any_offset_and_scale() -> None:
    from leakcap.kernels.gpu._fused_mlp import _whole

    # The last column's smallest step, 12, is a multiple of its scale, 4; a column may be constant.
    levels = np.column_stack([np.arange(203) % 256, np.full(203, 3), rng.choice([0, 12, 64, 116], 203)])
    table = torch.tensor((levels / 255 - [0.1, 0.2, 0.3]) / [0.3, 0.4, 0.5])
    whole, scale, offset = _whole(table)
    assert torch.equal(whole, whole.round())
    assert whole.abs().max() <= 256
    assert whole[:, 2].unique().tolist() == [0, 3, 16, 29]
    assert torch.allclose(offset + scale * whole, table, rtol=0, atol=1e-12)
    table[0, 0] += 1e-5
    assert torch.equal(_whole(table)[0], table), "one number that is no whole multiple: all stay as they are"


def test_unpaired_worlds_tiles_and_repeats(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    worlds = draw_worlds(203, 9, rng, 1 / 3)
    start = start_of(20, 30, 12, 5)
    found = mlp(X, Y, worlds, start, steps=10, device=device)
    assert apart(found, np.stack([plain(start, mask, 10, 0.05) for mask in worlds.masks()])) < 1e-4
    assert np.array_equal(found, mlp(X, Y, worlds, start, steps=10, device=device))
    by_two = [slice(first, min(first + 2, 9)) for first in range(0, 9, 2)]
    monkeypatch.setattr(import_module("leakcap.kernels.gpu.mlp"), "_tiles", lambda *_: by_two)
    assert apart(mlp(X, Y, worlds, start, steps=10, device=device), found) < 1e-4


def test_layers_come_back_in_shape() -> None:
    start = start_of(20, 17, 5)
    flat = np.concatenate([part.ravel() for layer in start for part in layer])
    for (weight, bias), (w, b) in zip(unflatten(np.stack([flat, flat]), start), start, strict=True):
        assert np.array_equal(weight[1], w)
        assert np.array_equal(bias[0], b)


def test_a_world_without_rows_stays_at_the_start(device: str) -> None:
    masks = np.vstack([np.zeros((1, 203), dtype=bool), np.ones((1, 203), dtype=bool)])
    worlds = given_worlds(masks, 203)
    start = start_of(20, 30, 12, 5)
    found = mlp(X, Y, worlds, start, steps=5, device=device)
    flat = np.concatenate([part.ravel() for layer in start for part in layer])
    assert apart(found[0], flat) < 1e-7
    assert apart(found[1], plain(start, masks[1], 5, 0.05)) < 1e-4


def test_bad_input_and_divergence_are_told(device: str) -> None:
    with pytest.raises(InputError, match="labels"):
        mlp(X, Y + 1, WORLDS, start_of(20, 5), device=device)
    with pytest.raises(InputError, match="start"):
        mlp(X, Y, WORLDS, start_of(19, 5), device=device)
    with pytest.raises(NumericalError, match="diverged"):
        mlp(X * 1e20, Y, WORLDS, start_of(20, 30, 12, 5), rate=1e25, steps=20, device=device)


def test_an_ensemble_of_any_module_is_plain_training_too(device: str) -> None:
    start = start_of(20, 17, 5)
    loss = torch.nn.CrossEntropyLoss(reduction="none")
    model = module_of(start)
    before = [p.clone() for p in model.parameters()]
    found = ensemble(model, loss, X, Y, WORLDS, steps=25, rate=0.1, together=4, device=device)
    fused = unflatten(mlp(X, Y, WORLDS, start, steps=25, rate=0.1, precision="f64", device=device), start)
    expected = np.concatenate(
        [p.reshape(6, -1) for weight, bias in fused for p in (weight.transpose(0, 2, 1), bias)], axis=1
    )
    assert apart(found, expected) < 1e-12
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    with pytest.raises(NumericalError, match="diverged"):
        ensemble(model, loss, X * 1e200, Y, WORLDS, steps=9, rate=1e200, device=device)
