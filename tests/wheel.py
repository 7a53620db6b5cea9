"""`make wheel`: is the wheel what users should get, and does it work where nothing but pip has been?

It is looked into, installed in a new environment outside the checkout, by pip alone and without extras, and tried from
a folder that knows nothing of the checkout. `tests/unit/test_wheel.py` looks into a wheel with every run of the tests.
"""

from __future__ import annotations

import sys
import tempfile
import tomllib
from collections.abc import Iterator
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from zipfile import ZipFile

from benchmarks.install import LARGEST_MB, ROOT, Installed

from leakcap.version import __version__
from tests.docs.pages import agree, blocks

__all__ = ["faults_inside", "main"]

PACKAGE = ROOT / "src" / "leakcap"
LINKS = ("Homepage", "Documentation", "Source", "Issues", "Changelog")
MOST_IMPORT_SECONDS = 0.5  # of a CPU


def faults_inside(wheel: Path) -> list[str]:
    """What is missing, what does not belong there, and what it says wrongly about itself."""
    with ZipFile(wheel) as opened:
        names = set(opened.namelist())
        folder = f"leakcap-{__version__}.dist-info"
        if f"{folder}/METADATA" not in names:
            return [f"it is not version {__version__}"]
        told = message_from_bytes(opened.read(f"{folder}/METADATA"))
    written = (path for path in PACKAGE.rglob("*") if path.is_file() and path.parent.name != "__pycache__")
    asked = {f"leakcap/{path.relative_to(PACKAGE)}" for path in written}
    own = {name for name in names if not name.startswith(f"{folder}/")}
    return [
        *(f"{name} is missing" for name in sorted(asked - own)),
        *(f"{name} does not belong there" for name in sorted(own - asked)),
        *_wrong_words(told, f"{folder}/licenses/LICENSE" in names),
    ]


def _wrong_words(told: Message, has_licence: bool) -> Iterator[str]:
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    if told["License-Expression"] != "Apache-2.0" or not has_licence:
        yield "no licence"
    shown = told.get_payload(decode=True).decode()
    if told["Description-Content-Type"] != "text/markdown" or shown.strip() != (ROOT / "README.md").read_text().strip():
        yield "no README"
    if told["Summary"] != asked["description"] or told["Requires-Python"] != asked["requires-python"]:
        yield "another summary, or another Python"
    if told.get_all("Classifier") != asked["classifiers"] or "Typing :: Typed" not in asked["classifiers"]:
        yield "other classifiers"
    links = dict(link.split(", ", 1) for link in told.get_all("Project-URL", []))
    if links != asked["urls"] or set(links) != set(LINKS):
        yield "other addresses"
    always = [one for one in told.get_all("Requires-Dist", []) if "extra ==" not in one]
    if len(always) != len(asked["dependencies"]):
        yield "other dependencies"


def faults_in_use(installed: Installed) -> Iterator[str]:
    """The command, the import, the first example of the README, and the size of it all."""
    home = Path(tempfile.mkdtemp(dir=installed.folder))
    told, _ = installed.run(home, "leakcap", "--version")
    if told != f"leakcap {__version__}\n":
        yield f"`leakcap --version` says {told!r}"
    where, _ = installed.run(home, "python", "-c", "import leakcap; print(leakcap.__file__)")
    if not Path(where).is_relative_to(installed.packages):
        yield f"leakcap is imported from {where}"
    codes = ("pass", "import leakcap")
    nothing, imported = (min(installed.run(home, "python", "-c", code)[1] for _ in range(3)) for code in codes)
    print(f"import leakcap: {imported - nothing:.2f} CPU s beyond Python's own start")
    if imported - nothing > MOST_IMPORT_SECONDS:
        yield f"import leakcap takes {imported - nothing:.2f} CPU s, more than {MOST_IMPORT_SECONDS}"
    first = next(block for block in blocks((ROOT / "README.md").read_text()) if block.kind == "python")
    told, seconds = installed.run(home, "python", "-c", first.body)
    print(f"the README's first example, the first time: {seconds:.1f} CPU s")
    if first.shown is None or not agree(first.shown.body, told):
        yield f"the README's first example prints\n{told}"
    size = installed.megabytes()
    print(f"the environment: {size:.0f} MB, of them leakcap {installed.megabytes('leakcap'):.1f}")
    if size > LARGEST_MB:
        yield f"{size:.0f} MB are more than {LARGEST_MB}"


def main(folder: str) -> None:
    """Try the one wheel in a folder."""
    (wheel,) = Path(folder).resolve().glob("*.whl")
    faults = faults_inside(wheel)
    with tempfile.TemporaryDirectory() as elsewhere:
        faults += faults_in_use(Installed(Path(elsewhere), wheel))
    for fault in faults:
        print(fault, file=sys.stderr)
    if faults:
        sys.exit(f"{wheel.name}: {len(faults)} faults")
    print(f"{wheel.name} holds what it should, and works where nothing but pip has been")


if __name__ == "__main__":
    main(sys.argv[1])
