"""The commands that are none on named keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from triplicate.kv.core.operations import Get, VersionIs
from triplicate.kv.core.store_interface import KeyValueStore, LevelKind
from triplicate.kv.resp import node_queries
from triplicate.kv.resp.client_stream import ClientStream
from triplicate.kv.resp.core import connection_commands as commands
from triplicate.kv.resp.core.command_errors import CommandError
from triplicate.kv.resp.core.connection_commands import ConnectionCommand
from triplicate.kv.resp.core.key_commands import KeyCommand, check_sizes
from triplicate.kv.resp.core.replies import NULL_ARRAY, OK, RESP2, ErrorReply, Reply, Simple, Verbatim
from triplicate.kv.resp.core.server_info import ClientFacts, hello_map
from triplicate.kv.resp.keyspace_notifications import Notifications
from triplicate.kv.resp.node_queries import NodeFacts
from triplicate.kv.resp.resp_logins import AUTHENTICATION_REQUIRED, RespLogins
from triplicate.kv.resp.store_runner import StoreRunner
from triplicate.kv.resp.store_session import DEFAULT_LEVEL, QueuedTransaction, StoreSession, may_run, refusal_of


@dataclass(frozen=True, slots=True)
class Answered:
    reply: Reply


@dataclass(slots=True)
class CommandHandlers:
    """The commands of one connection.

    Args:
        connection: its number.
        runner: of the chosen store.
        facts: of this connection.
    """

    node: NodeFacts
    connection: int
    stream: ClientStream
    session: StoreSession
    logins: RespLogins
    notifications: Notifications
    runner: Callable[[], StoreRunner]
    facts: Callable[[], ClientFacts]

    def chosen_store(self) -> KeyValueStore:
        """The store of the connection; the default one, unless the client has chosen another. Raises CommandError: there is none."""
        session = self.session
        if session.store is None:
            session.store = self.logins.store("")
            session.store_name = session.store.name
        return session.store

    def queue(self, command: KeyCommand | ConnectionCommand, size_bytes: int) -> None:
        """Queue a command of a transaction. Raises CommandError: there are too many, or they have too many bytes."""
        transaction, limits = self.session.transaction, self.chosen_store().limits
        assert transaction is not None, "MULTI has begun one"
        if isinstance(command, KeyCommand):
            transaction.operations += len(command.operations)
        transaction.size_bytes += size_bytes
        if (
            len(transaction.queue) >= limits.batch_operations
            or transaction.operations > limits.batch_operations
            or transaction.size_bytes > limits.batch_bytes
        ):
            raise CommandError(f"ERR a transaction has at most {limits.batch_operations} keys and {limits.batch_bytes} bytes")
        transaction.queue.append(command)

    async def answer(self, command: ConnectionCommand) -> Answered | None:
        """Serve a command. Returns None if it has written its replies itself.

        Raises:
            CommandError: it is refused. StoreError, UsageError: the store refuses it.
        """
        if isinstance(command, commands.Subscription):
            await self.notifications.change(self.chosen_store(), command)
            return None
        return Answered(await self._reply(command))

    async def _reply(self, command: ConnectionCommand) -> Reply:
        match command:
            case commands.Hello():
                return await self._hello(command)
            case commands.Auth(login):
                await self._log_in(login)
                return OK
            case commands.Plain(name):
                return await self._plain(name)
            case commands.WatchKeys(keys):
                return await self._watch(keys)
            case commands.Scan():
                return await node_queries.scan(self.node, self.chosen_store(), self.session, command)
            case commands.Keys():
                return await node_queries.keys(self.chosen_store(), self.session, command)
            case commands.Info():
                return await node_queries.info(self.node, self._store_or_none(), self.session, command)
            case _:
                return self._simple(command)

    def _simple(self, command: ConnectionCommand) -> Reply:
        """The reply of a command that needs no store and no wait; also within a transaction."""
        match command:
            case commands.Ping(text):
                if self.notifications.is_active and self.stream.writer.version == RESP2:
                    return [b"pong", text or b""]
                return Simple("PONG") if text is None else text
            case commands.Echo(text):
                return text
            case commands.SelectIndex(index):
                if index != 0:
                    raise CommandError("ERR DB index is out of range: a store has database 0 only; choose a store with AUTH")
                return OK
            case commands.ClientCommand():
                return self._client(command)
            case commands.CommandQuery():
                return node_queries.table(command)
            case commands.SetLevel():
                return self._level(command)
            case commands.Position(position):
                if position is not None:
                    self.session.position = max(self.session.position, position)
                return self.session.position
            case commands.Plain("triplicate.lastread"):
                return self._last_read()
            case commands.Plain("time"):
                seconds, microseconds = divmod(self.node.host.clock.wall_us(), 1_000_000)
                return [b"%d" % seconds, b"%d" % microseconds]
            case commands.Plain("unwatch"):
                self.session.watched.clear()
                return OK
            case _:
                raise CommandError("ERR Command not allowed inside a transaction")

    async def _plain(self, name: str) -> Reply:
        session = self.session
        match name:
            case "multi":
                if session.transaction is not None:
                    raise CommandError("ERR MULTI calls can not be nested")
                session.transaction = QueuedTransaction()
                return OK
            case "exec":
                return await self._exec()
            case "discard":
                if session.transaction is None:
                    raise CommandError("ERR DISCARD without MULTI")
                session.transaction = None
                session.watched.clear()
                return OK
            case "reset":
                return await self._reset()
            case "quit":
                return OK
            case "randomkey":
                return await node_queries.random_key(self.node, self.chosen_store(), session)
            case "dbsize":
                return await node_queries.size(self.chosen_store(), session)
            case "role":
                return self.node.replication(self.chosen_store()).role()
            case _:
                return self._simple(commands.Plain(name))

    # Connections.

    async def _hello(self, wanted: commands.Hello) -> Reply:
        if wanted.login is not None:
            await self._log_in(wanted.login)
        elif not self.session.is_admitted and self.logins.demands_login:
            raise CommandError(f"{AUTHENTICATION_REQUIRED} HELLO must be called with AUTH, or AUTH before it")
        elif not self.session.is_admitted:
            self.session.trust()
        if wanted.name is not None:
            self.session.name = wanted.name
        if wanted.version is not None:
            self.stream.writer.version = wanted.version
        store = self._store_or_none()
        is_leader = store is not None and store.is_leader
        return hello_map(self.node.version, self.stream.writer.version, self.connection, is_leader=is_leader)

    async def _log_in(self, login: commands.Credentials) -> None:
        if self.notifications.is_active or self.session.transaction is not None:
            raise CommandError("ERR AUTH is not allowed within a transaction or with subscriptions")
        before = self.session.store
        await self.logins.log_in(self.stream, self.session, login)
        if self.session.store is not before:
            self.session.watched.clear()
            self.session.forget_reads()

    def _store_or_none(self) -> KeyValueStore | None:
        try:
            return self.chosen_store()
        except CommandError:
            return None

    async def _reset(self) -> Reply:
        await self.notifications.end()
        session, fresh = self.session, StoreSession()
        is_trusting = session.is_admitted and not self.logins.demands_login
        session.user, session.proven, session.rights = fresh.user, fresh.proven, fresh.rights
        session.is_admitted, session.store, session.store_name = fresh.is_admitted, None, ""
        session.level, session.name = DEFAULT_LEVEL, b""
        session.forget_reads()
        session.transaction = None
        session.watched.clear()
        self.stream.writer.version = RESP2
        if is_trusting:
            session.trust()
        return Simple("RESET")

    def _client(self, command: commands.ClientCommand) -> Reply:
        match command.subcommand:
            case "id":
                return self.connection
            case "getname":
                return self.session.name or None
            case "setname":
                self.session.name = command.value
            case "setinfo":
                self.session.library = self.session.library or command.value[: commands.NAME_BYTES_MAX]
            case "info":
                return Verbatim(self.facts().line + "\n")
            case "list":
                # Of its own store only: a role of one store learns nothing of the clients of others.
                own = [each for each in self.node.clients() if each.store == self.session.store_name]
                return Verbatim("".join(f"{each.line}\n" for each in own))
            case _:
                pass  # NO-EVICT and NO-TOUCH: no client is evicted, and keys have no time of use.
        return OK

    def _level(self, wanted: commands.SetLevel) -> Reply:
        if wanted.kind is not None:
            self.session.level = wanted
            return OK
        level = self.session.level
        assert level.kind is not None, "a level was chosen"
        return f"bounded {level.age_s:g}".encode() if level.kind is LevelKind.BOUNDED else level.kind.value.encode()

    def _last_read(self) -> Reply:
        session = self.session
        if session.read_position is None:
            return None
        node = self.chosen_store().node_id.encode()
        return {b"node": node, b"position": session.read_position, b"age": session.read_age_s}

    # Transactions.

    async def _watch(self, keys: tuple[bytes, ...]) -> Reply:
        session, limits = self.session, self.chosen_store().limits
        if session.transaction is not None:
            raise CommandError("ERR WATCH inside MULTI is not allowed")
        new = tuple(dict.fromkeys(key for key in keys if key not in session.watched))
        if len(session.watched) + len(new) > limits.batch_operations:
            raise CommandError(f"ERR a connection watches at most {limits.batch_operations} keys")
        check_sizes(tuple(map(Get, new)), limits)
        session.watched.update(zip(new, await self.runner().versions(new), strict=True))
        return OK

    async def _exec(self) -> Reply:
        """EXEC: one batch, if no watched key has changed."""
        session, transaction = self.session, self.session.transaction
        if transaction is None:
            raise CommandError("ERR EXEC without MULTI")
        session.transaction = None
        conditions = [VersionIs(key, version) for key, version in session.watched.items()]
        session.watched.clear()
        if transaction.is_refused:
            raise CommandError("EXECABORT Transaction discarded because of previous errors.")
        on_keys = [command for command in transaction.queue if isinstance(command, KeyCommand)]
        rights = session.rights
        if not rights.are_full and not (all(may_run(rights, command) for command in on_keys) and (rights.may_read or not conditions)):
            raise CommandError(f"NOPERM the rights of user {session.user} were changed since MULTI; nothing of the transaction was run")
        replies: list[Reply] | None = []
        try:
            if conditions or not all(command.is_read for command in on_keys):
                replies = await self.runner().change(on_keys, conditions)
            elif on_keys:
                replies = await self.runner().read(on_keys)
        except Exception as error:  # noqa: BLE001  the transaction fails alone
            return refusal_of(error, session.store)
        if replies is None:
            return NULL_ARRAY
        rest = iter(replies)
        return [next(rest) if isinstance(command, KeyCommand) else self._in_transaction(command) for command in transaction.queue]

    def _in_transaction(self, command: ConnectionCommand) -> Reply:
        try:
            return self._simple(command)
        except CommandError as error:
            return ErrorReply(str(error))
