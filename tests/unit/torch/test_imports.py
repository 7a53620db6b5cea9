"""Torch is loaded by the first call and by nothing else; without it the error says what to install."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import leakcap as lc
from leakcap.errors import InputError, MissingExtra
from leakcap.estimators import NeuralNetwork
from leakcap.kernels import gpu
from leakcap.worlds import draw_worlds

X = np.arange(20.0).reshape(10, 2)
WORLDS = draw_worlds(10, 4, np.random.default_rng(0))


def test_importing_the_kernels_loads_neither_torch_nor_triton() -> None:
    code = "import sys, leakcap.kernels.gpu; sys.exit(bool({'torch', 'triton'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_importing_estimators_and_sessions_loads_no_torch() -> None:
    code = "import sys, leakcap as lc; lc.Session, lc.estimators.NeuralNetwork; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_network_without_torch_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match=r"leakcap\[torch\]"):
        NeuralNetwork(object())


def test_teachers_that_are_networks_name_the_extra_before_anything_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    teacher = lc.labels.MLPTeacher()
    model = lc.labels.PATE(teacher, teacher, epsilon=4.0, n_teachers=5, queries=2, n_classes=2)
    with pytest.raises(MissingExtra, match=r"leakcap\[torch\]"):
        model.fit(X, np.arange(10) % 2)
    assert not hasattr(model, "certificate_")


def test_without_torch_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match=r"leakcap\[torch\]"):
        gpu.means(X, WORLDS, device="cpu")


@pytest.mark.parametrize("device", ["cuda:99", "meta", "somewhere"])
def test_a_device_that_is_not_there_is_refused(device: str) -> None:
    pytest.importorskip("torch")
    with pytest.raises(InputError, match=r"device|run on"):
        gpu.means(X, WORLDS, device=device)
