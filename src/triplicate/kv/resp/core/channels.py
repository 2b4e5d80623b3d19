"""Channels of notifications: the subscriptions of a connection, and the messages that changes make for them. Pure.

Source: Redis documentation, "Redis keyspace notifications".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from triplicate.kv.core.store_interface import ChangeKind, KeyChange
from triplicate.kv.resp.core.command_errors import CommandError
from triplicate.kv.resp.core.glob import Glob
from triplicate.kv.resp.core.replies import Push

KEYSPACE = b"__keyspace@0__:"
KEYEVENT = b"__keyevent@0__:"
SUBSCRIPTIONS_MAX = 1000
"""Of one connection."""
CHANNEL_BYTES_MAX = 8192

_EVENTS = {ChangeKind.PUT: b"set", ChangeKind.DEADLINE: b"expire", ChangeKind.DELETE: b"del", ChangeKind.EXPIRE: b"expired"}


class Channels:
    """The subscriptions of one connection."""

    def __init__(self) -> None:
        self._channels: dict[bytes, None] = {}
        self._patterns: dict[bytes, Glob] = {}

    def __len__(self) -> int:
        return len(self._channels) + len(self._patterns)

    def names(self, *, of_patterns: bool) -> list[bytes]:
        """The channels, or the patterns, in the order in which they began."""
        return list(self._patterns if of_patterns else self._channels)

    def add(self, name: bytes, *, of_patterns: bool) -> None:
        """Begin a subscription. Idempotent.

        Raises:
            CommandError: nothing would ever be sent to this channel, or there are too many.
        """
        if len(name) > CHANNEL_BYTES_MAX or len(self) >= SUBSCRIPTIONS_MAX:
            raise CommandError(f"ERR a connection has at most {SUBSCRIPTIONS_MAX} channels of {CHANNEL_BYTES_MAX} bytes")
        if of_patterns:
            pattern = Glob(name)
            if not any(_may_begin_with(pattern.prefix, head) for head in (KEYSPACE, KEYEVENT)):
                raise _no_channel()
            self._patterns[name] = pattern
        else:
            if not name.startswith((KEYSPACE, KEYEVENT)):
                raise _no_channel()
            self._channels[name] = None

    def remove(self, name: bytes, *, of_patterns: bool) -> None:
        """End a subscription. Idempotent."""
        if of_patterns:
            self._patterns.pop(name, None)
        else:
            self._channels.pop(name, None)

    @property
    def prefix(self) -> bytes:
        """The common beginning of all keys of which a change makes a message."""
        found = [name.removeprefix(KEYSPACE) if name.startswith(KEYSPACE) else b"" for name in self._channels]
        found += [each.prefix[len(KEYSPACE) :] if each.prefix.startswith(KEYSPACE) else b"" for each in self._patterns.values()]
        return common_prefix(found)

    def messages(self, changes: Sequence[KeyChange]) -> Iterator[Push]:
        """The messages of changes, in their order."""
        for change in changes:
            event = event_of(change)
            for channel, text in ((KEYSPACE + change.key, event), (KEYEVENT + event, change.key)):
                if channel in self._channels:
                    yield Push((b"message", channel, text))
                for name, pattern in self._patterns.items():
                    if pattern.matches(channel):
                        yield Push((b"pmessage", name, channel, text))


def event_of(change: KeyChange) -> bytes:
    """The name of a change, as Redis has it."""
    if change.kind is ChangeKind.DEADLINE and not change.deadline_ms:
        return b"persist"
    return _EVENTS[change.kind]


def _may_begin_with(prefix: bytes, head: bytes) -> bool:
    return head.startswith(prefix) or prefix.startswith(head)


def _no_channel() -> CommandError:
    return CommandError("ERR this server has the channels __keyspace@0__:KEY and __keyevent@0__:EVENT only")


def common_prefix(words: Sequence[bytes]) -> bytes:
    """The longest beginning that all words have; empty without words."""
    if not words:
        return b""
    first, last = min(words), max(words)
    length = next((at for at in range(min(len(first), len(last))) if first[at] != last[at]), min(len(first), len(last)))
    return first[:length]
