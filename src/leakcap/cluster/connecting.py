"""Which cluster: workers of our own on this machine, or those of a scheduler that may be trusted with the data."""

from __future__ import annotations

import copy
import ipaddress
import socket
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from leakcap.errors import InputError, MissingExtra
from leakcap.ground import checks
from leakcap.ground.cores import threads

__all__ = [
    "SCHEDULER_LOST",
    "Cluster",
    "cluster_for",
    "connect",
    "connected",
    "loaded",
    "names_cluster",
    "refuse_without_tls",
]

SCHEME = "dask://"
PATIENCE = 600.0
STARTING = "1h"  # for a worker in the place of a lost one
SILENT = 60  # above all levels: what a cluster of our own writes when it ends concerns nobody
QUIET = {
    "distributed.worker.memory.target": False,  # nothing goes to a disk, though it were ciphertext
    "distributed.worker.memory.spill": False,
    "distributed.scheduler.http.routes": [],  # pages without a password, for whoever is on this machine
    "distributed.worker.http.routes": [],
    "distributed.admin.log-length": 0,
    "distributed.worker.profile.enabled": False,  # which lines run a hundred times a second is told to nobody
    "distributed.admin.tick.limit": "1h",
}
NO_TLS = (
    "{} at {} is on another machine and reached without TLS: the data would be open to the network. Start it with "
    "--tls-ca-file, --tls-cert and --tls-key, or say lc.cluster.connect(..., insecure=True); --insecure on the command "
    "line"
)
ENDED = "the connection to the cluster has ended: connect again"
SCHEDULER_LOST = (
    "the connection to the scheduler was lost: nothing was released. The same call goes on from what was done where it "
    "has a checkpoint=; start the scheduler again, or leave backend= out"
)


@dataclass(frozen=True, eq=False)
class Cluster:
    """A connection to workers, to be given as `backend`; it may be used for several runs, and in a `with` block.

    Attributes:
        client: the `distributed.Client`.
        patience: seconds without any task's end after which a run is given up.
        own: whether the workers were started for it, and end with it.
        reached: whether the client was made for it, and ends with it.
        insecure: whether schedulers and workers of other machines are taken without TLS.
        again: what is connected to anew where this connection has ended; None where that is for whoever made it.
    """

    client: Any
    patience: float = PATIENCE
    own: bool = False
    reached: bool = False
    insecure: bool = False
    again: tuple[Any, int | None] | None = None

    def __post_init__(self) -> None:
        """However it was made: an InputError where data would be readable by others on the way."""
        if not self.alive:
            raise InputError(ENDED)
        if not self.insecure:
            refuse_without_tls("the scheduler", self.client.scheduler.address)

    @property
    def alive(self) -> bool:
        """Whether the connection stands."""
        return bool(self.client.status == "running")

    @property
    def threads(self) -> int:
        """How many tasks run at a time."""
        return sum(self.client.nthreads().values())

    def close(self) -> None:
        """End the connection, and workers that were started for it; a client that was given stays open."""
        if self.own:
            cluster = self.client.cluster
            self.client.close()
            cluster.close()
        elif self.reached:
            self.client.close()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def __deepcopy__(self, _: Any) -> Cluster:
        return self  # settings of an estimator are copied with it, connections are not

    def __reduce__(self) -> Any:
        raise InputError("a connection to a cluster stays in its process: connect again there")


def connect(
    where: Any = None, *, workers: int | None = None, patience: float = PATIENCE, insecure: bool = False
) -> Cluster:
    """Connect to a Dask cluster, or start workers on this machine.

    Args:
        where: "dask://host:port", a `distributed.Client`, or None for workers of this machine.
        workers: how many are started on this machine; None for one on each core.
        patience: seconds without any task's end after which a run is given up: longer than your longest batch.
        insecure: take also a scheduler of another machine, and workers, without TLS.

    Returns:
        The connection, to be given as `backend`.

    Raises:
        InputError: the scheduler cannot be reached, is not safe enough for the data, or has no workers.
        MissingExtra: Dask is not installed.

    Examples:
        >>> import numpy as np
        >>> import leakcap as lc
        >>> heights = np.random.default_rng(0).normal(170, 10, size=200)
        >>> with lc.cluster.connect(workers=2) as two:  # doctest: +SKIP
        ...     plan = lc.plan(lambda x: np.median(x), heights, cap=0.6, worlds=256, backend=two)
    """
    checks.positive(patience=patience)
    distributed = loaded()
    if where is None:
        return _started(distributed, threads() if workers is None else checks.count(workers=workers), patience)
    if workers is not None:
        raise InputError("workers= is for those of this machine: leave it out, or leave out where they are")
    given = isinstance(where, distributed.Client)
    client = where if given else _reached(distributed, _address(where))
    try:
        found = Cluster(client, patience=float(patience), reached=not given, insecure=insecure)
        if not found.threads:
            raise InputError("the cluster has no workers: start some, such as with the command 'dask worker'")
    except InputError:
        if not given:
            client.close()
        raise
    return found


def cluster_for(backend: Any, workers: int | None) -> Cluster | None:
    """The cluster that a backend names, for whoever asks to close if it was not connected before; or None."""
    if isinstance(backend, Cluster):
        if backend.alive:
            return backend
        if backend.again is None:
            raise InputError(ENDED)
        backend, workers = backend.again
    return connected(backend, workers) if names_cluster(backend) else None


def connected(backend: Any, workers: int | None) -> Cluster:
    """A cluster that is named, and can be connected to anew."""
    found = connect(workers=workers) if isinstance(backend, str) and backend == "dask" else connect(backend)
    return replace(found, again=(backend, workers))


def names_cluster(backend: Any) -> bool:
    """Whether this is a cluster that is not connected to yet."""
    if isinstance(backend, str):
        return backend == "dask" or backend.startswith(SCHEME)
    return type(backend).__module__.partition(".")[0] == "distributed"


def loaded() -> Any:
    """Dask, or words about how to get it."""
    try:
        import distributed
    except ImportError:
        raise MissingExtra("clusters need Dask: pip install 'leakcap[dask]'") from None
    return distributed


def _started(distributed: Any, workers: int, patience: float) -> Cluster:
    import dask

    try:
        own = distributed.Security.temporary()  # whoever may submit may run anything: other users of this machine too
    except ImportError:
        raise MissingExtra("workers of this machine need cryptography: pip install 'leakcap[dask]'") from None
    with dask.config.set(QUIET):
        cluster = _patient(distributed.LocalCluster)(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
            host="127.0.0.1",
            protocol="tls",
            security=own,
            silence_logs=SILENT,
            memory_limit="auto",
            config=copy.deepcopy(
                dask.config.config
            ),  # of workers that take the place of lost ones, too: they begin when this block is long over
        )
        client = distributed.Client(cluster)
    return Cluster(client, float(patience), own=True)


def _patient(kind: Any) -> Any:
    """A kind of cluster that waits for workers to start again, however busy the machine is; Dask's gives them up for
    good after 15 seconds, until none is left."""
    import dask

    class Patient(kind):  # type: ignore[misc]
        def _update_worker_status(self, op: Any, msg: Any) -> None:
            with dask.config.set({"distributed.deploy.lost-worker-timeout": STARTING}):
                super()._update_worker_status(op, msg)

    return Patient


def _address(where: Any) -> str:
    parts = urlsplit(where) if isinstance(where, str) else None
    try:
        known = parts is not None and parts.scheme == SCHEME.removesuffix("://") and parts.hostname and parts.port
    except ValueError:  # of the port
        known = False
    if not known:
        raise InputError("where must be 'dask://host:port', a distributed.Client, or None for workers of this machine")
    assert parts is not None
    return parts.netloc


def _reached(distributed: Any, address: str) -> Any:
    import dask

    scheme = "tls" if dask.config.get("distributed.comm.tls.ca-file", None) else "tcp"
    try:
        return distributed.Client(f"{scheme}://{address}", timeout=10, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        kind = type(error).__name__
    raise InputError(f"there is no scheduler at {address} ({kind}): start one with 'dask scheduler', or check its port")


def refuse_without_tls(who: str, address: str) -> None:
    """An InputError where what is said to somebody is readable by others on the way."""
    if not address.startswith(("tls://", "inproc://")) and not _is_this_machine(urlsplit(address).hostname or ""):
        raise InputError(NO_TLS.format(who, address))


def _is_this_machine(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback or host in _own_addresses()
    except ValueError:
        return False


def _own_addresses() -> set[str]:
    try:
        return {str(found[4][0]) for found in socket.getaddrinfo(socket.gethostname(), None)}
    except OSError:
        return set()
