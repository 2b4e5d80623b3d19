"""One client's conversation: the commands of each received chunk are served at once, and their replies are sent together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from triplicate.errors import ProtocolError, StoreError, UsageError
from triplicate.kv.core.store_interface import KeyValueStore
from triplicate.kv.resp.client_stream import ClientStream
from triplicate.kv.resp.command_handlers import CommandHandlers
from triplicate.kv.resp.core.command_errors import CommandError
from triplicate.kv.resp.core.command_table import Command, CommandSpec, find
from triplicate.kv.resp.core.connection_commands import Auth, Hello, Plain, Subscription, WatchKeys
from triplicate.kv.resp.core.key_commands import ComputedCommand, KeyCommand, check_sizes
from triplicate.kv.resp.core.replies import QUEUED, RESP2, ErrorReply, Reply
from triplicate.kv.resp.core.resp_requests import BEFORE_LOGIN, WordLimits
from triplicate.kv.resp.resp_logins import AUTHENTICATION_REQUIRED
from triplicate.kv.resp.store_runner import RUN_BYTES_MAX, RUN_OPERATIONS_MAX, RUN_READS_MAX, StoreRunner
from triplicate.kv.resp.store_session import StoreSession, may_run, read_only, refusal_of
from triplicate.runtime import EagerWork, TaskScope, fail, own_task, resolve

TURN_REQUESTS = 500
"""After this number of requests other connections are served."""
_ENDING_NAMES = frozenset((b"post", b"host:"))
"""First words of a request of HTTP: a web page may make a browser send commands in its body, so the connection ends. As Redis does."""
_OF_TRANSACTIONS = frozenset(("multi", "exec", "discard", "watch", "quit", "reset"))
"""Commands that are not queued."""
_OF_SUBSCRIBERS = frozenset(("subscribe", "unsubscribe", "psubscribe", "punsubscribe", "ping", "quit", "reset"))
"""Commands that a client of version 2 may send while it has subscriptions: others would have replies that look like messages."""

USER_REMOVED = ErrorReply("NOAUTH this user was removed, or its password was changed")

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Ready:
    """A reply that stands in the order of the run."""

    reply: Reply


class RespConversation:
    """Serves one client until it disconnects.

    Args:
        limits: of a request, once the client is admitted.
        handlers: makes the handlers of the other commands.
        admit: called when the session is admitted. Raises CommandError: there is no room.
        dismiss: called when a RESET has ended the login, and another one is demanded.
    """

    def __init__(
        self,
        stream: ClientStream,
        session: StoreSession,
        limits: WordLimits,
        handlers: Callable[[RespConversation, TaskScope], CommandHandlers],
        admit: Callable[[], None],
        dismiss: Callable[[], None],
    ) -> None:
        self._stream = stream
        self._session = session
        self._scope = TaskScope("kv-client")
        self._handlers = handlers(self, self._scope)
        self._limits = limits
        self._admit = admit
        self._dismiss = dismiss
        self._limit_requests()
        self._run: list[KeyCommand | _Ready] = []
        self._run_operations = 0
        self._run_bytes = 0
        self._run_reads = 0
        self._runner: StoreRunner | None = None
        self._runner_store: KeyValueStore | None = None
        self._is_over = False
        self._is_working = False
        self._work_runner = EagerWork(self._continue, stream.flush)
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    # The work.

    async def run(self) -> None:
        """Serve until the client disconnects. When it returns or raises, nothing of the client runs any more."""
        self._stream.on_input = self._advance
        try:
            self._advance()
            await self._ended
        finally:
            self._is_over, self._stream.on_input = True, None
            self._work_runner.move_to_task()
            await self._scope.aclose()
            await self._handlers.notifications.end()

    def end(self) -> None:
        """End the conversation after the command being served."""
        self._is_over = True
        self._advance()

    def end_of_user(self) -> None:
        """End the conversation, because the client's user was removed or has another password."""
        if not self._is_working and not self._stream.is_lost:
            self._stream.writer.write(USER_REMOVED)  # The client reads it as the answer of its next request.
        self.end()

    def _advance(self) -> None:
        if self._is_working:
            self._stream.limit_input()
            if self._stream.is_lost:
                self._is_over = True
        elif self._is_over or self._stream.is_lost:
            resolve(self._ended, None)
        else:
            self._is_working = True
            self._stream.begin_serving()
            self._work_runner.start(self._work())

    def _continue(self, rest: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return self._scope.spawn(rest, name="work")

    async def _work(self) -> None:
        try:
            await self._serve_requests()
            self._stream.flush()
        except asyncio.CancelledError:
            self._ended.cancel()
            raise
        except Exception as error:  # noqa: BLE001 -- it is raised from `run`
            self._is_over = True
            fail(self._ended, error)
        finally:
            self._is_working = False
        if self._is_over or self._stream.is_lost:
            resolve(self._ended, None)
        else:
            self._stream.await_more()

    async def _serve_requests(self) -> None:
        """Serve the requests that have arrived."""
        stream, served = self._stream, 0
        if not self._handlers.logins.is_still_user(self._session):
            stream.writer.write(USER_REMOVED)
            self._is_over = True
        while not self._is_over:
            try:
                words = stream.buffer.next_request()
            except ProtocolError as error:
                await self._finish_run()
                stream.writer.write(ErrorReply(f"ERR Protocol error: {error}"))
                self._is_over = True
                return
            if words is None:
                if not self._run:
                    break
                await self._finish_run()
                continue  # Requests that arrived meanwhile have only been noted.
            await self._serve(words)
            served += 1
            if stream.must_wait:
                await stream.drain()
            if served % TURN_REQUESTS == 0:
                await asyncio.sleep(0)
        await self._finish_run()

    async def _serve(self, words: list[bytes]) -> None:
        session = self._session
        try:
            spec = find(words)
            self._check(spec)
            command = spec.read(words)
            if isinstance(command, KeyCommand):
                store = self._handlers.chosen_store()
                size_bytes = check_sizes(command.operations, store.limits)
                if self._run and self._is_full(len(command.operations), size_bytes):
                    await self._finish_run()
                self._add(spec, command, size_bytes, store)
            else:
                await self._serve_other(spec, command, words)
        except (ProtocolError, OSError):
            raise
        except Exception as error:  # noqa: BLE001  the command fails alone
            if words[0].lower() in _ENDING_NAMES:
                self._is_over = True
            if session.transaction is not None and words[0].lower() not in (b"multi", b"watch"):
                session.transaction.is_refused = True
            self._add_reply(refusal_of(error, session.store))

    def _is_full(self, operations: int, size_bytes: int) -> bool:
        """Whether the run has no room for a further command."""
        return (
            self._run_operations + operations > RUN_OPERATIONS_MAX
            or self._run_bytes + size_bytes > RUN_BYTES_MAX
            or self._run_reads >= RUN_READS_MAX
        )

    def _check(self, spec: CommandSpec) -> None:
        """Raises CommandError: the client may not send this command, or not now."""
        session = self._session
        if not session.is_admitted and "no_auth" not in spec.flags:
            if self._handlers.logins.demands_login:
                raise CommandError(AUTHENTICATION_REQUIRED)
            session.trust()
            self._admit_client()
        if self._handlers.notifications.is_active and self._stream.writer.version == RESP2 and spec.name not in _OF_SUBSCRIBERS:
            raise CommandError(
                f"ERR Can't execute '{spec.name}': only (P)SUBSCRIBE / (P)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"
            )
        if session.transaction is not None and "no_multi" in spec.flags and spec.name not in _OF_TRANSACTIONS:
            raise CommandError("ERR Command not allowed inside a transaction")

    def _admit_client(self) -> None:
        """Raises CommandError: there is no room, and the conversation is over."""
        try:
            self._admit()
        except CommandError:
            self._session.is_admitted, self._is_over = False, True
            raise

    def _limit_requests(self) -> None:
        """A client that has to log in may send short requests only."""
        is_stranger = self._handlers.logins.demands_login and not self._session.is_admitted
        self._stream.buffer.limits = BEFORE_LOGIN if is_stranger else self._limits

    # Commands on named keys.

    def _add(self, spec: CommandSpec, command: KeyCommand, size_bytes: int, store: KeyValueStore) -> None:
        """Add a command to the run, or to the transaction. Raises CommandError."""
        self._check_rights(spec, command)
        is_read = command.is_read
        if not is_read and not store.is_leader:
            raise CommandError(read_only(store).text)
        if self._session.transaction is not None:
            if command.conditions:
                raise CommandError(f"ERR '{spec.name}' has a condition and is not allowed between MULTI and EXEC; use WATCH")
            self._handlers.queue(command, size_bytes)
            self._add_reply(QUEUED)
            return
        if is_read:
            at_once = None if self._run else self.runner().get_at_once(command)
            if at_once is not None:
                self._stream.writer.write(at_once[0])
                return
            self._run_reads += len(command.operations)
        self._run.append(command)
        self._run_operations += len(command.operations)
        self._run_bytes += size_bytes

    def _check_rights(self, spec: CommandSpec, command: KeyCommand | ComputedCommand) -> None:
        rights = self._session.rights
        if rights.are_full:
            return
        if not (may_run(rights, command) if isinstance(command, KeyCommand) else rights.may_read and rights.may_write):
            raise self._no_permission(spec)

    def _no_permission(self, spec: CommandSpec) -> CommandError:
        return CommandError(f"NOPERM User {self._session.user} has no permissions to run the '{spec.name}' command")

    def _add_reply(self, reply: Reply) -> None:
        """Write a reply behind those of the run."""
        if self._run:
            self._run.append(_Ready(reply))
        else:
            self._stream.writer.write(reply)

    async def _finish_run(self) -> None:
        """Run the collected commands, and write the replies in their order."""
        if not self._run:
            return
        items, self._run = self._run, []
        self._run_operations = self._run_bytes = self._run_reads = 0
        write = self._stream.writer.write
        first = items[0]
        if len(items) == 1 and isinstance(first, KeyCommand):
            write(await self.runner().run_one(first))
            return
        commands = [item for item in items if isinstance(item, KeyCommand)]
        replies = iter(await self.runner().run(commands))
        for item in items:
            write(item.reply if isinstance(item, _Ready) else next(replies))

    def runner(self) -> StoreRunner:
        """Runs commands on the chosen store. Raises CommandError: none is chosen."""
        store = self._handlers.chosen_store()
        if self._runner is None or self._runner_store is not store:
            self._runner, self._runner_store = StoreRunner(store, self._session), store
        return self._runner

    # Other commands.

    async def _serve_other(self, spec: CommandSpec, command: Command, words: list[bytes]) -> None:
        """Serve a command that is none on named keys. Raises CommandError."""
        session = self._session
        if session.transaction is not None and spec.name not in _OF_TRANSACTIONS:
            if isinstance(command, ComputedCommand):
                raise CommandError(f"ERR '{spec.name}' is computed from a value and not allowed between MULTI and EXEC; use WATCH")
            assert not isinstance(command, KeyCommand), "commands on named keys are added"
            self._handlers.queue(command, sum(map(len, words)))
            self._add_reply(QUEUED)
            return
        await self._finish_run()
        await own_task()  # The store may wait with a limit of time.
        try:
            if isinstance(command, ComputedCommand):
                self._check_rights(spec, command)
                reply = await self.runner().compute(command)
            else:
                is_read = isinstance(command, WatchKeys | Subscription) or "readonly" in spec.flags
                if is_read and not session.rights.may_read:
                    raise self._no_permission(spec)
                assert not isinstance(command, KeyCommand), "commands on named keys are added"
                was_admitted = session.is_admitted
                answered = await self._handlers.answer(command)
                if session.is_admitted and not was_admitted:
                    self._admit_client()
                elif was_admitted and not session.is_admitted:
                    self._dismiss()
                self._limit_requests()
                if isinstance(command, Plain) and command.name == "quit":
                    self._is_over = True
                if answered is None:
                    return  # It has written its replies.
                reply = answered.reply
        except (StoreError, UsageError) as error:
            reply = refusal_of(error, session.store)
        self._stream.writer.write(reply)
        if isinstance(command, Hello | Auth):
            self._stream.flush()
