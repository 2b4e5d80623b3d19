"""The state of one client: its login, its store, its level of reads, its transaction."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from triplicate.errors import LevelNotMet, NotLeading, StoreOutcomeUnknown, StoreUnavailable, TriplicateError
from triplicate.kv.core.operations import Add, Append, Get
from triplicate.kv.core.store_interface import ANY, LINEARIZABLE, WAIT_S, KeyValueStore, LevelKind, StoreReadLevel, bounded, session
from triplicate.kv.resp.core.command_errors import CommandError
from triplicate.kv.resp.core.connection_commands import ConnectionCommand, SetLevel
from triplicate.kv.resp.core.key_commands import KeyCommand
from triplicate.kv.resp.core.replies import ErrorReply
from triplicate.security import FULL_RIGHTS, NO_RIGHTS, Rights, User

_LOG = logging.getLogger(__name__)

DEFAULT_LEVEL = SetLevel(LevelKind.LINEARIZABLE)


@dataclass(slots=True)
class QueuedTransaction:
    """The commands between MULTI and EXEC."""

    queue: list[KeyCommand | ConnectionCommand] = field(default_factory=list)
    operations: int = 0
    size_bytes: int = 0
    is_refused: bool = False
    """Whether a command was refused, so that EXEC does nothing."""


@dataclass(slots=True)
class StoreSession:
    """One client's state. A reset returns it to the state of a new connection."""

    user: str = ""
    """The role; without authentication, the user's name that the client gave."""
    proven: User | None = None
    """The entry of the file of users whose password was shown; None without authentication."""
    is_admitted: bool = False
    """Whether the client may send commands: it has logged in, or need not."""
    rights: Rights = NO_RIGHTS
    store: KeyValueStore | None = None
    store_name: str = ""
    level: SetLevel = DEFAULT_LEVEL
    position: int = 0
    """Everything before it was shown to this client."""
    read_position: int | None = None
    """That of the last answer, whose age is `read_age_s`; None before the first one."""
    read_age_s: float | None = None
    """Seconds at the time of the answer; None where it is not known."""
    name: bytes = b""
    library: bytes = b""
    transaction: QueuedTransaction | None = None
    watched: dict[bytes, int] = field(default_factory=dict)
    """Maps each watched key to its version."""

    def see(self, position: int, age_s: float | None = 0.0) -> None:
        """An answer of this position and age is sent. Those of changes are not old."""
        if position > self.position:
            self.position = position
        self.read_position = position
        self.read_age_s = age_s

    def forget_reads(self) -> None:
        """Forget the answers: the client has left the store, or begins again."""
        self.position, self.read_position, self.read_age_s = 0, None, None

    @property
    def read_level(self) -> StoreReadLevel:
        wait_s = WAIT_S if self.level.wait_s is None else self.level.wait_s
        if self.level.kind is LevelKind.SESSION:
            return session(self.position, wait_s)
        if self.level.kind is LevelKind.BOUNDED:
            return bounded(self.level.age_s, wait_s)
        return ANY if self.level.kind is LevelKind.ANY else LINEARIZABLE

    def trust(self) -> None:
        """Admit the client without a login."""
        self.is_admitted, self.rights = True, FULL_RIGHTS


def may_run(rights: Rights, command: KeyCommand) -> bool:
    """Whether a client with these rights may run a command on named keys."""
    reads = bool(command.conditions) or any(
        isinstance(each, Get | Add | Append) or getattr(each, "returns_old", False) for each in command.operations
    )
    return (rights.may_read or not reads) and (rights.may_write or command.is_read)


def read_only(store: KeyValueStore) -> ErrorReply:
    """The answer of a follower to a change, and to a linearizable read. It names the address at which the leader serves this protocol."""
    node, address = store.leader_node, store.leader_resp_address
    if node is None:
        where = f"the leader of store {store.name} is not known yet"
    elif store.is_taking_over:
        where = f"it was elected to lead store {store.name}, and takes it over: try again"
    elif address is None:
        where = f"the leader of store {store.name} is node {node}, which does not serve RESP (resp.serve)"
    else:
        where = f"the leader of store {store.name} is node {node} at {address}"
    return ErrorReply(f"READONLY this node follows and serves reads of weaker levels only (TRIPLICATE.LEVEL); {where}")


def refusal_of(error: Exception, store: KeyValueStore | None) -> ErrorReply:
    """The answer for an error of a command. A defect of this program, which is none of Triplicate's errors, is logged with its trace."""
    if isinstance(error, CommandError):
        return ErrorReply(str(error))
    if not isinstance(error, TriplicateError):
        _LOG.error("a command failed: %r", error, exc_info=error)
        return ErrorReply(f"ERR internal error: {type(error).__name__}; a change may have happened or not")
    if isinstance(error, NotLeading) and store is not None:
        return read_only(store)
    if isinstance(error, StoreOutcomeUnknown):
        return ErrorReply(f"UNKNOWN the change may have happened or not: {error}")
    if isinstance(error, LevelNotMet):
        return ErrorReply(f"STALE {error}")
    if isinstance(error, StoreUnavailable):
        return ErrorReply(f"TRYAGAIN {error}")
    return ErrorReply(f"ERR {error}")
