"""FixMatch that starts from an encoder which learned from pictures alone, not from random weights.

`python -m reproductions.label_dp.central` leaves such an encoder. Few labels go further from there: the first guesses
about pictures without a label are those of their neighbours, not those of a network that has seen nothing.
"""

from __future__ import annotations

import copy
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression

import leakcap as lc
from leakcap.errors import InputError
from reproductions.label_dp.augment import Album
from reproductions.label_dp.central import looks
from reproductions.label_dp.central.contrastive import Contrastive
from reproductions.label_dp.central.encoder import PictureClassifier
from reproductions.label_dp.central.settings import Settings
from reproductions.label_dp.central.store import load_weights
from reproductions.label_dp.judge import recalibrate

COMPONENTS = 128  # of the features that the first guesses stand on
SUREST = 0.3, 0.1, 0.7  # share of every class that a round learns from: at first, more in each round, at most
SHRUNK = 0.05  # of the classes' common covariance, towards a multiple of the unit matrix


class Started:
    """An encoder from its folder, and FixMatch on networks that begin with it.

    `seconds`: what the encoder's training took. `columns`: whitened features, on which first guesses stand.
    """

    def __init__(self, folder: Path, x_train: np.ndarray, settings: Settings, device: torch.device) -> None:
        self.album = Album.of(torch.from_numpy(x_train).to(device))
        self.settings = settings
        training = Contrastive(settings, self.album, device)
        facts = load_weights(folder, "encoder", training.whole)
        if facts is None:
            raise InputError(f"{folder} has no encoder of this width: run reproductions.label_dp.central first")
        self.seconds = float(facts["seconds"] or 0.0)
        self.encoder = training.encoder
        recalibrate(self.encoder, self.album, device)
        self.seen = looks.features(self.encoder, self.album, settings.crops, settings.smallest_crop)
        self.near = looks.nearest(self.seen, settings.neighbours)
        components = min(COMPONENTS, *self.seen.shape)
        self.columns = PCA(components, whiten=True, random_state=0).fit_transform(self.seen.cpu().numpy())

    def guesses(self, known: np.ndarray, classes: int, rounds: int = 0) -> torch.Tensor:
        """Chances of the classes by few labels (-1: none) and by the pictures' neighbours.

        In each of the rounds, discriminants of the surest of every class, and of the labels, guess again.
        """
        rows = np.flatnonzero(known >= 0)
        shares = torch.from_numpy(np.bincount(known[rows], minlength=classes) / len(rows)).to(self.seen)
        guesses = self._near(LogisticRegression(C=0.1, max_iter=500).fit(self.columns[rows], known[rows]), classes)
        first, more, most = SUREST
        for place in range(rounds):
            sure = looks.anchors(looks.balanced(guesses, shares), min(first + more * place, most)).cpu().numpy()
            sure[rows] = np.eye(classes)[known[rows]]
            taught = np.flatnonzero(sure.any(axis=1))
            discriminants = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=SHRUNK)
            guesses = self._near(discriminants.fit(self.columns[taught], sure[taught].argmax(axis=1)), classes)
        return guesses

    def _near(self, guesser: Any, classes: int) -> torch.Tensor:
        """What a classifier of the columns says of a picture and its neighbours."""
        chances = np.zeros((len(self.columns), classes), dtype=np.float32)
        chances[:, guesser.classes_] = guesser.predict_proba(self.columns)
        return looks.averaged(torch.from_numpy(chances).to(self.seen.device), self.near)

    def network(self, known: np.ndarray, classes: int, rounds: int = 0) -> PictureClassifier:
        """The encoder under a head that says what the guesses say."""
        net = PictureClassifier(copy.deepcopy(self.encoder), classes)
        net.start(self.seen, self.guesses(known, classes, rounds))
        return net.trainable()


class StartedFixMatch:
    """What `FixMatch` does, on the network that labels and encoder give; a new one for every fit.

    `rounds`: of guesses about pictures without a label, before the network sees any.
    """

    def __init__(self, started: Started, classes: int, *, rounds: int = 0, **settings: Any) -> None:
        self.started, self.classes, self.rounds, self.settings = started, classes, rounds, settings

    def fit(self, x: np.ndarray, known: np.ndarray) -> StartedFixMatch:
        """The seconds of the settings are for both: first guesses, and training."""
        began, settings = time.perf_counter(), dict(self.settings)
        net = self.started.network(known, self.classes, self.rounds)
        if settings.get("seconds") is not None:
            settings["seconds"] = max(0.001, settings["seconds"] - (time.perf_counter() - began))
        self.model = lc.labels.FixMatch(net, **settings).fit(x, known)
        return self

    def __getattr__(self, name: str) -> Any:
        if name == "model":
            raise AttributeError(name)
        return getattr(self.model, name)
