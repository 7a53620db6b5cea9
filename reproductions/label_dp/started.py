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
from sklearn.linear_model import LogisticRegression

import leakcap as lc
from leakcap.errors import InputError
from reproductions.label_dp.augment import Album
from reproductions.label_dp.central import looks
from reproductions.label_dp.central.contrastive import Contrastive
from reproductions.label_dp.central.encoder import PictureClassifier
from reproductions.label_dp.central.selftrain import School, Schooling
from reproductions.label_dp.central.settings import Settings
from reproductions.label_dp.central.store import load_weights
from reproductions.label_dp.judge import recalibrate

COMPONENTS = 128  # of the features that the first guesses stand on
OWN = 0.1  # of a guess that is a picture's own in every round; the rest is its neighbours'


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

        In each of the rounds by their neighbours too, and at the labels' shares of the classes. They stay as unsure as
        the labels leave them: FixMatch is taught by what it is sure of from its first step on.
        """
        rows = np.flatnonzero(known >= 0)
        guesser = LogisticRegression(C=0.1, max_iter=500).fit(self.columns[rows], known[rows])
        chances = np.zeros((len(self.columns), classes), dtype=np.float32)
        chances[:, guesser.classes_] = guesser.predict_proba(self.columns)
        own = torch.from_numpy(chances).to(self.seen.device)
        guesses = looks.averaged(own, self.near)
        for _ in range(rounds):
            guesses = OWN * own + (1 - OWN) * looks.averaged(guesses, self.near)
        return looks.balanced(guesses, self._shares(known, classes)) if rounds else guesses

    def network(self, known: np.ndarray, classes: int, rounds: int = 0, school: float = 0.0) -> PictureClassifier:
        """The encoder under a head that says what the guesses say, schooled on the surest for so many seconds."""
        guesses = self.guesses(known, classes, rounds)
        net = PictureClassifier(copy.deepcopy(self.encoder), classes)
        net.start(self.seen, guesses)
        return self._schooled(net.trainable(), guesses, known, school) if school else net.trainable()

    def _schooled(
        self, net: PictureClassifier, guesses: torch.Tensor, known: np.ndarray, seconds: float
    ) -> PictureClassifier:
        evidence = looks.anchors(guesses, self.settings.surest).cpu().numpy()
        rows = np.flatnonzero(known >= 0)
        evidence[rows] = np.eye(evidence.shape[1])[known[rows]]
        shares = self._shares(known, evidence.shape[1])
        lesson = Schooling(torch.from_numpy(evidence).to(self.seen), shares, self.settings.school_lr)
        school = School(net, self.album, lesson, self.settings)
        school.run(seconds)
        recalibrate(school.averaged, self.album, self.seen.device)
        return school.averaged.trainable()

    def _shares(self, known: np.ndarray, classes: int) -> torch.Tensor:
        """How frequent the classes are among labels."""
        counts = np.bincount(known[known >= 0], minlength=classes)
        return torch.from_numpy(counts / counts.sum()).to(self.seen)


class StartedFixMatch:
    """What `FixMatch` does, on the network that labels and encoder give; a new one for every fit.

    `rounds`: of guesses about pictures without a label, before the network sees any; `school`: seconds of its school on
    the surest of these, before FixMatch.
    """

    def __init__(
        self, started: Started, classes: int, *, rounds: int = 0, school: float = 0.0, **settings: Any
    ) -> None:
        self.started, self.classes, self.settings = started, classes, settings
        self.rounds, self.school = rounds, school

    def fit(self, x: np.ndarray, known: np.ndarray) -> StartedFixMatch:
        """The seconds of the settings are for all: first guesses, school, and FixMatch."""
        began, settings = time.perf_counter(), dict(self.settings)
        net = self.started.network(known, self.classes, self.rounds, self.school)
        if settings.get("seconds") is not None:
            settings["seconds"] = max(0.001, settings["seconds"] - (time.perf_counter() - began))
        self.model = lc.labels.FixMatch(net, **settings).fit(x, known)
        return self

    def __getattr__(self, name: str) -> Any:
        if name == "model":
            raise AttributeError(name)
        return getattr(self.model, name)
