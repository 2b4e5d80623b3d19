"""The ways of one ledger's adds to the bookies of its ensemble: a lane per position, and none where the bookie is absent.

Which bookies are absent is a fact of the tracker; here is what follows from it for sending. Source: BookKeeper `PendingAddOp`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triplicate.client.connection.bookie_channel import AddStream, InFlight
from triplicate.client.connection.flush_scheduler import AddChannel, FlushScheduler, Multicast
from triplicate.ledger import AdvWriteTracker, WriteTracker, write_sets

Tracker = WriteTracker | AdvWriteTracker


class EnsembleStreams:
    """Belongs to one writer.

    Args:
        write_quorum: copies of each entry.
        open_lane: makes the lane to a bookie.
        frames_of: the frames of entries that are not confirmed.
        turn: of the pool that the lanes' channels belong to.
    """

    __slots__ = ("_frames_of", "_lanes", "_open", "_open_lane", "_route", "_tracker", "_turn", "_write_quorum", "full", "striped")

    def __init__(
        self,
        tracker: Tracker,
        write_quorum: int,
        open_lane: Callable[[str], AddStream],
        frames_of: Callable[[Sequence[int]], list[bytes]],
        turn: FlushScheduler,
    ) -> None:
        self.full = False
        """Whether a bookie owes as many answers as it may, so that nothing more is let in for now."""
        self._tracker = tracker
        self._write_quorum = write_quorum
        self.striped = write_quorum < len(tracker.ensemble)
        """Whether entries go to different bookies, and not all to all."""
        self._open_lane = open_lane
        self._frames_of = frames_of
        self._turn = turn
        self._lanes: list[AddStream | None] = [open_lane(bookie_id) for bookie_id in tracker.ensemble]
        self._open: tuple[AddStream, ...] = ()
        self._route: Multicast | None = None
        self._find_route()

    def lane_of(self, bookie_id: str) -> AddStream | None:
        """The open lane to a bookie that takes entries now."""
        position = self._tracker.position_of(bookie_id)
        return None if position is None else self._lanes[position]

    def losses(self) -> list[int]:
        """How often the connection of each bookie was lost; -1 for one that is absent."""
        return [-1 if lane is None else lane.losses for lane in self._lanes]

    def send(self, frames: bytes, flight: InFlight) -> None:
        """Send entries that were just pushed to all bookies, at the end of this turn of the loop."""
        for lane in self._open:
            if lane.oldest is None:
                lane.oldest = flight
            else:
                lane.await_answers(flight)
        if self._route is not None:
            self._route.send(self, frames, flight)

    def send_stripes(self, entry_ids: Sequence[int], frames: list[bytes], now: float) -> None:
        """Send entries that were just pushed, each to its write set."""
        size = len(self._lanes)
        shares: list[list[bytes]] = [[] for _ in range(size)]
        lasts = [-1] * size
        sets = write_sets(size, self._write_quorum)
        for entry_id, frame in zip(entry_ids, frames, strict=True):
            for position in sets[entry_id % size]:
                shares[position].append(frame)
                lasts[position] = entry_id
        for lane, share, last in zip(self._lanes, shares, lasts, strict=True):
            if lane is not None and share:
                self._send_all(lane, share, last, now)

    def _send_all(self, lane: AddStream, frames: list[bytes], last: int, now: float) -> None:
        joined = b"".join(frames)
        if not lane.send(joined, (self._tracker.order_of(last), len(frames), len(joined), now)):
            self.channel_is_full(lane.channel)

    def suspend(self, bookie_id: str) -> None:
        """The bookie failed: forget what is on the way to it, and send it nothing more."""
        position = self._tracker.position_of(bookie_id)
        if position is not None:
            self._tracker.suspend(bookie_id)
            self._close(position)
            self.look_for_room()

    def open(self, positions: Sequence[int]) -> None:
        """Open streams to the bookies that the tracker names at these positions, and send them every unconfirmed entry."""
        for position in positions:
            self._close(position)
            self._open_at(position)

    def close(self) -> None:
        """Forget everything on the way. Idempotent."""
        for position in range(len(self._lanes)):
            self._close(position)

    def look_for_room(self) -> None:
        """Find out again whether a bookie owes all that it may; whoever does tells when that is over."""
        self.full = False
        for lane in self._lanes:
            if lane is not None and not lane.has_room:
                self.full = True
                lane.wait_for_room()

    def _open_at(self, position: int) -> None:
        entry_ids = self._tracker.pending_of(position)
        lane = self._lanes[position] = self._open_lane(self._tracker.ensemble[position])
        self._find_route()
        if entry_ids:
            self._send_all(lane, self._frames_of(entry_ids), entry_ids[-1], lane.now())

    def _close(self, position: int) -> None:
        lane, self._lanes[position] = self._lanes[position], None
        if lane is not None:
            lane.close()
            self._find_route()

    def _find_route(self) -> None:
        self._open = tuple([lane for lane in self._lanes if lane is not None])
        # Sorted, so that ledgers whose ensembles are the same bookies in another order go the same way.
        channels = sorted([lane.channel for lane in self._open], key=lambda channel: channel.bookie_id)
        self._route = self._turn.route(tuple(channels)) if channels else None

    def channel_is_full(self, channel: AddChannel) -> None:
        """A channel took adds, and shall be given no more for now (Sending)."""
        for lane in self._open:
            if lane.channel is channel:
                self.full = True
                lane.wait_for_room()
