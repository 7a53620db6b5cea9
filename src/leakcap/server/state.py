"""Everything that a running server holds, made once when it starts."""

from __future__ import annotations

from leakcap.server.accounts import Accounts
from leakcap.server.asking import Asking
from leakcap.server.audit_log import AuditLog
from leakcap.server.database import Database
from leakcap.server.datasets import Datasets
from leakcap.server.long_work import LongWork
from leakcap.server.settings import ServerSettings
from leakcap.server.signing_in import SigningIn
from leakcap.server.throttle import Failures, Rate
from leakcap.server.tokens import Tokens
from leakcap.server.uploads import Uploads

__all__ = ["ServerState"]

TOO_MANY = "There were too many requests in a minute: wait a little, then go on."
TOO_MANY_QUESTIONS = "There were too many questions in a minute: wait a little, then go on."


class ServerState:
    """The parts of a server, by what they know."""

    def __init__(self, settings: ServerSettings) -> None:
        limits = settings.limits
        self.settings = settings
        self.database = Database(settings.home, settings.database)
        self.accounts = Accounts(self.database)
        self.tokens = Tokens(self.database, limits.token_days)
        self.signing_in = SigningIn(self.database, limits)
        self.audit_log = AuditLog(self.database)
        self.uploads = Uploads(settings.home / "uploads", limits.upload)
        self.datasets = Datasets(self.database, settings)
        self.datasets.refuse_other_ledger()
        self.datasets.sweep()
        self.long_work = LongWork(self.database)
        self.asking = Asking(self.database, self.datasets, limits)
        self.by_account = Rate(limits.requests_per_minute, TOO_MANY)
        self.by_address = Rate(limits.requests_per_minute, TOO_MANY)
        self.questions = Rate(limits.questions_per_minute, TOO_MANY_QUESTIONS)
        self.failures = Failures(limits.failures, limits.wait)
        self.failures_of_address = Failures(limits.failures_of_address, limits.wait)

    def close(self) -> None:
        """End the processes that wait or work for it, and let go of its files."""
        self.long_work.close()
        self.datasets.close()
        self.database.close()
