"""The outgoing half of a writer: entries are encoded when they are appended, and sent together once per tick of the event loop.

Per entry: one header packed, one digest, one join. Everything else is done once per tick (see `connection.flush_scheduler`).
Source: BookKeeper `PendingAddOp`.
"""

from __future__ import annotations

from triplicate.client.connection.add_framing import AddFraming, V2AddFraming, V3AddFraming
from triplicate.client.connection.bookie_channel import InFlight
from triplicate.client.context import ClientContext
from triplicate.client.write.add_latency import AddLatency
from triplicate.client.write.add_streams import EnsembleStreams, Tracker
from triplicate.client.write.force import LedgerForces
from triplicate.ledger import EntryCodec


class AddSender:
    """Belongs to one writer.

    Attributes:
        piggybacked_lac: the last-add-confirmed that the next entries carry.
    """

    # Slots: every append reads more attributes than CPython stores inline in an instance.
    __slots__ = (
        "_encode",
        "_entry_overhead",
        "_forces",
        "_framing",
        "_is_scheduled",
        "_last_entry_id",
        "_latency",
        "_out",
        "_prefix",
        "_prefix_size",
        "_pushed_bytes",
        "_scheduler",
        "_sizes",
        "_streams",
        "_tracker",
        "_unsent",
        "piggybacked_lac",
    )

    def __init__(
        self,
        context: ClientContext,
        codec: EntryCodec,
        tracker: Tracker,
        streams: EnsembleStreams,
        latency: AddLatency,
        forces: LedgerForces,
    ) -> None:
        self.piggybacked_lac = -1
        self._tracker = tracker
        self._streams = streams
        self._latency = latency
        self._forces = forces
        self._scheduler = context.pool.scheduler
        self._framing: AddFraming = V2AddFraming(codec.master_key)
        if forces.deferred_sync or context.settings.wire == "v3":
            self._framing = V3AddFraming(codec.ledger_id, codec.master_key, context.pool.transactions, deferred_sync=forces.deferred_sync)
        self._encode = codec.encode
        if self._framing.tail:
            encode, tail = codec.encode, self._framing.tail
            self._encode = lambda *entry: encode(*entry) + tail
        self._entry_overhead = codec.overhead
        self._prefix = b""
        self._prefix_size = -1
        """Size of the payload that `_prefix` was made for; -1 where each entry needs a prefix of its own."""
        self._sizes: dict[int, int] = {}
        """Payload sizes of pending entries, where the size of a frame does not give them."""
        self._pushed_bytes = 0
        """Payload bytes of all entries enqueued: the ledger's length that entries carry."""
        self._out: list[bytes] = []
        """Frames that are enqueued and not sent."""
        self._last_entry_id = -1
        self._is_scheduled = False
        self._unsent: list[int] | None = [] if streams.striped else None
        """Ids of the entries in `_out`, where entries go to different bookies."""

    def enqueue(self, entry_id: int, payload: bytes) -> bytes:
        """Encode an entry that the tracker has just numbered, and send it at the end of this tick. Returns its frame."""
        size = len(payload)
        if size != self._prefix_size:
            self._make_prefix(entry_id, size)
        self._pushed_bytes += size
        frame = self._encode(entry_id, self.piggybacked_lac, self._pushed_bytes, payload, self._prefix)
        self._out.append(frame)
        self._last_entry_id = entry_id
        if self._unsent is not None:
            self._unsent.append(entry_id)
        if not self._is_scheduled:
            self._is_scheduled = True
            self._scheduler.schedule(self)
        return frame

    def _make_prefix(self, entry_id: int, size: int) -> None:
        self._prefix = self._framing.head(entry_id, self._entry_overhead + size)
        if self._framing.reusable:
            self._prefix_size = size
        else:
            self._sizes[entry_id] = size

    def send_enqueued(self, now: float) -> None:
        """Send what was enqueued (AddSource); `now` is seconds of the monotonic clock."""
        self._is_scheduled = False
        out = self._out
        if not out:
            return
        last = self._last_entry_id
        if self._forces.deferred_sync:
            self._forces.note_sent()
        if self._unsent is None:
            count = len(out)
            if count == 1:
                frames = out.pop()
            else:
                frames = b"".join(out)
                out.clear()
            in_flight = InFlight(self._tracker.order_of(last), count, len(frames), now)
            self._streams.send(frames, in_flight)
        else:
            self._out = []
            in_flight = InFlight(last, len(out), 0, now)
            entry_ids, self._unsent = self._unsent, []
            self._streams.send_stripes(entry_ids, out, now)
        self._latency.begin(last, in_flight)

    def flush(self, now: float) -> None:
        """Send what was enqueued without waiting for the end of this tick."""
        self.send_enqueued(now)
        self._scheduler.deliver()

    def clear(self) -> None:
        """Forget what was enqueued and not sent."""
        self._out.clear()
        if self._unsent is not None:
            self._unsent.clear()

    def payload_bytes(self, before: int, confirmed: int, frame_bytes: int, overhead_bytes: int) -> int:
        """Payload bytes of the entries `before` + 1 to `confirmed`, which are confirmed now and whose frames have `frame_bytes`."""
        if self._framing.reusable:
            return frame_bytes - (confirmed - before) * overhead_bytes
        return sum(map(self._sizes.pop, range(before + 1, confirmed + 1)))
