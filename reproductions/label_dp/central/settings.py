"""What a run on pictures is made of: one frozen record, chosen before any test picture is looked at."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from leakcap.errors import InputError

LEVELS = (0.05, 0.1, 0.18, 0.29, 0.5, 1.0, 1.6, 8.0)
# Spent in all after each of the sums: the features of a schooled network make more of sums than those before it.
SUMS_AT = (0.12, 0.18, 0.29, 0.5, 0.9)
SUMS_BEFORE_RESPONSES = 0.29


@dataclass(frozen=True)
class Settings:
    """Sizes of the network and of all stages.

    `contrastive_epochs`, `school_epochs`: at most so many; a clock may ask for fewer. `views`: of a picture in a
    contrastive step. `batch`: pictures in a step. `crops`: views whose features are averaged. `surest`: share of every
    class that serves as an anchor. `neighbours`: pictures whose predictions are averaged. `doubted`: share of pictures
    that further sums are about. `responses_from`: the epsilon from which on the rest goes to labels one by one, and
    not to further sums. `school_rounds`: how often anchors of the first sums are chosen, later by the network.
    `response_...`: the training by labels privatised one by one; `crossed`: with beliefs about each picture from a
    network that never saw its response. `held_out`: training pictures to judge by, with one
    noised count of `held_out_epsilon`. `canaries`: wrong labels planted, to see what the network shows of them.
    """

    width: float = 1.5
    contrastive_epochs: int = 130
    contrastive_batch: int = 256
    views: int = 4
    temperature: float = 0.2
    contrastive_lr: float = 0.2
    smallest_crop: float = 0.2
    crops: int = 16
    components: int | str = "auto"
    neighbours: int = 10
    surest: float = 0.6
    doubted: float = 0.5
    school_epochs: int = 80
    school_batch: int = 512
    school_lr: float = 0.05
    school_rounds: int = 1
    responses_from: float = 1.0
    response_epochs: int = 80
    response_lr: float = 0.2
    response_decay: float = 1e-3
    crossed: bool = False
    weight_decay: float = 5e-4
    strength: float = 1.0
    delta: float = 1e-5
    seed: int = 0
    held_out: int = 0
    canaries: int = 0
    held_out_epsilon: float = 0.2


SMOKE = Settings(
    width=0.125,
    contrastive_epochs=2,
    contrastive_batch=100,
    views=2,
    crops=2,
    neighbours=5,
    school_epochs=3,
    school_batch=100,
    response_epochs=4,
)


def changed(settings: Settings, words: Sequence[str]) -> Settings:
    """The settings with `name=value` applied."""
    known = {field.name for field in fields(Settings)}
    for word in words:
        name, _, text = word.partition("=")
        if name not in known:
            raise InputError(f"there is no setting {name}; there are {', '.join(sorted(known))}")
        try:
            settings = replace(settings, **{name: ast.literal_eval(text)})
        except (ValueError, SyntaxError):
            settings = replace(settings, **{name: text})
    return settings
