"""NOTIFY on the leader's writing connection."""

from __future__ import annotations

from typing import NamedTuple

from triplicate.errors import SqlError
from triplicate.sql.core.batch_builder import MAX_TRANSACTION_BYTES
from triplicate.sql.core.notifications import Notification, notification_setting
from triplicate.sql.core.records import Operation
from triplicate.sql.executor.change_capture import ChangeCapture
from triplicate.sql.executor.spooled_changes import SMALLER


class _Sent(NamedTuple):
    place: int
    """Of its event."""
    operation: Operation
    total: int
    """Characters of it and of those before."""


class NotifyStatements:
    """Adds notifications to the changes of the open transaction. A savepoint that is rolled back takes them with it.

    Args:
        capture: of the transaction's changes.
    """

    def __init__(self, capture: ChangeCapture) -> None:
        self._capture = capture
        self._sent: list[_Sent] = []
        """Notifications among the captured changes. Those that were undone are dropped by the next call."""

    def run(self, notification: Notification) -> None:
        """Raises SqlError 54000: the transaction has too many."""
        events, sent = self._capture.events, self._sent
        while sent and not (sent[-1].place < len(events) and events[sent[-1].place][1] is sent[-1].operation):
            sent.pop()
        total = (sent[-1].total if sent else 0) + len(notification.channel) + len(notification.payload)
        if total > MAX_TRANSACTION_BYTES:
            raise SqlError("54000", f"the transaction's notifications take more than {MAX_TRANSACTION_BYTES} bytes", hint=SMALLER)
        operation = notification_setting(notification)
        sent.append(_Sent(len(events), operation, total))
        self._capture.add(operation)
