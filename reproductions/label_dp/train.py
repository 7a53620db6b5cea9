"""The training loop: one network fitted to posteriors that are recomputed at every step.

With prediction p(c|x) as prior and observation o, the target is `p(o|c) p(c|x)` normalised. If the prior comes from the
very view that is trained, the gradient of the cross entropy is that of the marginal likelihood, the logarithm of
`sum_c p(o|c) p(c|x)`: the paper's Algorithm 3. A second, strong view of the same picture is taught the same target:
consistency between views, which is what weak labels lack. Nothing in the loop waits for the device.
"""

from __future__ import annotations

import copy
import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from leakcap.errors import NumericalError
from reproductions.label_dp.augment import Album
from reproductions.label_dp.network import network
from reproductions.label_dp.recipe import Recipe

Say = Callable[[str], None]
Forward = Callable[[Tensor], Tensor]
REPORTS = 5  # lines of progress in a run


@dataclass(frozen=True)
class Lesson:
    """What is taught: fixed `targets`, or `scores` (log-likelihoods of the observations) to be joined with a prior.

    `first_prior`: log-probabilities from an earlier round; `first_until`: the share of steps over which they give way
    to the network's own (None: the recipe's `first_share` of them stays). `shares`: how frequent the classes are.
    """

    targets: Tensor | None = None
    scores: Tensor | None = None
    first_prior: Tensor | None = None
    first_until: float | None = None
    shares: Tensor | None = None


@dataclass(frozen=True)
class Fitted:
    """The network's last weights, their running average, and how long it took."""

    last: nn.Module
    averaged: nn.Module
    seconds: float
    pictures: int


def autocast(device: torch.device) -> torch.autocast:
    """Half-precision products on a GPU, plain arithmetic elsewhere."""
    return torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda")


def rate(step: int, steps: int, recipe: Recipe) -> float:
    """One cycle: up in a line, down to nothing in a line."""
    done = (step + 0.5) / steps
    return recipe.peak_lr * min(done / recipe.warm_up, (1 - done) / (1 - recipe.warm_up))


class Teacher:
    """Targets for a batch, from the observations and the current prediction."""

    def __init__(self, recipe: Recipe, lesson: Lesson, n_classes: int, device: torch.device) -> None:
        self.recipe, self.lesson = recipe, lesson
        self.mean = torch.full((n_classes,), 1 / n_classes, device=device)

    @torch.no_grad()
    def targets(self, rows: Tensor, logits: Tensor | None, done: float = 1.0) -> Tensor:
        """`logits`: the prediction that serves as prior (None if targets are fixed); `done`: share of steps made."""
        if self.lesson.targets is not None:
            return self.lesson.targets[rows]
        assert self.lesson.scores is not None and logits is not None
        prior = logits.float().log_softmax(1)
        if self.recipe.balance and self.lesson.shares is not None:
            self.mean.lerp_(prior.exp().mean(0), 0.02)
            prior = prior + (self.lesson.shares / self.mean).log()
        if self.lesson.first_prior is not None:
            until = self.lesson.first_until
            share = self.recipe.first_share if until is None else max(0.0, 1 - done / until)
            prior = torch.lerp(prior, self.lesson.first_prior[rows], share)
        power = 1 + (self.recipe.prior_power - 1) * done
        return (self.lesson.scores[rows] + power * prior).softmax(1)


def fit(  # noqa: PLR0915  (the loop reads best in one piece)
    recipe: Recipe,
    album: Album,
    lesson: Lesson,
    n_classes: int,
    device: torch.device,
    *,
    start: nn.Module | None = None,
    largest_gradient: float = math.inf,
    compiled: bool = False,
    say: Say = print,
) -> Fitted:
    """A network trained by the recipe on all pictures of the album; `start`: train this one, whatever its kind.

    `largest_gradient`: longer ones are shortened to it.
    """
    count = len(album.pixels)
    batch = min(recipe.batch, count)
    per_epoch = count // batch  # the last, smaller batch is left out: every step has one shape
    steps = recipe.epochs * per_epoch
    net = network(recipe.network, n_classes, recipe.width, device) if start is None else start
    averaged = copy.deepcopy(net)
    averaged.requires_grad_(False)
    some = album.plain(slice(0, batch))
    forward, teach = _forwards(
        net, averaged, some, device, compiled=compiled, replayed=recipe.views == ("weak",), say=say
    )
    weights, means = list(net.parameters()), list(averaged.parameters())
    decayed = [w for w in weights if w.ndim > 1]
    plain = [w for w in weights if w.ndim <= 1]
    optimizer = torch.optim.SGD(
        [{"params": decayed, "weight_decay": recipe.weight_decay}, {"params": plain, "weight_decay": 0.0}],
        lr=0.1,
        momentum=recipe.momentum,
        nesterov=True,
        fused=device.type == "cuda",
    )
    teacher = Teacher(recipe, lesson, n_classes, device)
    dice = random.Random(recipe.seed)
    guided = lesson.targets is None
    every = max(1, recipe.epochs // REPORTS)
    began = mark = _clock(device)
    total = torch.zeros((), device=device)
    net.train()
    averaged.train()  # the teacher judges a batch by the batch's own statistics, as the student does
    step = 0
    for epoch in range(1, recipe.epochs + 1):
        order = torch.randperm(count, device=device)
        for place in range(0, per_epoch * batch, batch):
            rows = order[place : place + batch]
            for group in optimizer.param_groups:
                group["lr"] = rate(step, steps, recipe)
            weak = album.weak(rows) if guided or "weak" in recipe.views else None
            strong = album.strong(rows, recipe.strength) if "strong" in recipe.views else None
            share = dice.betavariate(recipe.mixup, recipe.mixup) if recipe.mixup else 1.0
            prior: Tensor | None = None
            if guided and (recipe.prior == "teacher" or "weak" not in recipe.views):
                # in a context of its own, so that autocast cannot hand on weights that were cast without gradient
                with torch.no_grad(), autocast(device):
                    prior = (teach if recipe.prior == "teacher" else forward)(weak)
            with autocast(device):
                outputs = [forward(weak)] if "weak" in recipe.views else []
                if guided and prior is None:
                    prior = outputs[0].detach()
                target = teacher.targets(rows, prior, step / steps)
                losses = [_cross_entropy(logits, target) for logits in outputs]
                if strong is not None:
                    if recipe.mixup:  # the order is random, so the neighbour is a random partner
                        strong = torch.lerp(strong.roll(1, 0), strong, share)
                        target = torch.lerp(target.roll(1, 0), target, share)
                    losses.append(_cross_entropy(forward(strong), target))
                loss = sum(losses[1:], losses[0]) / len(losses)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            if largest_gradient < math.inf:
                nn.utils.clip_grad_norm_(weights, largest_gradient)
            optimizer.step()
            with torch.no_grad():
                # a young average forgets its random start
                kept = min(recipe.ema_decay, (1 + step) / (10 + step))
                torch._foreach_lerp_(means, weights, 1 - kept)
                total += loss.detach()
            step += 1
        if epoch % every == 0 or epoch == recipe.epochs:
            now = _clock(device)
            done = every if epoch % every == 0 else epoch % every
            speed = done * per_epoch * batch / max(now - mark, 1e-9)
            say(f"epoch {epoch}/{recipe.epochs}  loss {float(total) / (done * per_epoch):.4f}  {speed:,.0f} pictures/s")
            total.zero_()
            mark = _clock(device)
    if not all(bool(torch.isfinite(weight).all()) for weight in means):
        raise NumericalError("training diverged: lower peak_lr")
    return Fitted(net, averaged, _clock(device) - began, steps * batch)


def _cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    return -(target * logits.float().log_softmax(1)).sum(1).mean()


def _forwards(
    net: nn.Module,
    averaged: nn.Module,
    some: Tensor,
    device: torch.device,
    *,
    compiled: bool,
    replayed: bool,
    say: Say,
) -> tuple[Forward, Forward]:
    """The two networks as functions, compiled if asked and if this machine can.

    `replayed`: each is called once in a step, so that its output may lie where the next step's will.
    """
    if not compiled:
        return net, averaged
    # Many small kernels: recorded once and played again, they no longer wait for the processor.
    mode = "reduce-overhead" if replayed and device.type == "cuda" else "default"
    quick, quick_teacher = (torch.compile(one, dynamic=False, mode=mode) for one in (net, averaged))
    try:
        with autocast(device):
            quick(some).float().sum().backward()
            with torch.no_grad():
                quick_teacher(some)
        net.zero_grad(set_to_none=True)
    except Exception as error:  # compilers fail in many ways; slower is better than not at all
        say(f"not compiled ({type(error).__name__}): running as it is")
        return net, averaged
    return quick, quick_teacher


def _clock(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()
