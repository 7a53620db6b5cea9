"""The first account of a server: a custodian, with a password that is shown once."""

from __future__ import annotations

from leakcap.server.accounts import CUSTODIAN
from leakcap.server.passwords import made_password
from leakcap.server.state import ServerState

__all__ = ["first_custodian"]


def first_custodian(state: ServerState) -> str | None:
    """The password of a new account `custodian`; None where there are accounts already."""
    if state.accounts.all():
        return None
    password = made_password()
    state.accounts.add("custodian", CUSTODIAN, password)
    state.audit_log.add("", "opened an account", "custodian")
    return password
