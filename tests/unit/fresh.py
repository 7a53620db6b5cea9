"""Code in processes of its own that have not imported leakcap, at the price of one.

One process loads the libraries of others, which is most of what starting costs, and forks for each piece of code.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping

__all__ = ["ran"]

LIBRARIES = ("numpy", "scipy.special", "scipy.spatial")  # what most rooms need: more would cost more than it saves
FORKS = """
import json, os, sys, tempfile, traceback
def forked(code):
    with tempfile.TemporaryFile("w+") as said:
        child = os.fork()
        if not child:
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
            try:
                exec(code, {"__name__": "__main__"})
            except BaseException:
                traceback.print_exc()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)
        os.waitpid(child, 0)
        said.seek(0)
        return said.read().strip()
asked = json.load(sys.stdin)
ours = [name for name in sys.modules if name.partition(".")[0] == "leakcap"]
assert not ours, ours
print(json.dumps({name: forked(code) for name, code in asked.items()}))
"""


def ran(codes: Mapping[str, str], first: str = "", libraries: tuple[str, ...] = LIBRARIES) -> dict[str, str]:
    """What each piece of code said, errors included; `first` is done before any library is loaded."""
    command = [sys.executable, "-c", f"{first}\nimport {', '.join(libraries)}\n{FORKS}"]
    done = subprocess.run(command, input=json.dumps(dict(codes)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout)
    return found
