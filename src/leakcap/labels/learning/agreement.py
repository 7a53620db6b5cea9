"""The loop of FixMatch: a few labels, and agreement of a network with itself on two views of all other rows."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from leakcap.errors import InputError, NumericalError
from leakcap.kernels.gpu.device import Tensor, load
from leakcap.labels.learning.picture_views import Album

__all__ = ["Agreement", "GivenViews", "PictureViews", "Views"]

MOMENTUM = 0.9
ALIGNING = 0.01  # of the running mean of guesses, a step
LOOK_EVERY = 20  # steps between looks at the clock, each of which waits for the device


class Views(Protocol):
    """Rows as they are, and two random views of them."""

    def __len__(self) -> int: ...

    def plain(self, rows: Tensor) -> Tensor: ...

    def weak(self, rows: Tensor) -> Tensor: ...

    def strong(self, rows: Tensor) -> Tensor: ...


@dataclass(frozen=True)
class PictureViews:
    """Views of pictures."""

    album: Album

    def __len__(self) -> int:
        return len(self.album.pixels)

    def plain(self, rows: Tensor) -> Tensor:
        return self.album.plain(rows)

    def weak(self, rows: Tensor) -> Tensor:
        return self.album.weak(rows)

    def strong(self, rows: Tensor) -> Tensor:
        return self.album.strong(rows)


@dataclass(frozen=True)
class GivenViews:
    """Views of rows of any kind, by functions of a batch."""

    rows: Tensor
    make_weak: Callable[[Tensor], Tensor]
    make_strong: Callable[[Tensor], Tensor]

    def __len__(self) -> int:
        return len(self.rows)

    def plain(self, rows: Tensor) -> Tensor:
        return self.rows[rows]

    def weak(self, rows: Tensor) -> Tensor:
        return self.make_weak(self.rows[rows])

    def strong(self, rows: Tensor) -> Tensor:
        return self.make_strong(self.rows[rows])


class Agreement:
    """One training. `settings` has those of `FixMatch`; `known`: rows with labels; `codes`: their classes.

    `began`: when, on `time.perf_counter`, the seconds of the settings began to count.
    """

    def __init__(self, settings: Any, views: Views, known: Tensor, codes: Tensor, *, began: float) -> None:
        self.settings, self.views, self.known, self.codes, self.began = settings, views, known, codes, began
        self.device = known.device
        self.made = 0
        torch = load()
        self.net = copy.deepcopy(settings.module).to(self.device).train()
        with torch.no_grad():
            columns = self.net.eval()(views.plain(known[:2])).shape[-1]  # lazy layers take shape here
        self.net.train()
        if any(w.ndim == 4 for w in self.net.parameters()):
            self.net = self.net.to(memory_format=torch.channels_last)
        self.forward = torch.compile(self.net, dynamic=False) if settings.compiled else self.net
        self.classes = int(codes.max()) + 1
        if columns < self.classes:
            raise InputError(f"the module has {columns} columns for {self.classes} classes: widen its last layer")
        self.averaged = copy.deepcopy(self.net).requires_grad_(False)
        self.weights = [w for w in self.net.parameters() if w.requires_grad]
        self.means = [
            m for m, w in zip(self.averaged.parameters(), self.net.parameters(), strict=True) if w.requires_grad
        ]
        self.optimizer = torch.optim.SGD(
            [
                {"params": [w for w in self.weights if w.ndim > 1], "weight_decay": settings.weight_decay},
                {"params": [w for w in self.weights if w.ndim <= 1], "weight_decay": 0.0},
            ],
            lr=settings.learning_rate,
            momentum=MOMENTUM,
            nesterov=True,
            fused=self.device.type == "cuda",
        )
        self.taught = torch.zeros((), device=self.device)
        self.shares = torch.bincount(codes, minlength=self.classes) / len(codes)
        self.guessed = self.shares.clone()  # how often each class is guessed, on the run

    def loss(self) -> Tensor:
        """The loss of one step on rows drawn anew."""
        torch, given = load(), self.settings
        some = torch.randint(len(self.known), (given.batch_size,), device=self.device)
        others = torch.randint(len(self.views), (given.mu * given.batch_size,), device=self.device)
        with torch.no_grad():
            x = torch.cat((self.views.weak(self.known[some]), self.views.weak(others), self.views.strong(others)))
        cuda = self.device.type == "cuda"
        with torch.autocast(self.device.type, torch.bfloat16, enabled=cuda):
            logits = self.forward(x)
        labelled, weak, strong = logits.float().split((len(some), len(others), len(others)))
        # A class of no labelled row is never taught: the paper has labels of all classes.
        sure, named = self.guesses(weak.detach()[:, : self.classes].softmax(1)).max(1)
        taught = (sure >= given.confidence).float()
        self.taught = torch.lerp(self.taught, taught.mean(), 0.01)
        entropy = torch.nn.functional.cross_entropy
        agreed = (taught * entropy(strong, named, reduction="none")).mean()
        return entropy(labelled, self.codes[some]) + given.unlabelled_weight * agreed

    def guesses(self, chances: Tensor) -> Tensor:
        """Chances of rows without a label; aligned ones have on the run the classes' shares among labelled rows."""
        if not self.settings.aligned:
            return chances
        self.guessed.lerp_(chances.mean(0), ALIGNING)
        chances = chances * (self.shares / self.guessed.clamp_min(1e-6))
        return chances / chances.sum(1, keepdim=True)

    def run(self) -> Any:
        """Train; returns the averaged network."""
        torch, given = load(), self.settings
        looked, done = math.inf, 0.0
        while done < 1:
            for group in self.optimizer.param_groups:
                group["lr"] = given.learning_rate * math.cos(7 * math.pi * done / 16)
            loss = self.loss()
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            self.made += 1
            with torch.no_grad():
                kept = min(given.ema_decay, self.made / (9 + self.made))  # a young average forgets its random start
                torch._foreach_lerp_(self.means, self.weights, 1 - kept)
            done = max(done, self.made / given.steps)
            if given.seconds is not None and self.made % LOOK_EVERY == 0:
                loss.item()  # waits for the device
                now = time.perf_counter()
                passed, next_ones = (
                    now - self.began,
                    max(0.0, now - looked),
                )  # the first may have had a compiler to wait for
                looked = now
                done = 1.0 if passed + next_ones > given.seconds else max(done, passed / given.seconds)
        for mean, value in zip(self.averaged.buffers(), self.net.buffers(), strict=True):
            mean.copy_(value)
        if not all(bool(torch.isfinite(mean).all()) for mean in self.means):
            raise NumericalError("training diverged: lower learning_rate")
        return self.averaged.eval()
