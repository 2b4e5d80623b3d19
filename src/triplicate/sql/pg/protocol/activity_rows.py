"""The live tables of what the clients of this node and the sessions of its process do: sessions, transactions, statements, locks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from triplicate.runtime import Clock
from triplicate.sql.catalogue.object_ids import object_ids
from triplicate.sql.catalogue.role_relations import ADMINISTRATOR_OID, RoleCatalogue
from triplicate.sql.core.client_record import ClientRecord
from triplicate.sql.core.database_activity import DatabaseActivity
from triplicate.sql.core.interface import TransactionStatus
from triplicate.sql.core.live_rows import LiveRequest, LiveRow, LiveSource
from triplicate.sql.core.statement_statistics import StatementUse, sqlite_statement, text_without_constants
from triplicate.sql.pg.values import types
from triplicate.sql.pg.values.datetimes import text_of_micros

HIDDEN = "<insufficient privilege>"
"""The text of another role's statement."""
_Make = Callable[[LiveRequest], Iterator[LiveRow]]


class ActivityRows:
    """The rows of one database.

    Args:
        database: its name.
    """

    def __init__(self, database: str, activity: DatabaseActivity, clock: Clock) -> None:
        self._database = database
        self._activity = activity
        self._clock = clock

    def by_table(self) -> dict[str, LiveSource]:
        """Maps the name of each table to its source."""
        return {
            "triplicate_sessions": _source(self._sessions),
            "triplicate_open_transactions": _source(self._transactions),
            "triplicate_statements": _source(self._statements),
            "triplicate_locks": _source(self._locks),
            "pg_stat_activity": _source(self._stat_activity),
            "pg_stat_statements": _source(self._stat_statements),
            "pg_locks": _source(self._pg_locks),
        }

    def _moment(self, seconds: float) -> str:
        """A time of the clock that never goes back, as a timestamp."""
        return text_of_micros(self._clock.wall_us() - round((self._clock.monotonic() - seconds) * 1e6), types.TIMESTAMPTZ)

    def _clients(self) -> list[ClientRecord]:
        return sorted(self._activity.clients.values(), key=lambda client: client.process_id)

    def _sessions(self, request: LiveRequest) -> Iterator[LiveRow]:
        for one in self._clients():
            client = one.client
            moments = self._moment(one.connected_s), self._began(one), self._moment(one.changed_s)
            facts = _state(one), one.session.writer_use or None, *moments, _text(one, request)
            address = (client.address, client.tls) if request.may_see(_role(one)) else (None, None)
            yield one.process_id, _role(one), one.application(), *address, *facts

    def _began(self, one: ClientRecord) -> str | None:
        return None if one.statement is None else self._moment(one.began_s)

    def _transaction_began(self, one: ClientRecord) -> str | None:
        began_us = one.transaction_us()
        return None if began_us is None or one.session.status is TransactionStatus.IDLE else text_of_micros(began_us, types.TIMESTAMPTZ)

    def _transactions(self, request: LiveRequest) -> Iterator[LiveRow]:
        for one in self._clients():
            if one.session.status is not TransactionStatus.IDLE:
                began = self._transaction_began(one)
                yield one.process_id, _role(one), _state(one), one.session.writer_use or None, began, _text(one, request)

    def _locks(self, request: LiveRequest) -> Iterator[LiveRow]:
        for one in self._clients():
            use = one.session.writer_use
            if use:
                yield one.process_id, _role(one), int(use == "holds"), self._began(one), _text(one, request)

    def _uses(self, request: LiveRequest) -> list[StatementUse]:
        """The statements that the role may see: its own, and for superusers all."""
        return [use for use in self._activity.statements.uses() if request.may_see(use.role)]

    def _statements(self, request: LiveRequest) -> Iterator[LiveRow]:
        for use in self._uses(request):
            times = _ms(use.total_s), _ms(use.total_s / max(1, use.calls)), _ms(use.longest_s)
            waits = use.writer_wait_s, use.log_wait_s, use.read_wait_s
            yield use.role, use.text, use.calls, use.errors, use.rows, *times, _ms(sum(waits)), *map(_ms, waits)

    # As in PostgreSQL's views.

    def _stat_activity(self, request: LiveRequest) -> Iterator[LiveRow]:
        database, roles = _oid(self._database), RoleCatalogue(request.access, self._database).oids
        for one in self._clients():
            waits = one.session.writer_use == "waits"
            moments = (
                self._moment(one.connected_s),
                self._transaction_began(one),
                self._began(one),
                self._moment(one.changed_s),
            )
            yield (
                *(database, self._database, one.process_id, None, roles.get(_role(one), ADMINISTRATOR_OID), _role(one), one.application()),
                *(one.client.address if request.may_see(_role(one)) and one.client.address else None, None, None, *moments),
                *(("Lock", "writer") if waits else (None, None) if one.is_running else ("Client", "ClientRead")),
                *(_state(one), None, None, None, _text(one, request), "client backend"),
            )

    def _stat_statements(self, request: LiveRequest) -> Iterator[LiveRow]:
        database, roles = _oid(self._database), RoleCatalogue(request.access, self._database).oids
        for use in self._uses(request):
            times = [_ms(seconds) for seconds in (use.total_s, use.shortest_s, use.longest_s, use.total_s / max(1, use.calls))]
            query = _oid(use.text)
            yield roles.get(use.role, ADMINISTRATOR_OID), database, 1, query, use.text, use.calls, *times, use.rows

    def _pg_locks(self, _: LiveRequest) -> Iterator[LiveRow]:
        database = _oid(self._database)
        for one in self._clients():
            use = one.session.writer_use
            if use:
                is_held = use == "holds"
                lock = ("object", database, None, None, None, None, None, None, None, None, f"{one.process_id}/0", one.process_id)
                yield *lock, "ExclusiveLock", int(is_held), 0, None if is_held else self._moment(one.began_s)


def _source(make: _Make) -> LiveSource:
    async def rows(request: LiveRequest) -> Sequence[LiveRow]:
        return list(make(request))

    return rows


def _oid(name: str) -> int:
    return object_ids([name])[name]


def _role(one: ClientRecord) -> str:
    return one.session.roles.current_user


def _state(one: ClientRecord) -> str:
    """The state as PostgreSQL names it."""
    if one.is_running:
        return "active"
    status = one.session.status
    if status is TransactionStatus.IDLE:
        return "idle"
    return "idle in transaction" if status is TransactionStatus.ACTIVE else "idle in transaction (aborted)"


def _text(one: ClientRecord, request: LiveRequest) -> str | None:
    """The client's last statement without its constants, as far as the role may see it."""
    if one.statement is None:
        return None
    if not request.may_see(_role(one)):
        return HIDDEN
    return text_without_constants(sqlite_statement(one.statement) if isinstance(one.statement, str) else one.statement)


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
