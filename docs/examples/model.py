"""A private classifier beside the one without protection."""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn import linear_model
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import leakcap as lc
from leakcap.estimators import LogisticRegression

data = load_breast_cancer(as_frame=True)
X = data.data[["mean concave points", "mean texture"]].to_numpy() * [100, 1]
X, X_test, y, y_test = train_test_split(X, data.target.to_numpy(), test_size=0.3, random_state=0)

private = LogisticRegression(C=0.1, cap=lc.membership(0.55), worlds=128, options={"draws": 4096}).fit(X, y)
plain = linear_model.LogisticRegression(C=0.1).fit(X, y)
models = {"private": private.estimator_, "without protection": plain}
for name, model in models.items():
    print(f"{name}: right about {model.score(X_test, y_test):.0%} of tumours that it has not seen")

figure, panel = plt.subplots(figsize=(5.6, 3.8), layout="constrained")
across = np.array([X_test[:, 0].min(), X_test[:, 0].max()])
for kind, colour in enumerate(("C3", "C0")):
    panel.scatter(*X_test[y_test == kind].T, s=14, c=colour, alpha=0.6, label=data.target_names[kind])
for (name, model), dash in zip(models.items(), ("-", ":"), strict=True):
    slope = model.coef_[0]
    panel.plot(across, -(model.intercept_[0] + slope[0] * across) / slope[1], f"k{dash}", label=name)
panel.set(xlabel="concave points, in hundredths", ylabel="texture", ylim=(X_test[:, 1].min(), X_test[:, 1].max()))
panel.legend(fontsize=8)
figure.savefig(Path(sys.argv[1] if sys.argv[1:] else ".") / "example-model.png", dpi=110)
