"""`leakcap obfuscate`: encode, train elsewhere, predict, check."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from leakcap.cli import main
from leakcap.custody.signing import public_half
from leakcap.obfuscation import encoder
from leakcap.obfuscation.certified import EncodingNoise
from leakcap.obfuscation.network import LayeredModel
from tests.refusals import refusal
from tests.unit.cli.encoding import ENCODE, run, trained, write_pool
from tests.unit.obfuscation.pools import pool

X, y = pool()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_key: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    write_pool(tmp_path)
    return tmp_path


def test_owner_server_owner(here: Path, capsys: Any) -> None:
    assert run(*ENCODE, "--out", "out") == 0
    assert "NO CLAIM" in " ".join(capsys.readouterr().out.split())
    assert {one.name for one in Path("out").iterdir()} == {"server", "owner"}
    assert stat.S_IMODE(Path("out/owner").stat().st_mode) == 0o700
    assert stat.S_IMODE(Path("out/owner/encoding.key").stat().st_mode) == 0o600
    trained(Path("out/server"))
    assert run("predict", "model.npz", "pool.csv", "--key", "out/owner/encoding.key", "--out", "found.csv") == 0
    found = Path("found.csv").read_text().split()
    assert found[0] == "prediction" and np.mean(np.array(found[1:]) == y) > 0.9
    assert stat.S_IMODE(Path("found.csv").stat().st_mode) == 0o600
    assert run("check", "out") == 0
    told = " ".join(Path("out/server/certificate.txt").read_text().split())
    assert "smallest and the largest value" in told and "categories of 1 column" in told


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_cap_shows_what_was_certified(
    here: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch, more: list[str]
) -> None:
    """On the screen, and in the result."""
    made = EncodingNoise(0.05, 0.59, 0.53, ((0.01, 0.03),), (0.5, 0.8, 0.9), draws=64, again=0, attempts=1)
    monkeypatch.setattr(encoder, "least_noise", lambda *given, **how: made)
    order = [*ENCODE[: ENCODE.index("--draws")], "--cap", "membership=0.60", "--mix", "3", "--rows-released", "180"]
    assert run(*order, "--out", "out", *more) == 0
    told = capsys.readouterr().out
    if more:
        result = json.loads(told)
        assert (result["membership_success"], result["mean_success"], result["confidence"]) == (0.59, 0.53, 1 - 1e-6)
    else:
        told = " ".join(told.split())
        assert "59.00 % of the time about the worst row, 53.00 % on average, with confidence 1 - 1e-06" in told


def test_a_cap_that_leaves_nothing_to_learn_is_said_before_anything_is_written(
    here: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the accuracy to expect. Noise is set to what such a cap takes, and the certification left out."""
    made = EncodingNoise(30.0, 0.51, 0.505, ((0.01, 0.02),), (0.5, 0.8, 0.81), draws=64, again=0, attempts=1)
    monkeypatch.setattr(encoder, "least_noise", lambda *given, **how: made)
    drawing, heard = encoder.draw_encoded, []

    def noted(*given: Any, **how: Any) -> Any:
        heard.append((" ".join(capsys.readouterr().err.split()), Path("out").exists()))
        return drawing(*given, **how)

    monkeypatch.setattr(encoder, "draw_encoded", noted)
    order = [*ENCODE[: ENCODE.index("--draws")], "--cap", "membership=0.51", "--mix", "3", "--rows-released", "180"]
    assert run(*order, "--out", "out") == 0
    ((told, written),) = heard
    assert re.search(r"about \d+ % right by a linear model, \d+ % from the rows themselves, 33 % by chance", told)
    assert "Nothing was spent or written so far" in told and not written


def test_what_is_left_out_or_constant_is_said(here: Path, capsys: Any) -> None:
    table = pd.read_csv("pool.csv").iloc[20:].assign(c3=7.125)  # 40 ash, 60 birch, 60 cedar
    table.to_csv("pool.csv", index=False)
    assert run(*ENCODE, "--out", "out") == 0
    out, err = capsys.readouterr()
    told = " ".join((out + err).split())
    assert "Classes are of 40 to 60 rows, and 32 of each are sampled: of the largest class 28 rows are left out" in told
    assert "1 of them are the same in every row" in told and "7.125" not in told


def test_scales_and_levels_that_are_given_are_no_facts_of_the_pool(here: Path) -> None:
    bounds = [word for i in range(12) for word in ("--bounds", f"c{i}=-10,10")]
    assert run(*ENCODE, *bounds, "--levels", "colour=red,green,blue", "--out", "out") == 0
    told = " ".join(Path("out/server/certificate.txt").read_text().split())
    assert "smallest and the largest" not in told and "categories of" not in told
    assert np.load("out/server/features.npy").shape == (180, 15)


def test_a_pool_is_encoded_once_and_nothing_is_overwritten(here: Path, capsys: Any) -> None:
    assert run(*ENCODE, "--out", "out") == 0
    key = Path("out/owner/encoding.key").read_bytes()
    assert run(*ENCODE, "--out", "out") == 4
    assert run(*ENCODE, "--bounds", "c0=-9,9", "--out", "other") == 4
    assert "encoded or released before" in capsys.readouterr().err
    assert not Path("other").exists() and Path("out/owner/encoding.key").read_bytes() == key


def test_a_reader_checks_the_certificate_and_who_signed_it(here: Path, capsys: Any) -> None:
    assert run(*ENCODE, "--out", "out") == 0
    certificate = "out/server/certificate.json"
    with pytest.raises(SystemExit) as ended:
        main(["check", "--public", certificate, "--signer", str(public_half())])
    assert not ended.value.code
    assert "is no guarantee" in " ".join(capsys.readouterr().out.split())
    with pytest.raises(SystemExit) as ended:
        main(["check", "--public", "out/server", "--signer", str(public_half())])  # the folder it lies in
    assert not ended.value.code
    with pytest.raises(SystemExit) as ended:
        main(["check", "--public", "out"])
    assert ended.value.code == 2 and "the folder it lies in" in " ".join(capsys.readouterr().err.split())
    changed = Path(certificate).read_text().replace('"mix": 3', '"mix": 30')
    Path(certificate).write_text(changed)
    with pytest.raises(SystemExit) as ended:
        main(["check", "--public", certificate, "--signer", str(public_half())])
    assert ended.value.code == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["encode", "pool.csv", "--label", "kind", "--out", "out"], "--cap membership=0.60, which finds"),
        (["encode", "pool.csv", "--noise", "1", "--out", "out"], "--label NAME"),
        ([*ENCODE, "--bounds", "c0=3", "--out", "out"], "--bounds are two numbers"),
        ([*ENCODE, "--levels", "shape=round", "--out", "out"], "--levels are names"),
        (["encode", "pool.csv", "--label", "kin", "--noise", "1", "--out", "out"], "did you mean 'kind'"),
        ([*ENCODE, "--mask-dim", "99", "--out", "out"], "choose mask_dim=14 or fewer"),
    ],
)
def test_orders_that_make_no_sense_are_refused(here: Path, capsys: Any, words: list[str], said: str) -> None:
    assert run(*words) == 2
    assert said in capsys.readouterr().err
    assert not Path("out").exists()


def test_pictures_are_encoded_by_an_embedding_of_the_users(here: Path) -> None:
    for place, (row, kind) in enumerate(zip(X, y, strict=True)):
        Path("pictures", kind).mkdir(parents=True, exist_ok=True)
        Path("pictures", kind, f"{place}.npy").write_bytes(row.tobytes())
    Path("embedding_of_tests.py").write_text(
        "import numpy as np\ndef rows(files):\n    return [np.frombuffer(one.read_bytes()) for one in files]\n"
    )
    order = ["encode", "pictures", "--embedding", "embedding_of_tests:rows", "--draws", "0", "--noise", "0.001"]
    assert run(*order, "--mix", "3", "--rows-released", "180", "--out", "out") == 0
    trained(Path("out/server"))
    new = ["predict", "model.npz", "pictures/birch", "--key", "out/owner/encoding.key", "--out", "found.csv"]
    assert run(*new) == 0
    lines = Path("found.csv").read_text().split()
    assert lines[0] == "file,prediction" and sum(line.endswith(".npy,birch") for line in lines) > 50
    Path("pictures", "at the top.npy").write_bytes(X[0].tobytes())
    assert run(*[*new[:2], "pictures", *new[3:-1]], "all.csv") == 0  # folders by class, as for encode
    table = pd.read_csv("all.csv")
    assert len(table) == len(X) + 1 and table.file[0] == "at the top.npy"
    right = [Path(file).parent.name == one for file, one in zip(table.file[1:], table.prediction[1:], strict=True)]
    assert np.mean(right) > 0.9
    assert run("check", "out") == 0
    Path("out/server/labels.npy").unlink()
    assert run("check", "out") == 1


class Harmful:
    """What a server might send: whoever unpickles it runs the server's code."""

    def __reduce__(self) -> Any:
        return Path.touch, (Path("run"),)


def test_a_model_file_runs_nothing_of_the_servers(here: Path) -> None:
    harmful = np.empty(1, dtype=object)
    harmful[0] = Harmful()
    np.savez("pickled.npz", weight_0=harmful, bias_0=np.zeros(1))
    Path("plain.npz").write_bytes(b"PK, or so it says")
    np.savez("unnamed.npz", np.zeros((2, 2)))
    np.savez("unfit.npz", weight_0=np.zeros((2, 3)), bias_0=np.zeros(2))
    np.savez("broken.npz", weight_0=np.full((2, 3), np.nan), bias_0=np.zeros(3))
    for name, words in (
        ("pickled", "plain numbers"),
        ("plain", "plain numbers"),
        ("gone", "is not there"),
        ("unnamed", "weight_0, bias_0"),
        ("unfit", "do not fit"),
        ("broken", "plain numbers"),
    ):
        refusal(lambda name=name: LayeredModel.load(Path(f"{name}.npz")), words)
    assert not Path("run").exists()


def test_layers_are_a_network_with_relu_between_them(here: Path) -> None:
    first, second = np.array([[1.0, -1.0]]), np.array([[1.0], [2.0]])
    np.savez("model.npz", weight_0=first, bias_0=np.zeros(2), weight_1=second, bias_1=np.ones(1))
    assert LayeredModel.load(Path("model.npz"))(np.array([[3.0], [-2.0]])).tolist() == [[4.0], [5.0]]
