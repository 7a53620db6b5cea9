"""`leakcap demo` as a stranger meets it: one command, two answers, two folders."""

import io
import json
import os
import pickle
import stat
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout

import numpy as np
import pytest

import leakcap as lc
import leakcap.report
from leakcap.audit.noiseless import exact_success
from leakcap.cli import main
from leakcap.custody.folders import Folders
from leakcap.planning.released import forget_released

PUBLIC = {
    f"{name}-{kind}"
    for name in ("means", "kmeans")
    for kind in ("answer.csv", "answer.json", "certificate.html", "certificate.json", "release.json")
} | {"kmeans-centres.json", "kmeans-model.pkl"}
CUSTODIAN = {f"{name}-{kind}" for name in ("means", "kmeans") for kind in ("report.html", "exposure.csv")}
CUSTODIAN |= {"means-at-a-glance.png", "kmeans-worlds.png"}


def command_line(*arguments, folder=None):
    """The command in a process of its own: releases in this one would count as repeated."""
    command = [sys.executable, "-m", "leakcap", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)


def small_demo(patch, folder):
    """Exit code, standard output and standard error of a demo in this process, as if it were its first release.

    How many worlds and draws is not the point: the last test runs the demo at its real size, in a process of its own.
    """
    forget_released()
    patch.chdir(folder)
    patch.setattr("leakcap.cli.demo.DRAWS", 256)
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as end:
        main(["demo", "--worlds", "16", "--cap", "0.6"])
    return end.value.code or 0, out.getvalue(), err.getvalue()


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch:
        code, said, remarks = small_demo(patch, folder)
    assert code == 0, remarks
    return (said, remarks), folder / "leakcap-demo"


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_demo_tells_worlds_noise_certificate_and_usefulness(demo):
    (said, remarks), _ = demo
    for told in ("16 possible worlds", "noise", "Certificate", "Usefulness", "released", "expected", "Done in"):
        assert told in said
    assert "60 % success" in said
    assert "Warning" not in remarks


def test_files_are_sorted_into_public_and_custodian(demo):
    _, out = demo
    assert {path.name for path in out.iterdir()} == {"public", "custodian"}
    assert {path.name for path in (out / "public").iterdir()} == PUBLIC
    assert {path.name for path in (out / "custodian").iterdir()} == CUSTODIAN
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in out.rglob("*.png"))


def test_custodian_files_open_for_their_owner_alone(demo):
    _, out = demo
    assert mode(out / "custodian") == 0o700
    assert {mode(path) for path in (out / "custodian").iterdir()} == {0o600}
    assert all("CUSTODIAN ONLY" in path.read_text() for path in (out / "custodian").glob("*.html"))
    assert not [path for path in (out / "public").glob("*.html") if "CUSTODIAN" in path.read_text()]


@pytest.mark.parametrize(("name", "outputs"), [("means", 4), ("kmeans", 12)])
def test_published_certificate_is_whole_and_keeps_the_cap(demo, name, outputs):
    _, out = demo
    text = (out / "public" / f"{name}-certificate.json").read_text()
    certificate = lc.Certificate.from_json(text)
    assert certificate.to_json() == text
    assert certificate.kind == "exact"
    assert certificate.outputs == certificate.noised_directions == outputs
    assert 0.5 < certificate.membership_success <= 0.6


def test_public_answers_hold_released_values_and_error_bars_only(demo):
    _, out = demo
    means = json.loads((out / "public" / "means-answer.json").read_text())["answer"]
    assert len(means) == 4
    for one in means:
        assert set(one) == {"output", "released", "low_95", "high_95"}
        assert one["low_95"] < one["released"] < one["high_95"]
        middle = (one["low_95"] + one["high_95"]) / 2  # centred on the release, not on the pool
        assert middle == pytest.approx(one["released"], rel=1e-3)
    kmeans = json.loads((out / "public" / "kmeans-centres.json").read_text())
    assert set(kmeans) == {"measurements (cm)", "centres"}
    assert np.shape(kmeans["centres"]) == (3, 4)


def test_published_model_predicts_and_carries_nothing_of_the_worlds(demo):
    _, out = demo
    model = pickle.loads((out / "public" / "kmeans-model.pkl").read_bytes())
    assert set(model.predict(np.full((5, 4), 0.5))) <= {0, 1, 2}
    arrays = {name: value.shape for name, value in vars(model).items() if isinstance(value, np.ndarray)}
    assert arrays == {"cluster_centers_": (3, 4), "init": (3, 4)}
    assert (model.init == np.repeat([[0.25], [0.5], [0.75]], 4, axis=1)).all()
    assert not {"labels_", "n_iter_", "inertia_", "_tol"} & set(vars(model))


def test_files_left_open_by_somebody_are_closed(tmp_path):
    (tmp_path / "custodian").mkdir(mode=0o755)
    (tmp_path / "custodian" / "plan.txt").write_text("old")
    (tmp_path / "custodian" / "plan.txt").chmod(0o666)
    folders = Folders.under(tmp_path)
    path = folders.keep("plan.txt", "new")
    assert (mode(folders.custodian), mode(path), path.read_text()) == (0o700, 0o600, "new")


def test_custodian_files_do_not_follow_links(tmp_path):
    elsewhere = tmp_path / "elsewhere.txt"
    elsewhere.write_text("untouched")
    folders = Folders.under(tmp_path / "out")
    (folders.custodian / "plan.txt").symlink_to(elsewhere)
    folders.keep("plan.txt", "secret")
    assert elsewhere.read_text() == "untouched"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--cap", "0.5"], "coin flip"), (["--cap", "1.5"], "from 0 to 1"), (["--worlds", "1"], "worlds")],
)
def test_errors_are_told_without_traceback_and_exit_with_2(arguments, message, tmp_path, capsys):
    with pytest.raises(SystemExit) as end:
        main(["demo", "--out", str(tmp_path / "out"), *arguments])
    assert end.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("leakcap: ")
    assert message in said
    assert "Traceback" not in said
    assert not list(tmp_path.rglob("*.*"))  # no file, half-written or whole


def test_a_folder_that_cannot_be_made_is_an_error_of_ours(tmp_path, capsys):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(SystemExit) as end:
        main(["demo", "--out", str(tmp_path / "taken")])
    assert end.value.code == 2
    assert "choose another --out" in capsys.readouterr().err


def test_without_matplotlib_everything_but_the_pictures_is_made(tmp_path, monkeypatch):
    """One line says what to install."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "leakcap.report.figures", raising=False)
    monkeypatch.delattr(leakcap.report, "figures", raising=False)
    code, said, remarks = small_demo(monkeypatch, tmp_path)
    assert code == 0, remarks
    assert " ".join(said.split()).count("pip install 'leakcap[plots]'") == 1
    assert {path.name for path in (tmp_path / "leakcap-demo" / "public").iterdir()} == PUBLIC
    drawn = {name for name in CUSTODIAN if name.endswith(".png")}
    assert {path.name for path in (tmp_path / "leakcap-demo" / "custodian").iterdir()} == CUSTODIAN - drawn


def test_exact_answers_give_everybody_away():
    masks = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]], dtype=bool)
    assert exact_success(np.arange(4.0)[:, None], masks) == 1.0
    assert exact_success(np.zeros((4, 2)), masks) == 0.5
    # Worlds 0 and 2 answer alike: they agree on the first and the last unit, and only on those.
    assert exact_success(np.array([[0.0], [1.0], [0.0], [2.0]]), masks) == 1.0
    assert exact_success(np.array([[0.0], [0.0], [1.0], [1.0]]), masks) == 0.5


def test_the_command_starts_without_loading_what_it_does_not_need():
    heavy = "numpy", "scipy", "matplotlib", "sklearn", "pandas", "numba", "torch", "joblib"
    code = f"import sys, leakcap.cli; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout.strip() == "[]"


def test_version_is_told():
    assert command_line("--version").stdout == f"leakcap {lc.__version__}\n"


@pytest.mark.slow
def test_the_demo_runs_at_its_real_size(tmp_path):
    done = command_line("demo", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in (tmp_path / "leakcap-demo" / "public").iterdir()} == PUBLIC
