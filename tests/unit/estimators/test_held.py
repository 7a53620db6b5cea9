"""Pipelines with categories, bins and knots: their form is the pool's, is listed, and leaves as plain scikit-learn."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)

import leakcap as lc
from leakcap.errors import SmallGroupWarning
from leakcap.estimators import Private

N = 120
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "age": RNG.integers(18, 90, N).astype(float),
        "size": RNG.normal(size=N),
        "ward": RNG.choice(["A", "B", "C"], N, p=[0.6, 0.34, 0.06]),
        "job": RNG.choice(["none", "some"], N),
    }
)
TABLE.loc[::7, "size"] = np.nan
TABLE.loc[::11, "job"] = None
Y = (TABLE["age"] + 20 * (TABLE["ward"] == "A") + RNG.normal(0, 10, N) > 65).to_numpy()
HOW: dict[str, Any] = {"cap": lc.membership(0.9), "worlds": 16, "random_state": 0, "options": {"draws": 256}}
FEW = "ignore:fewer than 5|:leakcap.errors.UselessReleaseWarning"


def columns(**parts: Any) -> Any:
    return ColumnTransformer([(name, one, some) for name, (one, some) in parts.items()])


FORMS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "categories": (columns(w=(OneHotEncoder(), ["ward"])), ("Categories of ward (OneHotEncoder)",)),
    "few categories": (
        columns(w=(OneHotEncoder(min_frequency=10, handle_unknown="infrequent_if_exist"), ["ward"])),
        ("Categories of ward (OneHotEncoder)",),
    ),
    "dense and a scale": (
        columns(n=(StandardScaler(), ["age"]), w=(OneHotEncoder(sparse_output=False), ["ward"])),
        ("Categories of ward (OneHotEncoder)",),
    ),
    "given categories": (columns(w=(OneHotEncoder(categories=[["A", "B", "C"]]), ["ward"])), ()),
    "in order": (columns(w=(OrdinalEncoder(), ["ward"])), ("Categories of ward (OrdinalEncoder)",)),
    "targets": (columns(w=(TargetEncoder(cv=2), ["ward"])), ("Categories of ward (TargetEncoder)",)),
    "bins": (columns(a=(KBinsDiscretizer(4), ["age"])), ("Bins of age (KBinsDiscretizer)",)),
    "knots": (columns(a=(SplineTransformer(4), ["age"])), ("Knots of age (SplineTransformer)",)),
    "missing text": (
        columns(j=(make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()), ["job"])),
        ("What missing cells become of job (SimpleImputer)", "Categories of job (OneHotEncoder)"),
    ),
    "knots of filled cells": (
        columns(s=(make_pipeline(SimpleImputer(strategy="most_frequent"), SplineTransformer(3)), ["size"])),
        ("What missing cells become of size (SimpleImputer)", "Knots of size (SplineTransformer)"),
    ),
    "missing numbers": (columns(s=(make_pipeline(SimpleImputer(), StandardScaler()), ["age", "size"])), ()),
    "a union": (
        make_pipeline(
            columns(a=("passthrough", ["age"])), FeatureUnion([("b", KBinsDiscretizer(3)), ("s", StandardScaler())])
        ),
        ("Bins of the columns (KBinsDiscretizer)",),
    ),
}


@pytest.mark.filterwarnings(FEW)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", [pd.DataFrame, pl.from_pandas], ids=["pandas", "polars"])
def test_the_form_is_the_pools_and_is_listed(form: str, kind: Any) -> None:
    transformer, listed = FORMS[form]
    model = Private(make_pipeline(transformer, LogisticRegression()), **HOW).fit(kind(TABLE), Y)
    public = " ".join(model.certificate_.pool_public)
    assert all(words in public for words in listed)
    assert listed or not any(word in public for word in ("Categories", "Bins", "Knots", "missing"))
    content = pickle.dumps(model.estimator_)
    assert b"leakcap" not in content, "the released pipeline is plain scikit-learn"
    assert pickle.loads(content).predict(kind(TABLE)).shape == (N,)
    plain = clone(make_pipeline(transformer, LogisticRegression())).fit(kind(TABLE), Y)
    assert model.estimator_[-1].coef_.shape == plain[-1].coef_.shape


@pytest.mark.filterwarnings(FEW)
def test_rare_categories_are_warned_about() -> None:
    rare = TABLE.assign(ward=["D", *TABLE["ward"][1:]])
    model = Private(make_pipeline(columns(w=(OneHotEncoder(), ["ward"])), Ridge()), **HOW)
    with pytest.warns(SmallGroupWarning):
        model.fit(rare, TABLE["age"])


@pytest.mark.filterwarnings(FEW)
def test_a_search_over_a_pipeline_with_categories() -> None:
    pipeline = make_pipeline(columns(w=(OneHotEncoder(), ["ward"]), a=(StandardScaler(), ["age"])), Ridge())
    model = Private(GridSearchCV(pipeline, {"ridge__alpha": [1.0, 10.0]}, cv=2), **HOW).fit(TABLE, TABLE["age"])
    assert model.predict(TABLE).shape == (N,)
    assert any("Categories of ward" in words for words in model.certificate_.pool_public)


@pytest.mark.filterwarnings(FEW)
def test_parameters_are_as_they_were_asked_for() -> None:
    pipeline = make_pipeline(columns(w=(OneHotEncoder(handle_unknown="ignore"), ["ward"])), LogisticRegression(C=0.5))
    model = Private(pipeline, **HOW).fit(TABLE, Y)
    asked, made = pipeline.get_params(), model.estimator_.get_params()
    assert made.keys() == asked.keys()
    assert all(made[name] == asked[name] for name in asked if isinstance(asked[name], (str, float, int, type(None))))
    assert not hasattr(pipeline[0], "transformers_")
    assert FunctionTransformer  # what takes nothing from the data needs nothing
