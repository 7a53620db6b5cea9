"""A pipeline with categories, such as people really have, released with one line more."""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import leakcap as lc
from leakcap.estimators import Private

rng = np.random.default_rng(0)  # people who do not exist
people = pd.DataFrame(
    {
        "age": rng.integers(18, 80, 4000),
        "hours": rng.normal(40, 8, 4000).round(),
        "work": rng.choice(["private", "public", "own"], 4000, p=[0.7, 0.2, 0.1]),
        "school": rng.choice(["none", "some", "much"], 4000),
    }
)
score = 0.04 * people["age"] + 0.05 * people["hours"] + 1.5 * (people["school"] == "much") - 4.5
earns = rng.random(4000) < 1 / (1 + np.exp(-score))
train = np.arange(4000) < 3000

columns = make_column_transformer(
    (OneHotEncoder(handle_unknown="ignore"), ["work", "school"]), (StandardScaler(), ["age", "hours"])
)
plain = make_pipeline(columns, LogisticRegression())
private = Private(plain, cap=lc.membership(0.55)).fit(people[train], earns[train])  # plain itself stays unfitted
plain.fit(people[train], earns[train])
right = {"plain": plain.score(people[~train], earns[~train]), "private": private.score(people[~train], earns[~train])}
limit = lc.convert.percent_up(private.certificate_.membership_success)
print(f"private: right about {right['private']:.1%}, plain {right['plain']:.1%}")
print("any person's participation is guessed with at most", limit)

names = [name.split("__")[1] for name in plain[0].get_feature_names_out()]
figure, panel = plt.subplots(figsize=(6, 3.2), layout="constrained")
panel.barh(np.arange(len(names)) + 0.2, plain[-1].coef_[0], 0.4, label="plain", color="0.7")
panel.barh(np.arange(len(names)) - 0.2, private.estimator_[-1].coef_[0], 0.4, label="private")
panel.set(yticks=range(len(names)), yticklabels=names, xlabel="coefficient")
panel.legend(frameon=False)
figure.savefig(Path(sys.argv[1] if sys.argv[1:] else ".") / "example-pipeline.png", dpi=110)
