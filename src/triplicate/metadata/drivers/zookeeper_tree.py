"""The metadata tree in ZooKeeper, for clusters that span machines or are also used with Apache's tools.

A broken connection leaves the session alive: outstanding requests raise ConnectionLost and later ones wait for the connection. When it is
back, every watch is armed again and wakes. An expired session ends the tree (`RenewingTree` opens another).
The connected server answers reads. It may be behind the others until a `sync`. Versions decide changes.

Source: ZooKeeper Programmer's Guide (sessions, watches, ordering).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import Any

from kazoo.client import KazooClient, TransactionRequest
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.protocol.states import ZnodeStat

from triplicate.errors import (
    AccessRefused,
    ArgumentError,
    ConfigError,
    ConnectionLost,
    MetadataError,
    NodeExists,
    NoNode,
    SessionExpired,
    TriplicateError,
)
from triplicate.metadata.core.paths import ancestors_of, check_data, check_path
from triplicate.metadata.core.tree import ANY_VERSION, SESSION_TIMEOUT_S, CheckVersion, CreateNode, DeleteNode, SetData, Stat, TreeOperation
from triplicate.metadata.drivers.metadata_access import AclState, MetadataAccess
from triplicate.metadata.drivers.watches import LocalWatch, WatchTable
from triplicate.metadata.drivers.zookeeper_acl import is_open
from triplicate.metadata.drivers.zookeeper_role import leads
from triplicate.metadata.drivers.zookeeper_session import CONNECTED, LOST, STOP_ERRORS, ZooKeeperSession, failed_operation, translated
from triplicate.runtime import Host, deadline_after, shielded, timeout_at

ANSWER_LIMIT_S = 10.0
"""Maximum time of one operation, including the wait for the connection."""

OUTSTANDING_MAX = 1000
"""Maximum number of outstanding requests. Further requests wait."""

PACKET_BYTES_MAX = 0xFFFFF
"""A server closes the connection after a larger packet (`jute.maxbuffer`)."""

PACKET_OVERHEAD_BYTES = 128
"""Upper bound of the overhead of a packet, or of one operation with data in a transaction, beside path and data."""

CHECK_OVERHEAD_BYTES = 32
"""Upper bound of the overhead of a check or deletion in a transaction, beside its path: 17 bytes in the request, 16 in the server's log."""

PARENT_ATTEMPTS = 10

Request = Callable[[KazooClient], Any]


class ZooKeeperTree:
    """One session with ZooKeeper. Create it with `open`, after any fork."""

    def __init__(
        self, servers: str, host: Host, session_timeout_s: float, access: MetadataAccess | None = None, password_number: int = 0
    ) -> None:
        access = access if access is not None else MetadataAccess()
        self._servers = servers
        self._user = access.user_text
        self._closes_nodes = access.closes_nodes
        self._user_is_known = bool(access.settings.user)
        self._host = host
        self._session_id = 0
        self._process_id = os.getpid()
        self._watches = WatchTable()
        self._over: SessionExpired | None = None
        self._has_tls = access.tls is not None
        self._connections = 0
        """How often this session was connected."""
        self._role_of_own_server = 0, False
        """Whether the server on this machine leads, and since which connection that is known."""
        self._closed = False
        self._ready = asyncio.Event()
        """Set while connected, and permanently after the session ends, so that waiting operations fail."""
        self._turn = asyncio.Lock()
        self._slots = asyncio.Semaphore(OUTSTANDING_MAX)
        try:
            self._session = ZooKeeperSession(servers, session_timeout_s, self._state_changed, self._fired, access, password_number)
        except ValueError as error:
            raise ConfigError(f"{servers!r} does not name ZooKeeper servers as host:port,host:port ({error})") from error

    @classmethod
    async def open(
        cls,
        servers: str,
        host: Host,
        *,
        session_timeout_s: float = SESSION_TIMEOUT_S,
        limit_s: float = ANSWER_LIMIT_S,
        access: MetadataAccess | None = None,
    ) -> ZooKeeperTree:
        """Connect, authenticate and begin a session.

        Args:
            servers: ``host:port,host:port``; the session uses any one of them.
            limit_s: maximum time of the attempt in seconds, for each password that the file of the user holds.
            access: None for a session without TLS and without a user.

        Raises:
            ConnectionLost: no server answered. ConfigError: not a list of servers, or the user's password cannot be read.
            AccessRefused: a server refused the user or the certificate of this process, or this process the servers' certificates.
        """
        access = access if access is not None else MetadataAccess()
        count = len(access.passwords())
        for number in range(count - 1):
            tree = cls(servers, host, session_timeout_s, access, number)
            try:
                return await tree._opened(limit_s)
            except AccessRefused as error:
                if not tree._session.refused_password:
                    raise
                host.trace("metadata.password_refused", servers=servers, error=str(error))
        return await cls(servers, host, session_timeout_s, access, max(count - 1, 0))._opened(limit_s)

    async def _opened(self, limit_s: float) -> ZooKeeperTree:
        self._session.start()
        try:
            async with timeout_at(deadline_after(self._host.clock, limit_s)):
                await self._ready.wait()
                while self._usable() and self._user_is_known:
                    # The session is reported before it is authenticated; an answer proves that it is.
                    try:
                        await self._run("/", lambda client: client.exists_async("/"))
                        break
                    except ConnectionLost:
                        continue  # The next attempt waits for the next connection.
            self._require_usable()
        except (TimeoutError, TriplicateError) as error:
            await self.close()
            if self._session.refusal:
                raise AccessRefused(f"ZooKeeper at {self._servers}: {self._session.refusal}") from None
            if not isinstance(error, TimeoutError):
                raise
            problem = self._session.problem or "check that it runs and that the address is right"
            raise ConnectionLost(f"ZooKeeper at {self._servers} does not answer within {limit_s:g} s: {problem}") from None
        except BaseException:
            await self.close()
            raise
        return self

    @property
    def session_id(self) -> int:
        return self._session_id

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False, parents: bool = False
    ) -> str:
        _check(path + "0" if sequential else path, data)

        def request(client: KazooClient) -> Any:
            return client.create_async(path, data, ephemeral=ephemeral, sequence=sequential)

        for _ in range(PARENT_ATTEMPTS if parents else 0):
            try:
                return str(await self._run(path, request))
            except NoNode:
                await self._create_parents(path)
        return str(await self._run(path, request))

    async def _create_parents(self, path: str) -> None:
        for ancestor in ancestors_of(path):
            try:
                await self._run(ancestor, lambda client, ancestor=ancestor: client.create_async(ancestor, b""))  # type: ignore[misc]
            except NodeExists:
                continue
            except NoNode:
                return  # Another client pruned an empty parent; the caller starts again.

    async def get(self, path: str) -> tuple[bytes, Stat]:
        _check(path)
        data, stat = await self._run(path, lambda client: client.get_async(path))
        return data or b"", _stat(stat)

    async def exists(self, path: str) -> Stat | None:
        _check(path)
        stat = await self._run(path, lambda client: client.exists_async(path))
        return None if stat is None else _stat(stat)

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat:
        _check(path, data)
        return _stat(await self._run(path, lambda client: client.set_async(path, data, version)))

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        _check_deletion(path)
        await self._run(path, lambda client: client.delete_async(path, version))

    async def children(self, path: str) -> tuple[list[str], Stat]:
        _check(path)
        names, stat = await self._run(path, lambda client: client.get_children_async(path, include_data=True))
        return sorted(names), _stat(stat)

    async def multi(self, operations: Sequence[TreeOperation]) -> None:
        size = _check_operations(operations)
        if not operations:
            self._require_usable()
            return
        if size > PACKET_BYTES_MAX:
            first, others = operations[0].path, len(operations) - 1
            raise ArgumentError(f"{first} and {others} more: {size} bytes are more than ZooKeeper accepts at once ({PACKET_BYTES_MAX})")

        def request(client: KazooClient) -> Any:
            transaction = client.transaction()
            for operation in operations:
                _add(transaction, operation)
            return transaction.commit_async()

        failed = failed_operation(await self._run(operations[0].path, request))
        if failed is not None:
            index, error = failed
            raise self._translate(error, operations[index].path) from error

    @property
    def closes_nodes(self) -> bool:
        """Whether the nodes that this session creates are its user's alone."""
        return self._closes_nodes

    async def acl_state(self, path: str) -> AclState:
        """The users of a node, by its ACL. Raises NoNode; AccessRefused: the user may not know."""
        _check(path)
        acl, _ = await self._run(path, lambda client: client.get_acls_async(path))
        if is_open(acl):
            return AclState.OPEN
        return AclState.OURS if acl == self._session.acl else AclState.OTHER

    async def close_node(self, path: str) -> None:
        """Make a node the user's alone. Raises NoNode; AccessRefused: the user may not change its ACL."""
        _check(path)
        if not self._closes_nodes:
            raise ConfigError("metadata.user is not set, or metadata.acl is open: there is nobody for whom nodes could be closed")
        await self._run(path, lambda client: client.set_acls_async(path, self._session.acl))

    async def is_beside_leader(self) -> bool:
        """Whether the server on this machine leads ZooKeeper's servers. False if it is not known, as with TLS.

        Servers close all connections before they elect a leader, so the answer holds for a connection.
        """
        connection, own = self._connections, self._session.own_server
        if self._role_of_own_server[0] != connection and own is not None and not self._has_tls:
            # The connection may break meanwhile, and the server lead no more.
            self._role_of_own_server = connection, await leads(self._host, own[1], own[2])
        return self._role_of_own_server == (self._connections, True)

    async def sync(self, path: str) -> None:
        _check(path)
        await self._run(path, lambda client: client.sync_async(path))

    def watch(self, path: str) -> LocalWatch:
        watch = self._watches.add(_check(path))
        if self._usable() and self._ready.is_set():
            self._arm(path, self._session.last_zxid)
        return watch

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            await shielded(self._close())

    async def _close(self) -> None:
        self._watches.fail(SessionExpired(f"session {self._session_id:#x} was closed"))
        self._ready.set()
        worker = self._host.new_worker("zookeeper-stop")
        try:
            await worker.run(self._session.stop)
        except STOP_ERRORS as error:
            self._host.trace("metadata.session_left_behind", session_id=self._session_id, error=str(error))
        finally:
            await worker.close()

    # Operations.

    async def _run(self, path: str, request: Request) -> Any:
        """Send a request in its turn and wait for the answer, each for as long as `ANSWER_LIMIT_S` has room for both."""
        self._require_usable()
        try:
            async with timeout_at(deadline_after(self._host.clock, ANSWER_LIMIT_S)), self._slots:
                async with self._turn:
                    await self._ready.wait()
                    self._require_usable()
                    answer = self._session.submit(request)
                return await answer
        except KazooException as error:
            raise self._translate(error, path) from error
        except TimeoutError:
            self._watches.wake_all()
            problem = f": {self._session.problem}" if self._session.problem and not self._ready.is_set() else ""
            raise ConnectionLost(f"{path}: ZooKeeper at {self._servers} does not answer within {ANSWER_LIMIT_S:g} s{problem}") from None

    def _translate(self, error: Exception, path: str) -> Exception:
        translated_error = translated(error, path, self._user) or error
        if isinstance(translated_error, SessionExpired):
            self._expire()
        elif isinstance(translated_error, ConnectionLost):
            self._watches.wake_all()
        return translated_error

    def _usable(self) -> bool:
        return not self._closed and self._over is None

    def _require_usable(self) -> None:
        if os.getpid() != self._process_id:
            raise MetadataError("this metadata session was opened before a fork; open one in the child process")
        if self._closed:
            raise SessionExpired(f"session {self._session_id:#x} was closed")
        if self._over is not None:
            raise SessionExpired(*self._over.args)

    # The connection.

    def _state_changed(self, state: str, session_id: int) -> None:
        if not self._usable():
            return
        if state == LOST:
            self._expire()
            return
        if state == CONNECTED:
            self._session_id = session_id
            self._connections += 1
            self._ready.set()
            # The server dropped the watches with the connection. Arming wakes them, too.
            for path in self._watches.paths():
                self._arm(path)
        else:
            self._ready.clear()
            self._watches.wake_all()
        self._host.trace("metadata.connection", state=state, servers=self._servers, session_id=self._session_id)

    def _expire(self) -> None:
        if self._usable():
            why = f": {self._session.refusal}" if self._session.refusal else ""
            self._over = SessionExpired(f"session {self._session_id:#x} with ZooKeeper at {self._servers} is over{why}")
            self._ready.set()
            self._watches.fail(self._over)
            self._host.trace("metadata.session_expired", session_id=self._session_id)

    # Watches.

    def _arm(self, path: str, since: int = -1) -> None:
        """Set the server's watches on a node and on its children, then wake the local watches on the path.

        ZooKeeper's watches fire once. Changes between an event and this request are not reported, so the wake-up follows the request. The
        node is requested first: if it is created before the request for its children, an event reports that.

        Args:
            since: wake only if the node has changed after this zxid; for new watches.
        """
        node = self._session.submit(lambda client: client.exists_async(path, self._session.node_fired))
        children = self._session.submit(lambda client: client.get_children_async(path, self._session.children_fired, include_data=True))

        def answered(_: asyncio.Future[Any]) -> None:
            # Called for each of the two requests; acts once, when both are done.
            if node.done() and children.done() and not reported:
                reported.append(True)
                self._armed(path, node, children, since)

        reported: list[bool] = []
        node.add_done_callback(answered)
        children.add_done_callback(answered)

    def _armed(self, path: str, node: asyncio.Future[Any], children: asyncio.Future[Any], since: int) -> None:
        errors = [node.exception(), children.exception()]
        if not self._usable() or path not in self._watches:
            return
        stat = None if errors[0] is not None else node.result()
        if isinstance(errors[1], NoNodeError) and errors[0] is None:
            if stat is not None:
                self._arm(path, since)  # It was deleted in between.
            elif since < 0:
                self._watches.wake([path])
            return
        failures = [self._translate(error, path) for error in errors if isinstance(error, Exception)]
        if not failures:
            # If the node was created after its request, an event has been sent.
            if since < 0 or (stat is not None and max(stat.mzxid, children.result()[1].pzxid) > since):
                self._watches.wake([path])
        elif not isinstance(failures[0], SessionExpired | ConnectionLost):
            # After a broken connection all watches are armed again. The reader meets any other error at its next read.
            self._host.trace("metadata.watch_not_armed", path=path, error=str(failures[0]))
            self._watches.wake([path])

    def _fired(self, path: str) -> None:
        if self._usable() and self._ready.is_set() and path in self._watches:
            self._arm(path)


def _stat(stat: ZnodeStat) -> Stat:
    return Stat(stat.version, stat.cversion, stat.ctime, stat.mtime, stat.ephemeralOwner)


def _check(path: str, data: bytes = b"") -> str:
    """Refuse requests that would break kazoo's thread or make the server close the connection."""
    try:
        size = len(check_path(path).encode("utf-8"))
    except UnicodeEncodeError as error:
        raise ArgumentError(f"{path!r} is not a path of the metadata tree: it is no Unicode text") from error
    if size + len(check_data(path, data)) + PACKET_OVERHEAD_BYTES > PACKET_BYTES_MAX:
        raise ArgumentError(f"{path}: path and {len(data)} bytes are more than ZooKeeper accepts at once ({PACKET_BYTES_MAX})")
    return path


def _check_deletion(path: str) -> None:
    if _check(path) == "/":
        raise ArgumentError("/: the root cannot be deleted")


def _check_operations(operations: Sequence[TreeOperation]) -> int:
    """Approximate size of the operations in bytes."""
    size = PACKET_OVERHEAD_BYTES
    for operation in operations:
        data = operation.data if isinstance(operation, CreateNode | SetData) else b""
        if isinstance(operation, DeleteNode):
            _check_deletion(operation.path)
        _check(operation.path, data)
        overhead = CHECK_OVERHEAD_BYTES if isinstance(operation, CheckVersion | DeleteNode) else PACKET_OVERHEAD_BYTES
        size += len(operation.path.encode("utf-8")) + len(data) + overhead
    return size


def _add(transaction: TransactionRequest, operation: TreeOperation) -> None:
    match operation:
        case CreateNode():
            transaction.create(operation.path, operation.data, ephemeral=operation.ephemeral)
        case SetData():
            transaction.set_data(operation.path, operation.data, operation.version)
        case DeleteNode():
            transaction.delete(operation.path, operation.version)
        case CheckVersion():
            transaction.check(operation.path, operation.version)
