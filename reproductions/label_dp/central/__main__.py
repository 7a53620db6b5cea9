"""`python -m reproductions.label_dp.central --out FOLDER`: one JSON for each epsilon, and the encoder's weights.

An epsilon whose file exists is not run again. The encoder is saved every minute, and the network of all sums when it is
schooled; a later call goes on from them. `--lengthen` trains an encoder further whose time had ended (delete
`rung-*` then, to school anew). A call that was stopped before makes its sums anew: each file counts what was released
for it. `--held-out 5000` judges settings on so many training pictures, by one noised count of those that are right:
what it costs their labels (`--held-out-epsilon`) stands in the file and adds up over all runs that are so judged;
nothing else in such a file is made of labels that were not noised.
`--set canaries=1000` plants wrong labels: the files begin with `planted-` and say what the networks show of them.
`--smoke`: toy pictures and sizes, on two cores.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch

from leakcap.errors import NumericalError
from reproductions.label_dp.central.contrastive import Contrastive
from reproductions.label_dp.central.ladder import Ladder, Rung, stages
from reproductions.label_dp.central.rungs import load_rung, save_rung
from reproductions.label_dp.central.settings import LEVELS, SMOKE, Settings, changed
from reproductions.label_dp.central.store import load_weights, save_weights, write_json
from reproductions.label_dp.pictures import Pictures, pictures

NOW = (0.18, 0.29, 1.6)
RESPONSES = 3.0  # of the time for schools, where a school of sums has 1
AROUND = 12.0  # seconds of sums and features around a school
LEAST = 15.0  # seconds of a school that is worth its release
CURVE_SECONDS = 3.0  # for the sums at one epsilon


def toy_pictures(size: int = 8) -> Pictures:
    """Ten classes of striped pictures: a direction and a hue each."""
    draw = np.random.default_rng(7)
    hues, waves = draw.uniform(60, 195, (10, 3)), draw.uniform(-1, 1, (10, 2))

    def some(count: int) -> tuple[np.ndarray, np.ndarray]:
        y = draw.integers(0, 10, count)
        i, j = np.mgrid[:size, :size]
        phase = waves[y, :1, None] * i + waves[y, 1:, None] * j + draw.uniform(0, 6, (count, 1, 1))
        x = hues[y][:, None, None] + 40 * np.sin(phase)[..., None] + draw.normal(0, 20, (count, size, size, 3))
        return np.clip(x, 0, 255).astype(np.uint8), y.astype(np.int64)

    return Pictures(*some(2400), *some(300), 10)


class OutOfTime(Exception):
    """A school would be too short."""


@dataclass
class Call:
    """One call of the command: where files go, how much time is left, and from where on labels go one by one."""

    out: Path
    deadline: float
    responses_from: float = Settings.responses_from
    began: float = field(default_factory=time.perf_counter)

    def say(self, line: str) -> None:
        print(f"{time.perf_counter() - self.began:6.1f} s  {line}", flush=True)

    @property
    def left(self) -> float:
        return self.deadline - (time.perf_counter() - self.began)

    def encoder(self, ladder: Ladder, seconds: float, *, lengthen: bool = False) -> None:
        """The encoder from its file, trained to its end where time allows; with `lengthen` beyond that end."""
        training = Contrastive(ladder.settings, ladder.album, ladder.device, self.say, ladder.compiled)
        facts = load_weights(self.out, "encoder", training.whole) or {"epoch": 0, "epochs": 0, "seconds": 0.0}
        goal = ladder.settings.contrastive_epochs
        ended = facts["epoch"] >= facts["epochs"] > 0
        if facts["epoch"] < goal and (lengthen or not ended):
            began, before = time.perf_counter(), facts.get("seconds")

            def keep(epoch: int, epochs: int) -> None:
                passed = None if before is None else before + time.perf_counter() - began
                facts.update(epoch=epoch, epochs=epochs, seconds=passed)
                save_weights(self.out, "encoder", training.whole, epoch=epoch, epochs=epochs, seconds=passed)
                self.say(f"encoder saved after epoch {epoch}")

            training.run(seconds, epoch=facts["epoch"], keep=keep)
        made = {"epochs": facts["epoch"], "of": facts["epochs"], "seconds": facts.get("seconds")}
        ladder.encoder, ladder.contrastive = training.encoder, made
        ladder.look()
        self.say("features of all pictures")

    def runs(self, ladder: Ladder, levels: Sequence[float], curve: Sequence[float]) -> None:
        """One file for every epsilon that has none."""
        todo = [epsilon for epsilon in levels if not self.path(ladder, epsilon).is_file()]
        rungs: dict[float, Rung] = {}
        for level in _levels(todo, self.responses_from):
            rung = load_rung(self.out, self._rung(ladder, level), ladder)
            if rung is not None:
                self.say(f"the network of the sums up to {level:g}, from its file")
                rungs[level] = rung
        for place, epsilon in enumerate(todo):
            try:
                rung = self._climb(ladder, rungs, todo[place:], curve)
            except (OutOfTime, NumericalError) as error:  # the others may still be had
                self.say(f"epsilon {epsilon:g}: not done ({error})")
                continue
            record = {**ladder.result(rung, epsilon), "elapsed": time.perf_counter() - self.began}
            write_json(self.path(ladder, epsilon), record)
            alone = "" if "accuracy_without_flip" not in record else f", {record['accuracy_without_flip']:.4f}"
            self.say(f"epsilon {epsilon:g}: accuracy {record['accuracy']:.4f}{alone}")
        self.curve(ladder, curve)

    def _climb(self, ladder: Ladder, rungs: dict[float, Rung], todo: Sequence[float], curve: Sequence[float]) -> Rung:
        """The network for the first epsilon of `todo`; those of sums are kept in `rungs`."""
        levels, responses = stages(todo[0], self.responses_from)
        for below, level in zip((None, *levels), levels, strict=False):
            if level in rungs:
                continue
            seconds = self._seconds(1.0, rungs, todo, curve)
            made = ladder.first(level, seconds) if below is None else ladder.further(rungs[below], level, seconds)
            save_rung(self.out, self._rung(ladder, level), made)
            rungs[level] = made
        top = rungs[levels[-1]]
        return ladder.responses(top, todo[0], self._seconds(RESPONSES, rungs, todo, curve)) if responses else top

    def curve(self, ladder: Ladder, levels: Sequence[float]) -> None:
        """Accuracy of the sums alone, as far as time allows."""
        if ladder.settings.held_out:
            return  # a count for each would cost more epsilon
        found = {}
        for epsilon in levels:
            if self.left > CURVE_SECONDS:
                found[f"{epsilon:g}"] = ladder.sums_accuracy(ladder.sums(epsilon))
                write_json(self.out / f"sums-seed{ladder.settings.seed}.json", {"sums_accuracy": found})
        self.say(f"sums alone: {found}")

    def path(self, ladder: Ladder, epsilon: float) -> Path:
        return self.out / f"{'planted' if ladder.settings.canaries else 'central'}-{self._name(ladder, epsilon)}.json"

    def _rung(self, ladder: Ladder, epsilon: float) -> str:
        return f"rung-{self._name(ladder, epsilon)}"

    def _name(self, ladder: Ladder, epsilon: float) -> str:
        kind = ("-tuning" if ladder.settings.held_out else "") + ("-canaries" if ladder.settings.canaries else "")
        return f"eps{epsilon:g}{kind}-seed{ladder.settings.seed}"

    def _seconds(self, share: float, rungs: dict[float, Rung], todo: Sequence[float], curve: Sequence[float]) -> float:
        """Time for the next school, which has this share: its part of what is left, less what is needed around it."""
        schools = len(_levels(todo, self.responses_from) - set(rungs))
        responses = sum(stages(epsilon, self.responses_from)[1] for epsilon in todo)
        free = self.left - AROUND * (schools + responses) - CURVE_SECONDS * len(curve)
        seconds = free * share / (schools + RESPONSES * responses)
        if seconds < LEAST:
            raise OutOfTime(f"{seconds:.0f} s left for it")
        return seconds


def _levels(todo: Sequence[float], responses_from: float) -> set[float]:
    """What sums cost in all after each of them, for these epsilons."""
    return {level for epsilon in todo for level in stages(epsilon, responses_from)[0]}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("reproductions/out/label_dp_central"))
    parser.add_argument("--epsilons", type=float, nargs="+", default=NOW)
    parser.add_argument("--curve", type=float, nargs="*", default=LEVELS, help="sums alone, at the end")
    parser.add_argument("--seconds", type=float, default=math.inf, help="for the whole call")
    parser.add_argument("--contrastive-seconds", type=float, default=math.inf)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--held-out", type=int, default=0, help="judge on so many of the last training pictures")
    parser.add_argument("--held-out-epsilon", type=float, default=0.2, help="of the noised count that judges them")
    parser.add_argument("--lengthen", action="store_true", help="train an encoder further whose time had ended")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="change settings")
    parser.add_argument("--compile", action="store_true", help="compile networks and views: a fifth faster on a GPU")
    parser.add_argument("--smoke", action="store_true")
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    settings = changed(SMOKE if given.smoke else Settings(), given.set)
    call = Call(given.out, given.seconds, settings.responses_from)
    settings = replace(settings, seed=given.seed, held_out=given.held_out, held_out_epsilon=given.held_out_epsilon)
    device = torch.device(given.device)
    if device.type == "cuda":
        torch.backends.cudnn.benchmark = True
        torch.set_float32_matmul_precision("high")
    ladder = Ladder(
        settings, toy_pictures() if given.smoke else pictures("cifar10"), device, call.say, compiled=given.compile
    )
    call.say(f"pictures on {device}")
    call.encoder(ladder, given.contrastive_seconds, lengthen=given.lengthen)
    call.runs(ladder, given.epsilons, given.curve)
    return 0


if __name__ == "__main__":
    sys.exit(main())
