"""A network that teaches itself from evidence about labels: post-processing of what was released.

The target of a picture joins evidence (log-likelihoods of classes) with the network's own prediction on a weak view, as
in `reproductions.label_dp.train`; weak and strong views learn it. Evidence that is only a guess, the anchors, fades
while the network's trust in itself grows, and pictures without a clear target wait.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from leakcap.errors import NumericalError
from reproductions.label_dp.augment import Album
from reproductions.label_dp.central.encoder import PictureClassifier
from reproductions.label_dp.central.pace import clock, epochs_in
from reproductions.label_dp.central.settings import Settings
from reproductions.label_dp.train import Say, autocast

MOMENTUM, WARM_UP, AVERAGED = 0.9, 0.15, 0.99
LARGEST_GRADIENT = 5.0
BALANCE_STEP = 0.02
REPORTS = 5


@dataclass(frozen=True)
class Schooling:
    """What is taught, and how.

    `evidence`: `(pictures, classes)`, in nats once multiplied by `weight`, which goes in a line from its first value to
    its last; so does `power`, that of the own prediction. `sure`: pictures whose target is less clear wait.
    `shares`: how frequent the classes are.
    """

    evidence: Tensor
    shares: Tensor
    lr: float
    weight: tuple[float, float] = (8.0, 1.0)
    power: tuple[float, float] = (1.0, 2.0)
    sure: float = 0.9


class School:
    """One training: the network, its running average, and the targets of every step."""

    def __init__(
        self,
        net: PictureClassifier,
        album: Album,
        schooling: Schooling,
        settings: Settings,
        say: Say = print,
        *,
        compiled: bool = False,
    ) -> None:
        self.forward = torch.compile(net, dynamic=False) if compiled else net
        self.net, self.album, self.schooling, self.settings, self.say = net, album, schooling, settings, say
        self.device = album.pixels.device
        self.averaged = copy.deepcopy(net).requires_grad_(False)
        self.mean = schooling.shares.clone()
        weights = list(net.parameters())
        self.optimizer = torch.optim.SGD(
            [
                {"params": [w for w in weights if w.ndim > 1], "weight_decay": settings.weight_decay},
                {"params": [w for w in weights if w.ndim <= 1], "weight_decay": 0.0},
            ],
            lr=schooling.lr,
            momentum=MOMENTUM,
            nesterov=True,
            fused=self.device.type == "cuda",
        )

    @torch.no_grad()
    def targets(self, rows: Tensor, logits: Tensor, done: float) -> tuple[Tensor, Tensor]:
        """The classes' chances for each picture, and whether it takes part, when a share `done` of steps is made."""
        given = self.schooling
        prior = logits.float().log_softmax(1)
        self.mean.lerp_(prior.exp().mean(0), BALANCE_STEP)
        prior = prior + (given.shares / self.mean).log()
        weight, power = (first + (last - first) * done for first, last in (given.weight, given.power))
        target = (weight * given.evidence[rows] + power * prior).softmax(1)
        return target, (target.amax(1) >= given.sure).float()

    def loss(self, rows: Tensor, done: float) -> tuple[Tensor, Tensor]:
        """The loss of one batch, with its gradient; and the share of pictures that took part."""
        with torch.no_grad():
            weak, strong = self.album.weak(rows), self.album.strong(rows, self.settings.strength)
        self.optimizer.zero_grad(set_to_none=True)
        with autocast(self.device):
            first, second = self.forward(weak), self.forward(strong)
        target, present = self.targets(rows, first.detach(), done)
        entropy = sum(-(target * logits.float().log_softmax(1)).sum(1) for logits in (first, second)) / 2
        loss = (present * entropy).mean()
        loss.backward()
        nn.utils.clip_grad_norm_(self.net.parameters(), LARGEST_GRADIENT)
        return loss.detach(), present.mean()

    def run(self, seconds: float = math.inf) -> int:
        """Train for so many seconds at most; returns the number of epochs."""
        count = len(self.album.pixels)
        batch = min(self.settings.school_batch, count)
        per_epoch = count // batch
        some = torch.arange(batch, device=self.device)
        self.net.train()
        most = self.settings.school_epochs
        epochs = epochs_in(seconds, most, per_epoch, step=lambda: self.loss(some, 0.0), device=self.device)
        self.mean.copy_(self.schooling.shares)
        steps, step, every = epochs * per_epoch, 0, max(1, epochs // REPORTS)
        total = torch.zeros(2, device=self.device)
        began = clock(self.device)
        for epoch in range(1, epochs + 1):
            order = torch.randperm(count, device=self.device)
            for place in range(per_epoch):
                done = (step + 0.5) / steps
                for group in self.optimizer.param_groups:
                    group["lr"] = self.schooling.lr * min(done / WARM_UP, (1 - done) / (1 - WARM_UP))
                found = self.loss(order[place * batch : (place + 1) * batch], done)
                self.optimizer.step()
                with torch.no_grad():
                    kept = min(AVERAGED, (1 + step) / (10 + step))
                    torch._foreach_lerp_(list(self.averaged.parameters()), list(self.net.parameters()), 1 - kept)
                    total += torch.stack(found)
                step += 1
            if epoch % every == 0 or epoch == epochs:
                passed = clock(self.device) - began
                loss, present = (total / step).tolist()
                self.say(f"school {epoch}/{epochs}  mean loss {loss:.4f}  took part {present:.2f}  {passed:.0f} s")
        if not all(bool(torch.isfinite(weight).all()) for weight in self.averaged.parameters()):
            raise NumericalError("self-training diverged: lower school_lr")
        return epochs
