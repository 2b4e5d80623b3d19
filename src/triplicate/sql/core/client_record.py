"""The present work of one client of a node, as views show it. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from triplicate.sql.core.audit import ConnectedClient
from triplicate.sql.core.lexer import Statement
from triplicate.sql.core.session_roles import SessionRoles
from triplicate.sql.core.transaction_block import TransactionStatus


class ShownSession(Protocol):
    """The part of a session that is shown."""

    @property
    def status(self) -> TransactionStatus: ...

    @property
    def roles(self) -> SessionRoles: ...

    @property
    def writer_use(self) -> str: ...


class ClientRecord:
    """Changed by the connection's conversation, or the session in this process. Times are of a clock that never goes back, in seconds."""

    __slots__ = ("application", "began_s", "client", "connected_s", "ended_s", "process_id", "session", "statement", "transaction_us")

    def __init__(self, session: ShownSession, client: ConnectedClient, application: Callable[[], str], now_s: float) -> None:
        self.process_id = 0
        self.session = session
        self.client = client
        self.application = application
        self.connected_s = now_s
        self.transaction_us: Callable[[], int | None] = lambda: None
        """When the open transaction began, µs since 1970."""
        self.statement: Statement | str | None = None
        """The last one that began; of a session in this process its text, in SQLite's dialect."""
        self.began_s = now_s
        """When it began, or when the client connected."""
        self.ended_s: float | None = now_s
        """When it ended; None while it runs. Its begin may have the same time, since the clock of an event loop stands still in a turn."""

    @property
    def is_running(self) -> bool:
        """Whether `statement` runs now."""
        return self.ended_s is None

    @property
    def changed_s(self) -> float:
        """When a statement began or ended last."""
        return self.began_s if self.ended_s is None else self.ended_s
