"""Keep it, and open it elsewhere."""

from __future__ import annotations

import joblib
import numpy as np

import leakcap as lc
from leakcap.estimators import LogisticRegression
from tests.everyday.desk import Desk, error
from tests.everyday.lists import task
from tests.everyday.models import beans


@task("Save a release, and load it again", within=0)
def folder(desk: Desk) -> float:
    release = lc.release(lc.stats.mean, desk.adult()[["age", "hours_per_week"]], cap=0.55)
    release.save(desk.folder / "means")
    loaded = lc.load(desk.folder / "means")
    assert "55" in (desk.folder / "means" / "public" / "certificate.html").read_text()
    assert loaded.certificate == release.certificate
    return error(loaded.value, release.value)


@task("Ship a model that needs no leakcap", within=0)
def model(desk: Desk) -> float:
    X, X_test, y, _ = beans(desk)
    fitted = LogisticRegression(C=0.1, cap=0.55, worlds=64).fit(X, y)
    joblib.dump(fitted.estimator_, desk.folder / "model.joblib")
    shipped = joblib.load(desk.folder / "model.joblib")
    assert type(shipped).__module__.startswith("sklearn.")
    return float(np.mean(shipped.predict(X_test) != fitted.predict(X_test)))
