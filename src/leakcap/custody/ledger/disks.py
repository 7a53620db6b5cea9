"""On which disk a ledger lies: processes on several machines must not share a write-ahead log."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

__all__ = ["kind_of_disk", "on_network"]

MOUNTS = Path("/proc/self/mountinfo")
NETWORK = ("nfs", "cifs", "smb", "9p", "afs", "ceph", "gluster", "lustre", "fuse.sshfs", "fuse.s3", "fuse.gcs", "ncpfs")


def kind_of_disk(path: Path) -> str:
    """The kind of file system that a file lies on, such as "ext4"; empty where the system does not tell."""
    with suppress(OSError, ValueError, IndexError):
        device = os.stat(path).st_dev
        number = f"{os.major(device)}:{os.minor(device)}"
        for line in MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines():
            mount, kind = line.split(" - ")
            if mount.split()[2] == number:
                return kind.split()[0]
    return ""


def on_network(path: Path) -> bool:
    """Whether a file lies on another machine, as far as the system tells."""
    return kind_of_disk(path).startswith(NETWORK)
