"""Notifications of one client: its subscriptions, and the task that sends a message for each change of a key."""

from __future__ import annotations

import logging
from collections.abc import Callable

from triplicate.errors import StoreError
from triplicate.kv.core.store_interface import KeyValueStore, KeyWatch
from triplicate.kv.resp.client_stream import ClientStream
from triplicate.kv.resp.core.channels import Channels
from triplicate.kv.resp.core.connection_commands import Subscription
from triplicate.kv.resp.core.replies import ErrorReply, Push
from triplicate.runtime import TaskScope

_LOG = logging.getLogger(__name__)


class Notifications:
    """The subscriptions of one connection, on the store that it has chosen when the first of them begins.

    Args:
        scope: of the connection; its task sends the messages.
        may_read: whether the client may still receive messages.
        on_end: called after an error, of which the client was informed: the connection must end, because messages are lost.
    """

    def __init__(self, stream: ClientStream, scope: TaskScope, may_read: Callable[[], bool], on_end: Callable[[], None]) -> None:
        self._stream = stream
        self._scope = scope
        self._may_read = may_read
        self._on_end = on_end
        self._channels = Channels()
        self._watch: KeyWatch | None = None
        self._prefix = b""

    @property
    def is_active(self) -> bool:
        return len(self._channels) > 0

    @property
    def count(self) -> int:
        """Channels and patterns."""
        return len(self._channels)

    async def change(self, store: KeyValueStore, wanted: Subscription) -> None:
        """Begin or end subscriptions, and confirm each of them to the client.

        Raises:
            CommandError: a channel is refused; those before it stay. StoreError: the store cannot be watched for this channel; those before
            it stay, and go on.
        """
        kind = f"{'p' if wanted.of_patterns else ''}{'' if wanted.begins else 'un'}subscribe".encode()
        names = wanted.channels or self._channels.names(of_patterns=wanted.of_patterns)
        for name in names:
            if wanted.begins:
                await self._begin(store, name, of_patterns=wanted.of_patterns)
            else:
                self._channels.remove(name, of_patterns=wanted.of_patterns)
            self._stream.writer.write(Push((kind, name, len(self._channels))))
        if not names:
            self._stream.writer.write(Push((kind, None, len(self._channels))))
        if not self.is_active:
            await self.end()

    async def end(self) -> None:
        """End all subscriptions. Idempotent."""
        self._channels = Channels()
        watch, self._watch = self._watch, None
        if watch is not None:
            await watch.aclose()

    async def _begin(self, store: KeyValueStore, name: bytes, *, of_patterns: bool) -> None:
        """Begin one subscription, or leave everything as it was. Raises as `change`."""
        is_new = name not in self._channels.names(of_patterns=of_patterns)
        self._channels.add(name, of_patterns=of_patterns)
        try:
            await self._watch_more(store)
        except BaseException:
            if is_new:
                self._channels.remove(name, of_patterns=of_patterns)
            raise

    async def _watch_more(self, store: KeyValueStore) -> None:
        """KeyWatch all keys of the channels, without a gap for those that are watched already. If it fails, the watch before goes on."""
        prefix = self._channels.prefix
        before = self._watch
        if before is not None and prefix.startswith(self._prefix):
            return
        watch = await store.watch(prefix, None if before is None else before.position)
        self._watch, self._prefix = watch, prefix
        if before is not None:
            # Its position moves no more. The changes that it has given since the new watch was made must not be sent again.
            await before.aclose()
        self._scope.spawn(self._send(watch, -1 if before is None else before.position), name="notifications")

    async def _send(self, watch: KeyWatch, sent: int) -> None:
        """Send messages of the changes that a watch gives, without those up to the position `sent`."""
        try:
            async for changes in watch:
                if not self._may_read():
                    self._on_end()
                    return
                for message in self._channels.messages([change for change in changes if change.position > sent]):
                    self._stream.writer.write(message)
                    if self._stream.must_wait:
                        await self._stream.drain()
                self._stream.flush()
        except StoreError as error:
            if watch is self._watch:
                _LOG.info("notifications of a client end: %s", error)
                self._stream.writer.write(ErrorReply(f"ERR notifications were lost, so the connection ends: {error}"))
                self._on_end()
