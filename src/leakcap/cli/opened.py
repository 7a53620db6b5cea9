"""`leakcap open`: a release from its public folder, on the terminal and in a browser."""

from __future__ import annotations

import webbrowser
from pathlib import Path

from leakcap.certificates.text import promise
from leakcap.cli.release import print_answer, print_certificate
from leakcap.cli.terminal import Terminal
from leakcap.report.release.files import answer_in
from leakcap.report.release.saved import load, public_folder

__all__ = ["run"]


def run(folder: Path, *, browser: bool, quiet: bool, json: bool) -> None:
    """Print what was released and what it promises, and show the page."""
    terminal = Terminal(quiet, json)
    place = public_folder(folder)
    certificate = load(folder).certificate
    answer, signed_with = answer_in((place / "answer.json").read_text(encoding="utf-8"))
    terminal.heading(answer.title)
    print_answer(answer, terminal)
    print_certificate(certificate, terminal)
    if signed_with:
        terminal.say(f"It says that it is signed by {signed_with}: check that with leakcap check --public --signer KEY")
    page = place / "certificate.html"
    terminal.say(f"The page: {page}")
    terminal.result({"page": str(page), "promise": promise(certificate), "signed_with": signed_with})
    if browser and not json:
        webbrowser.open(page.resolve().as_uri())
