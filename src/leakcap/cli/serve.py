"""`leakcap serve`: starts the server, and says how to get in."""

from __future__ import annotations

import os
import tempfile
import warnings
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from leakcap.cli.terminal import Terminal, plain
from leakcap.errors import InputError, KeyMadeWarning, MissingExtra
from leakcap.server.serving import bound_socket, flight_beside, refuse_open, serve
from leakcap.server.settings import ServerLimits, ServerSettings
from leakcap.sql.engine import EngineLimits

__all__ = ["ServeOrder", "run"]

HOME = Path("leakcap-server")
LOCAL = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True)
class ServeOrder:
    """What `leakcap serve` was asked."""

    home: Path | None
    database: str | None = field(repr=False)  # an address may hold a password
    ledger: str | None = field(repr=False)
    host: str
    port: int
    names: tuple[str, ...]
    tls_certificate: Path | None
    tls_key: Path | None
    seconds: float
    flight: str | None
    demo: bool
    move: bool = False


def run(order: ServeOrder, quiet: bool = False, json: bool = False) -> None:
    """Start, print the address and what is shown once, and answer until stopped."""
    terminal = Terminal(quiet, json)
    refuse_open(order.host, order.tls_certificate, order.tls_key)
    if order.demo and order.database is not None:
        raise InputError("the demo leaves nothing behind: start it without --database")
    if order.move and order.database is None:
        raise InputError("say where to move the server's file to: --database postgresql://...")
    try:
        from leakcap.server.app import create_app
    except ImportError:
        raise MissingExtra("the server is an extra: pip install 'leakcap[server]'") from None
    from leakcap.server.first_start import first_custodian

    with ExitStack() as stack:
        stack.enter_context(terminal.heeding())
        listening = stack.enter_context(bound_socket(order.host, order.port))
        home = order.home or HOME
        if order.demo:
            home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="leakcap-demo-")))
            os.environ["LEAKCAP_KEY"] = str(home / "key")
        if order.move and order.database is not None:
            from leakcap.server.moving import move_into

            rows = move_into(home, order.database)
            terminal.say(f"Moved into the database: {rows:,} rows." if rows else "It was moved before.")
        settings = ServerSettings(
            home=home,
            database=order.database,
            ledger=order.ledger,
            encrypted=order.tls_certificate is not None,
            hosts=(*LOCAL, order.host, *order.names),
            limits=ServerLimits(engine=EngineLimits(seconds=order.seconds)),
            demo=order.demo,
        )
        app = create_app(settings)
        state = app.state.leakcap
        address = f"http{'s' if settings.encrypted else ''}://{order.host}:{listening.getsockname()[1]}"
        terminal.heading("leakcap server")
        if order.demo:
            from leakcap.server.demo import fill

            with warnings.catch_warnings():
                warnings.simplefilter("ignore", KeyMadeWarning)  # the key goes with the folder
                access = fill(state)
            for role, (name, password) in (("custodian", access.custodian), ("analyst", access.analyst)):
                terminal.say(f"Sign in as {role}: name [bold]{name}[/bold], password [bold]{password}[/bold]")
            terminal.say(f"From Python: lc.connect({address!r}, token={access.token!r}, dataset='diabetes')")
            terminal.say("These are shown once. All of it goes when the server ends.")
            made: dict[str, object] = {"custodian": access.custodian, "analyst": access.analyst, "token": access.token}
        else:
            first = first_custodian(state)
            made = {} if first is None else {"custodian": ("custodian", first)}
            if first is not None:
                terminal.say(f"The first account: name [bold]custodian[/bold], password [bold]{first}[/bold]")
                terminal.say("It is shown once.")
        if order.flight is not None:
            reached = stack.enter_context(flight_beside(state, order.flight, order.tls_certificate, order.tls_key))
            terminal.say(f"Arrow Flight SQL: {plain(reached)}")
            made["flight"] = reached
        terminal.say(f"Open [bold]{plain(address)}[/bold] in a browser. Ctrl-C ends the server.")
        terminal.result({"address": address, **made})
        serve(app, listening, order.tls_certificate, order.tls_key)
