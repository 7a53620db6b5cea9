"""What was published by pages: each in a folder of its own; and pages of the report that stand alone."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

from fastapi.responses import HTMLResponse

from leakcap.custody.folders import PLAN, votes_folder
from leakcap.server.headers import POLICY
from leakcap.server.refusals import NOT_THERE, Refusal
from leakcap.server.state import ServerState

__all__ = ["alone", "attackable", "finished", "folder_of", "votes_kept"]


def finished(state: ServerState) -> list[str]:
    """Names of what was published."""
    folder = state.settings.home / "published"
    found = folder.iterdir() if folder.is_dir() else ()
    return sorted(one.name for one in found if (one / "command.txt").is_file())


def folder_of(state: ServerState, name: str) -> Path:
    """Where a release lies; a `Refusal` where there is none of this name."""
    if name not in finished(state):
        raise Refusal(404, NOT_THERE)
    return state.settings.home / "published" / name


def attackable(folder: Path) -> bool:
    """Whether its plan is kept, or what voted, by which it can be made and attacked many times."""
    return (folder / "out" / "custodian" / PLAN).is_dir() or votes_kept(folder)


def votes_kept(folder: Path) -> bool:
    """Whether it is a model that learnt from votes, of which whoever voted can be asked again."""
    return votes_folder(folder / "out") is not None


def alone(text: str) -> HTMLResponse:
    """A page of the report's, with the styles that stand in it and no others."""
    sheets = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    prints = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(one.encode()).digest()).decode()}'" for one in sheets)
    policy = POLICY.replace("style-src 'self'", f"style-src 'self' {prints}")
    return HTMLResponse(text, headers={"Content-Security-Policy": policy})
