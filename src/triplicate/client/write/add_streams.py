"""The streams of one ledger's adds to the bookies of its ensemble: one per position, and none where the bookie is suspended.

The tracker knows which bookies are suspended; the streams follow. Source: BookKeeper `PendingAddOp`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triplicate.client.connection.bookie_channel import AddStream, InFlight
from triplicate.client.connection.flush_scheduler import AddChannel, FlushScheduler, Multicast
from triplicate.ledger import AdvWriteTracker, WriteTracker, write_sets
from triplicate.runtime import AdmissionWindow

Tracker = WriteTracker | AdvWriteTracker


class EnsembleStreams:
    """Belongs to one writer.

    Attributes:
        striped: whether entries go to different bookies, and not all to all.

    Args:
        write_quorum: copies of each entry.
        open_stream: opens the stream to a bookie.
        frames_of: the frames of unconfirmed entries.
        scheduler: of the pool that the streams' channels belong to.
        window: the writer's, paused while a bookie owes as many answers as it may.
    """

    __slots__ = (
        "_frames_of",
        "_multicast",
        "_open",
        "_open_stream",
        "_scheduler",
        "_streams",
        "_tracker",
        "_window",
        "_write_quorum",
        "striped",
    )

    def __init__(
        self,
        tracker: Tracker,
        write_quorum: int,
        open_stream: Callable[[str], AddStream],
        frames_of: Callable[[Sequence[int]], list[bytes]],
        scheduler: FlushScheduler,
        window: AdmissionWindow,
    ) -> None:
        self.striped = write_quorum < len(tracker.ensemble)
        self._tracker = tracker
        self._write_quorum = write_quorum
        self._open_stream = open_stream
        self._frames_of = frames_of
        self._scheduler = scheduler
        self._window = window
        self._streams: list[AddStream | None] = [open_stream(bookie_id) for bookie_id in tracker.ensemble]
        self._open: tuple[AddStream, ...] = ()
        self._multicast: Multicast | None = None
        self._update_multicast()

    def stream_of(self, bookie_id: str) -> AddStream | None:
        """The open stream to a bookie that receives entries now."""
        position = self._tracker.position_of(bookie_id)
        return None if position is None else self._streams[position]

    def full_bookies(self) -> list[str]:
        """The bookies that owe as many answers as they may."""
        return [stream.bookie_id for stream in self._open if not stream.has_room]

    def losses(self) -> list[int]:
        """How many connections to each bookie were lost; -1 for a suspended bookie."""
        return [-1 if stream is None else stream.losses for stream in self._streams]

    def send(self, frames: bytes, in_flight: InFlight) -> None:
        """Send entries that were just pushed to all bookies, at the end of this tick of the loop."""
        for stream in self._open:
            if stream.oldest is None:
                stream.oldest = in_flight
            else:
                stream.track(in_flight)
        if self._multicast is not None:
            self._multicast.send(self, frames, in_flight.entries, in_flight.size_bytes)

    def send_stripes(self, entry_ids: Sequence[int], frames: list[bytes], now: float) -> None:
        """Send entries that were just pushed, each to its write set."""
        size = len(self._streams)
        shares: list[list[bytes]] = [[] for _ in range(size)]
        lasts = [-1] * size
        sets = write_sets(size, self._write_quorum)
        for entry_id, frame in zip(entry_ids, frames, strict=True):
            for position in sets[entry_id % size]:
                shares[position].append(frame)
                lasts[position] = entry_id
        for stream, share, last in zip(self._streams, shares, lasts, strict=True):
            if stream is not None and share:
                self._send_to(stream, share, last, now)

    def _send_to(self, stream: AddStream, frames: list[bytes], last: int, now: float) -> None:
        joined = b"".join(frames)
        if not stream.send(joined, InFlight(self._tracker.order_of(last), len(frames), len(joined), now)):
            self.pause_adds(stream.channel)

    def suspend(self, bookie_id: str) -> None:
        """The bookie failed: send it nothing more, and forget what is in flight to it."""
        position = self._tracker.position_of(bookie_id)
        if position is not None:
            self._tracker.suspend(bookie_id)
            self._close(position)
            self.check_room()

    def open(self, positions: Sequence[int]) -> None:
        """Open streams to the bookies that the tracker names at these positions, and send them every unconfirmed entry."""
        for position in positions:
            self._close(position)
            self._open_at(position)

    def close(self) -> None:
        """Forget everything in flight. Idempotent."""
        for position in range(len(self._streams)):
            self._close(position)

    def check_room(self) -> None:
        """Find out whether any channel is full, and have each full one report when it has room again. Waiters are not admitted yet."""
        self._window.is_paused = False
        for stream in self._streams:
            if stream is not None and not stream.has_room:
                self._window.is_paused = True
                stream.wait_for_room()

    def _open_at(self, position: int) -> None:
        entry_ids = self._tracker.pending_of(position)
        stream = self._streams[position] = self._open_stream(self._tracker.ensemble[position])
        self._update_multicast()
        if entry_ids:
            self._send_to(stream, self._frames_of(entry_ids), entry_ids[-1], stream.now())

    def _close(self, position: int) -> None:
        stream, self._streams[position] = self._streams[position], None
        if stream is not None:
            stream.close()
            self._update_multicast()

    def _update_multicast(self) -> None:
        self._open = tuple([stream for stream in self._streams if stream is not None])
        # Sorted, so that ledgers whose ensembles are the same bookies in another order share a multicast.
        channels = sorted([stream.channel for stream in self._open], key=lambda channel: channel.bookie_id)
        self._multicast = self._scheduler.multicast(tuple(channels)) if channels else None

    def pause_adds(self, channel: AddChannel) -> None:
        """A channel accepted adds, and is full (FullChannelListener)."""
        for stream in self._open:
            if stream.channel is channel:
                self._window.is_paused = True
                stream.wait_for_room()
