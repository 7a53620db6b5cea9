"""What can be learnt from labels that nobody may see."""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

import leakcap as lc

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X / 16, y, test_size=0.3, random_state=0)
base = LogisticRegression(C=0.1, max_iter=500)
EPSILONS = (1, 2, 4)

scores = {"taken for labels": [], "taken for observations": []}
for epsilon in EPSILONS:
    krr, best = lc.labels.KRR(epsilon, n_classes=10), lc.labels.auto(epsilon, n_classes=10)
    naive = LogisticRegression(C=0.1, max_iter=500).fit(X, krr.privatize(y))
    model = lc.labels.Classifier(base, best, random_state=0).fit(X, best.privatize(y))
    for name, fitted in zip(scores, (naive, model), strict=True):
        scores[name].append(fitted.score(X_test, y_test))
    right, told = scores["taken for observations"][-1], best.guess_success()
    print(f"epsilon {epsilon}: {right:.0%} right about new digits; a label is guessed with {told:.0%}")

figure, panel = plt.subplots(figsize=(5.6, 3.4), layout="constrained")
for name, values in scores.items():
    panel.plot(EPSILONS, values, "o-", label=name)
panel.axhline(base.fit(X, y).score(X_test, y_test), color="gray", ls=":", label="with true labels")
panel.set(xlabel="epsilon of each label", ylabel="accuracy on test rows")
panel.legend(fontsize=8)
figure.savefig(Path(sys.argv[1] if sys.argv[1:] else ".") / "example-private-labels.png", dpi=110)
