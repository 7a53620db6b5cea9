"""Torch modules trained in a session: how often they are right, beside logistic regression there and without noise.

`python -m benchmarks.session_networks [embeddings] [fresh] [--rehearse]`, with the extra `torch`. "embeddings": ten
classes of CIFAR-10 from stored embeddings, on which settings were rehearsed. "fresh": data on which nobody tuned them.
`--rehearse` looks at other training rows in place of the test rows, and stores nothing.
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import leakcap as lc
from benchmarks.records import record
from benchmarks.session_training import FRESH, TOPIC, Rows, Seen, embeddings, in_session
from leakcap.errors import BoundsWarning
from leakcap.kernels.gpu.device import load

SEEDS, SPLITS = 5, 10
CAP = 0.6
HIDDEN = 64
EPOCHS, BATCH = 30, 128  # of training without noise


def linear(columns: int, classes: int) -> Any:
    torch = load()

    return torch.nn.Linear(columns, classes)


def one_hidden_layer(columns: int, classes: int) -> Any:
    torch = load()

    return torch.nn.Sequential(torch.nn.Linear(columns, HIDDEN), torch.nn.Tanh(), torch.nn.Linear(HIDDEN, classes))


MODULES = {"a linear layer": linear, f"a hidden layer of {HIDDEN}": one_hidden_layer}


def network_in_session(train: Rows, test: Rows, make: Any, seed: int, **declared: Any) -> tuple[float, float]:
    """Per cent right, and CPU seconds, of one fit that may take the whole clock."""
    torch = load()

    (X, y), classes = train, np.unique(train[1]).tolist()
    torch.manual_seed(seed)
    began = time.process_time()
    network = lc.estimators.NeuralNetwork(make(X.shape[1], len(classes)), classes=classes)
    session = lc.Session((X, y), cap=CAP, seed=seed)
    fitted = session.fit(network, target=str(X.shape[1]), share=1.0, **declared)
    seconds = time.process_time() - began
    return 100 * float((fitted.predict(test[0]) == test[1]).mean()), seconds


def without_noise(train: Rows, test: Rows, make: Any, seed: int) -> float:
    """The same module trained by Adam on all rows, standardised."""
    torch = load()

    scaler, classes = StandardScaler().fit(train[0]), np.unique(train[1])
    rows, codes = torch.tensor(scaler.transform(train[0]), dtype=torch.float32), np.searchsorted(classes, train[1])
    torch.manual_seed(seed)
    module = make(rows.shape[1], len(classes))
    adam = torch.optim.Adam(module.parameters(), lr=1e-3, weight_decay=1e-3)
    for _ in range(EPOCHS):
        for some in torch.randperm(len(rows)).split(BATCH):
            loss = torch.nn.functional.cross_entropy(module(rows[some]), torch.tensor(codes)[some])
            adam.zero_grad()
            loss.backward()
            adam.step()
    with torch.no_grad():
        said = module(torch.tensor(scaler.transform(test[0]), dtype=torch.float32)).argmax(1).numpy()
    return 100 * float((classes[said] == test[1]).mean())


def _seen(pairs: list[tuple[float, float]]) -> Seen:
    return Seen([right for right, _ in pairs], float(np.median([seconds for _, seconds in pairs])))


def _told(name: str, seen: dict[str, Seen], claim: str, part: str, rehearse: bool) -> None:
    words = (
        f"{seen['session'].words}, {seen['session'].seconds:.2g} CPU s a fit; logistic regression in a session "
        f"{seen['logistic'].words}; the same module without a cap {seen['plain'].words}"
    )
    print(f"{name}: {words}", flush=True)
    if not rehearse:
        command = f"python -m benchmarks.session_networks {part}"
        record(f"session-networks-{name}", words, topic=TOPIC, claim=claim, command=command, asked="-")


def of_embeddings(rehearse: bool = False) -> None:
    train, test = embeddings(rehearse)
    logistic = _seen([in_session(train, test, CAP, seed, norm=1.0) for seed in range(SEEDS)])
    for words, make in MODULES.items():
        pairs = [network_in_session(train, test, make, seed, norm=1.0) for seed in range(SEEDS)]
        plain = Seen([without_noise(train, test, make, seed) for seed in range(2)], 0.0)
        _told(
            f"embeddings-{words.replace(' ', '-')}",
            {"session": _seen(pairs), "logistic": logistic, "plain": plain},
            "CIFAR-10 embeddings, 10 classes, 10,000 training rows of 1,280 numbers: a torch module, "
            f"{words}, trained in a session with a whole clock at a membership cap of {CAP:.2f}; right on 10,000 test "
            f"rows, mean of {SEEDS} seeds",
            "embeddings",
            rehearse=rehearse,
        )


def of_fresh_data(rehearse: bool = False) -> None:
    """Three quarters of the rows are trained on; no rehearsal, because nothing is chosen."""
    warnings.simplefilter("ignore", BoundsWarning)  # digits go from 0 to 16, whoever wrote them
    for name, made in FRESH.items():
        (X, y), declared = made()
        found: dict[str, list[tuple[float, float]]] = {"session": [], "logistic": [], "plain": []}
        for seed in range(SPLITS):
            parts = train_test_split(X, y, test_size=0.25, random_state=seed, stratify=y)
            train, test = (parts[0], parts[2]), (parts[1], parts[3])
            found["session"].append(network_in_session(train, test, one_hidden_layer, seed, **declared))
            found["logistic"].append(in_session(train, test, CAP, seed, **declared))
            found["plain"].append((without_noise(train, test, one_hidden_layer, seed), 0.0))
        _told(
            f"fresh-{name.replace(' ', '-')}",
            {kind: _seen(pairs) for kind, pairs in found.items()},
            f"Fresh data, {name}, {len(train[1]):,} rows of {X.shape[1]} numbers: a torch module, a hidden layer of "
            f"{HIDDEN}, trained in a session with a whole clock at a membership cap of {CAP:.2f}; right on "
            f"{len(test[1]):,} other rows, mean of {SPLITS} splits",
            "fresh",
            rehearse=rehearse,
        )


PARTS = {"embeddings": of_embeddings, "fresh": of_fresh_data}

if __name__ == "__main__":
    for part in [one for one in sys.argv[1:] if one != "--rehearse"] or PARTS:
        PARTS[part]("--rehearse" in sys.argv)
