"""The position of a stream that continues elsewhere, kept as that of a named consumer for those who watch it."""

from __future__ import annotations

from triplicate.errors import ConsumerFenced, ConsumerOwned
from triplicate.log.core.consumer_state import ConsumerState
from triplicate.log.core.head import Owner, check_text
from triplicate.log.store.consumer_nodes import ConsumerNodes, StoredConsumer
from triplicate.log.store.head_store import HeadStore

STREAM_TOKEN = "stream-"
"""How the token of a stream begins. A position with another token belongs to a consumer that goes on there, so no stream overwrites it."""


def stream_owner(store: HeadStore, name: str) -> Owner:
    """A new owner of positions, of one stream.

    Args:
        name: for messages.
    """
    return Owner(name, STREAM_TOKEN + store.token())


class WatchedPosition:
    """The position of a stream in one log. The stream does not begin there: it has a place of its own for that.

    Args:
        log, log_id: the log, and its id.
        consumer: the consumer's name.
        owner: see `stream_owner`.
    """

    def __init__(self, store: HeadStore, log: str, log_id: str, consumer: str, owner: Owner) -> None:
        self._clock = store.host.clock
        self._nodes = ConsumerNodes(store, log, check_text("the consumer's name", consumer))
        self._log_id = log_id
        self._owner = owner
        self._stored: StoredConsumer | None = None

    async def save(self, position: int) -> None:
        """Save a position, which may be less than the last one.

        Raises:
            ConsumerOwned: another process uses the consumer. ConsumerFenced: one that is no stream saved it last, or it was taken over,
            reset or deleted; further calls raise it again. NoSuchLog: the log is gone, or was created again.
        """
        stored = self._stored or await self._free()
        state = ConsumerState(self._log_id, position, self._owner, self._clock.wall_us() // 1000)
        self._stored = await self._nodes.write(state, stored)
        if await self._nodes.live_owner() is None:
            await self._nodes.claim(self._owner)

    async def _free(self) -> StoredConsumer | None:
        """The consumer that this stream may use; None if there is none of the name yet."""
        living = await self._nodes.live_owner()
        if living not in (None, self._owner):
            raise ConsumerOwned(f"{self._nodes} is used by {living.name!r}: give each stream and consumer of a log a name of its own")
        found = await self._nodes.read(synced=True)
        if found is not None and not found.state.owner.token.startswith(STREAM_TOKEN):
            raise ConsumerFenced(
                f"{self._nodes} was saved at offset {found.state.position} by {found.state.owner.name!r}, which is no stream and may go on "
                "there: choose another name for the stream, or delete the consumer"
            )
        return found

    async def close(self) -> None:
        """Give the consumer up without saving. Idempotent."""
        await self._nodes.release(self._owner)
