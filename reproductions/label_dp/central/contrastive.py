"""A network learned from pictures alone: views of one picture are to be alike, views of others unlike.

Several views of a picture in one step, each drawn to the mean of the others and away from those of all other pictures
(the decoupled form: a view's own partners do not count among those it is pushed from). No label is read here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional

from leakcap.errors import NumericalError
from reproductions.label_dp.augment import Album
from reproductions.label_dp.central.encoder import Encoder, projector
from reproductions.label_dp.central.pace import clock, epochs_in
from reproductions.label_dp.central.settings import Settings
from reproductions.label_dp.central.views import contrastive_view
from reproductions.label_dp.train import Say, autocast

MOMENTUM, WARM_UP = 0.9, 0.05
LARGEST_GRADIENT = 5.0
KEEP_EVERY = 45.0  # seconds between checkpoints

Keep = Callable[[int, int], None]


def contrast(z: Tensor, views: int, temperature: float) -> Tensor:
    """The loss of projected views, `(views * pictures, columns)`, one view of all pictures after the other."""
    z = functional.normalize(z.float(), dim=1)
    pictures = len(z) // views
    own = z.view(views, pictures, -1).sum(0).repeat(views, 1) - z
    near = (z * own).sum(1) / ((views - 1) * temperature)
    far = z @ z.T / temperature
    same = torch.eye(pictures, dtype=torch.bool, device=z.device).repeat(views, views)
    return (far.masked_fill(same, -torch.inf).logsumexp(1) - near).mean()


def cosine(done: float, peak: float) -> float:
    """Up in a line, down along a cosine."""
    if done < WARM_UP:
        return peak * done / WARM_UP
    return peak * 0.5 * (1 + math.cos(math.pi * (done - WARM_UP) / (1 - WARM_UP)))


@dataclass
class Contrastive:
    """The state of a training without labels."""

    settings: Settings
    album: Album
    device: torch.device
    say: Say = print
    compiled: bool = False
    encoder: Encoder = field(init=False)
    views_a_second: float = 0.0

    def __post_init__(self) -> None:
        self.encoder = Encoder(self.settings.width, self.device)
        self.project = projector(self.encoder.size, self.device)
        self.whole = nn.ModuleList([self.encoder, self.project])
        self.forward: Callable[[Tensor], Tensor] = self._projected
        self.view: Callable[..., Tensor] = contrastive_view
        if self.compiled:
            self.forward = torch.compile(self._projected, dynamic=False)
            self.view = torch.compile(contrastive_view, dynamic=False)
        weights = list(self.whole.parameters())
        self.optimizer = torch.optim.SGD(
            [
                {"params": [w for w in weights if w.ndim > 1], "weight_decay": self.settings.weight_decay},
                {"params": [w for w in weights if w.ndim <= 1], "weight_decay": 0.0},
            ],
            lr=0.1,
            momentum=MOMENTUM,
            nesterov=True,
            fused=self.device.type == "cuda",
        )

    def _projected(self, x: Tensor) -> Tensor:
        found: Tensor = self.project(self.encoder(x))
        return found

    def loss(self, rows: Tensor) -> Tensor:
        """The loss of one batch, with its gradient."""
        rows = rows.repeat(self.settings.views)
        with torch.no_grad():
            x = self.view(self.album, rows, self.settings.smallest_crop)
        self.optimizer.zero_grad(set_to_none=True)
        with autocast(self.device):
            z = self.forward(x)
        loss = contrast(z, self.settings.views, self.settings.temperature)
        loss.backward()
        nn.utils.clip_grad_norm_(self.whole.parameters(), LARGEST_GRADIENT)
        return loss.detach()

    def run(self, seconds: float = math.inf, *, epoch: int = 0, keep: Keep = lambda epoch, epochs: None) -> int:
        """Train from after `epoch` on for so many seconds at most; returns the number of epochs in all."""
        count = len(self.album.pixels)
        batch = min(self.settings.contrastive_batch, count)
        per_epoch = count // batch
        some = torch.arange(batch, device=self.device)
        most = max(1, self.settings.contrastive_epochs - epoch)
        self.encoder.train()
        epochs = epoch + epochs_in(seconds, most, per_epoch, step=lambda: self.loss(some), device=self.device)
        self.say(f"contrastive: epochs {epoch + 1} to {epochs}, {self.settings.views} views each")
        began = kept = clock(self.device)
        first, every = epoch, max(1, epochs // 12)
        total = torch.zeros((), device=self.device)
        while epoch < epochs:
            order = torch.randperm(count, device=self.device)
            for place in range(per_epoch):
                for group in self.optimizer.param_groups:
                    group["lr"] = cosine((epoch + (place + 0.5) / per_epoch) / epochs, self.settings.contrastive_lr)
                total += self.loss(order[place * batch : (place + 1) * batch])
                self.optimizer.step()
            epoch += 1
            if epoch % every == 0 or epoch == epochs:
                now = clock(self.device)
                self.views_a_second = (epoch - first) * per_epoch * batch * self.settings.views / (now - began)
                mean = float(total) / (per_epoch * (epoch - first))
                self.say(f"contrastive {epoch}/{epochs}  mean loss {mean:.4f}  {self.views_a_second:,.0f} views/s")
                if not math.isfinite(mean):
                    raise NumericalError("contrastive training diverged: lower contrastive_lr")
                if now - kept > KEEP_EVERY or epoch == epochs:
                    keep(epoch, epochs)
                    kept = clock(self.device)
        return epochs
