"""A model file of torch: dense layers are read as numbers, everything else is refused, and nothing of it runs."""

from __future__ import annotations

import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leakcap.obfuscation import state_dict
from leakcap.obfuscation.network import LayeredModel
from tests.refusals import refusal

torch = pytest.importorskip("torch")
SEQUENTIAL = torch.nn.Sequential


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Harmful:
    """What a server might send: whoever unpickles it runs the server's code."""

    def __reduce__(self) -> Any:
        return exec, ("open('run', 'w').close()",)


def network() -> Any:
    torch.manual_seed(0)
    return SEQUENTIAL(torch.nn.Linear(5, 7), torch.nn.ReLU(), torch.nn.Linear(7, 6, bias=False), torch.nn.ReLU(),
                      torch.nn.Linear(6, 3))  # fmt: skip


@pytest.mark.parametrize("ending", ["pt", "pth"])
def test_a_state_dict_scores_as_the_network_does(here: Path, ending: str) -> None:
    made, rows = network(), np.random.default_rng(0).normal(size=(40, 5))
    torch.save(made.state_dict(), f"model.{ending}")
    with torch.no_grad():
        wanted = made(torch.as_tensor(rows, dtype=torch.float32)).numpy()
    np.testing.assert_allclose(LayeredModel.load(Path(f"model.{ending}"))(rows), wanted, atol=1e-5)


def test_halves_are_numbers_too(here: Path) -> None:
    torch.save(network().to(torch.bfloat16).state_dict(), "model.pt")
    assert len(LayeredModel.load(Path("model.pt")).weights) == 3


def saved(what: Any) -> None:
    torch.save(what, "model.pt")


HARMFUL: dict[str, Callable[[], None]] = {
    "in a state dict": lambda: saved({"0.weight": Harmful(), "0.bias": torch.zeros(3)}),
    "beside one": lambda: saved({**network().state_dict(), "words": Harmful()}),
    "by itself": lambda: saved(Harmful()),
    "in the old form": lambda: torch.save(Harmful(), "model.pt", _use_new_zipfile_serialization=False),
    "as a plain pickle": lambda: Path("model.pt").write_bytes(pickle.dumps(Harmful())),
}


@pytest.mark.parametrize("how", HARMFUL)
def test_a_harmful_file_is_not_run(here: Path, how: str) -> None:
    HARMFUL[how]()
    refusal(lambda: LayeredModel.load(Path("model.pt")), "holds no dense layers.*state_dict.*was not run")
    assert not Path("run").exists()


@pytest.mark.parametrize("how", HARMFUL)
def test_these_files_do_run_where_they_are_trusted(here: Path, how: str) -> None:
    """The twin: they are as harmful as they should be."""
    HARMFUL[how]()
    if how == "as a plain pickle":
        pickle.loads(Path("model.pt").read_bytes())
    else:
        torch.load("model.pt", weights_only=False)
    assert Path("run").exists()


def of(*layers: Any) -> dict[str, Any]:
    return dict(SEQUENTIAL(*layers).state_dict())


REFUSED: dict[str, Callable[[], Any]] = {
    "a whole network": network,
    "convolutions": lambda: of(torch.nn.Conv2d(1, 2, 3)),
    "normalised layers": lambda: of(torch.nn.Linear(5, 5), torch.nn.LayerNorm(5)),
    "running means": lambda: of(torch.nn.Linear(5, 5), torch.nn.BatchNorm1d(5)),
    "a bias alone": lambda: {"0.bias": torch.zeros(3)},
    "no tensors": lambda: {"0.weight": [[1.0]], "0.bias": [1.0]},
    "nothing": dict,
    "a list": lambda: [torch.zeros(3, 3)],
    "no numbers": lambda: {"0.weight": torch.full((3, 5), torch.nan), "0.bias": torch.zeros(3)},
    "complex numbers": lambda: {"0.weight": torch.zeros(3, 5, dtype=torch.complex64), "0.bias": torch.zeros(3)},
    "few bytes for many": lambda: {"0.weight": torch.zeros(1, 1).expand(2**20, 2**20), "0.bias": torch.zeros(1)},
    "sparse ones": lambda: {"0.weight": torch.eye(3).to_sparse(), "0.bias": torch.zeros(3)},
    "half a table": lambda: {"weight": torch.zeros(3), "bias": torch.zeros(3)},
}


@pytest.mark.parametrize("what", REFUSED)
def test_anything_but_dense_layers_is_refused(here: Path, what: str) -> None:
    saved(REFUSED[what]())
    refusal(lambda: LayeredModel.load(Path("model.pt")), "holds no dense layers of torch")


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_compiled_networks_and_broken_files_are_refused(here: Path) -> None:
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), "model.pt")
    refusal(lambda: LayeredModel.load(Path("model.pt")), "holds no dense layers")
    saved(network().state_dict())
    whole = Path("model.pt").read_bytes()
    for broken in (whole[: len(whole) // 2], b"", whole.replace(b"weight", b"wait\x00h")):
        Path("model.pt").write_bytes(broken)
        refusal(lambda: LayeredModel.load(Path("model.pt")), "holds no dense layers")


def test_a_file_that_unpacks_to_too_much_is_not_opened(here: Path) -> None:
    with zipfile.ZipFile("model.pt", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("model/data/0", bytes(2**20))
    refusal(lambda: state_dict.layers_of_torch(Path("model.pt"), 2**19), "holds no dense layers")
    saved(network().state_dict())
    assert len(state_dict.layers_of_torch(Path("model.pt"), 2**19)) == 6, "a small one is"


def test_layers_that_do_not_fit_each_other_are_refused(here: Path) -> None:
    saved(of(torch.nn.Linear(5, 4), torch.nn.Linear(3, 2)))
    refusal(lambda: LayeredModel.load(Path("model.pt")), "do not fit each other")


def test_a_torch_that_can_be_made_to_run_files_is_not_trusted(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved(network().state_dict())
    for version in ("2.5.1", "1.13.1+cpu", "unknown"):
        monkeypatch.setattr(torch, "__version__", version)
        refusal(lambda: LayeredModel.load(Path("model.pt")), "torch>=2.8")


def test_a_lost_model_is_said_to_be_lost(here: Path) -> None:
    for name in ("model.pt", "model.npz"):
        refusal(lambda name=name: LayeredModel.load(Path(name)), "is not there.*trained anew")
