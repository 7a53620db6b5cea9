"""`leakcap release --compare`: what each promise would cost, on the terminal."""

from __future__ import annotations

from leakcap.certificates.text import percent
from leakcap.cli.terminal import Terminal, plain, seconds_in_words
from leakcap.planning.comparison import Comparison, share

__all__ = ["print_promises"]


def print_promises(made: Comparison, terminal: Terminal) -> None:
    """The table of `Plan.compare`; nothing was released."""
    terminal.heading(f"Promises at a success of {percent(made.success)} at most (for you alone)")
    rows = [
        (
            one.name + (" *" if one.name == made.own else ""),
            share(one.total),
            share(made.relative(one.before_noise)),
            share(made.relative(one.noise)),
            seconds_in_words(one.seconds),
        )
        for one in made.promises
    ]
    terminal.table(("promise", "total error", "before noise", "noise", "time"), rows)
    for hides in dict.fromkeys(one.hides for one in made.promises):
        terminal.say(f"{', '.join(one.name for one in made.promises if one.hides == hides)}: hides {hides}.")
    for line in made.not_compared:
        terminal.say(plain(line))
    terminal.say(plain(made.sentence))
    terminal.say(made.reading)
    terminal.say("Nothing was released. The same command without --compare releases, and runs no world again.")
    terminal.result(
        {
            "compare": True,
            "success_at_most": made.success,
            "own": made.own,
            "promises": [
                {"name": one.name, "total_error": one.total, "made_with": one.how, "seconds": one.seconds}
                for one in made.promises
            ],
            "not_compared": dict(made.left_out),
        }
    )
