"""NOTIFY and pg_notify() on one connection."""

from __future__ import annotations

from collections.abc import Sequence

from triplicate.sql.core.interface import Prepared, StatementKind, Value
from triplicate.sql.core.notifications import Notification, checked_notification
from triplicate.sql.pg.protocol.connection_state import ConnectionState
from triplicate.sql.pg.protocol.implicit_transaction import ImplicitTransaction
from triplicate.sql.pg.syntax.notify_statements import NotifyCall, NotifyStatement


class NotifyCommand:
    """Sends notifications with the open transaction, or with one of their own."""

    def __init__(self, state: ConnectionState, transaction: ImplicitTransaction) -> None:
        self._state = state
        self._transaction = transaction

    async def run(self, command: NotifyStatement | NotifyCall, parameters: Sequence[Value], *, is_alone: bool) -> None:
        """Run a command.

        Args:
            parameters: of a call. is_alone: whether it may be a transaction of its own; otherwise Sync ends the one that begins here.

        Raises:
            SqlError: 25006 on a node that follows; 22023 and 42939 as `checked_notification`; and as a change.
        """
        notification = command.notification if isinstance(command, NotifyStatement) else called_notification(command, parameters)
        prepared = Prepared("", StatementKind.WRITE, (), (), "NOTIFY", command=notification)
        session = self._state.session
        session.check_prepared(prepared)
        if not is_alone:
            await self._transaction.begin()
        cursor = await session.start(prepared, ())
        await cursor.close()


def called_notification(call: NotifyCall, parameters: Sequence[Value]) -> Notification:
    """The notification of a call. Raises SqlError as `checked_notification`."""
    channel, payload = [_text(parameters[one - 1] if isinstance(one, int) else one) for one in call.arguments]
    return checked_notification(channel, payload)


def _text(value: Value) -> str:
    """An argument; NULL is the empty text, as in PostgreSQL."""
    return "" if value is None else value.decode() if isinstance(value, bytes) else str(value)
