"""The window of one writer: how many entries and bytes may be sent and not confirmed."""

from __future__ import annotations

from collections.abc import Sequence, Sized

from triplicate.client.write.add_streams import EnsembleStreams
from triplicate.config import ClientSettings
from triplicate.errors import ArgumentError, WindowFull


class AddWindow:
    """Belongs to one writer. An empty window admits a payload of any size.

    Attributes:
        pending_bytes: bytes of the frames of unconfirmed entries.

    Args:
        frames: the writer's frames of unconfirmed entries; only counted here.
        overhead_bytes: bytes of a frame beside its payload, without the version-3 envelope.
        largest_payload_bytes: the most that one payload may have.
    """

    __slots__ = (
        "_bytes_maximum",
        "_entries_maximum",
        "_frames",
        "_largest_payload_bytes",
        "_ledger_id",
        "_overhead_bytes",
        "_streams",
        "pending_bytes",
    )

    def __init__(
        self,
        settings: ClientSettings,
        ledger_id: int,
        frames: Sized,
        streams: EnsembleStreams,
        overhead_bytes: int,
        largest_payload_bytes: int,
    ) -> None:
        self.pending_bytes = 0
        self._entries_maximum = settings.window_entries
        self._bytes_maximum = settings.window_bytes
        self._ledger_id = ledger_id
        self._frames = frames
        self._streams = streams
        self._overhead_bytes = overhead_bytes
        self._largest_payload_bytes = largest_payload_bytes

    def has_room(self, size: int) -> bool:
        """Whether a payload of `size` bytes fits."""
        if self._streams.full:
            return False
        pending = len(self._frames)
        if not pending:
            return True
        return pending < self._entries_maximum and self.pending_bytes + size + self._overhead_bytes <= self._bytes_maximum

    def has_room_for(self, sizes: Sequence[int]) -> bool:
        """Whether payloads of these sizes fit together.

        Raises:
            ArgumentError: they do not fit even into an empty window.
        """
        count, total = len(sizes), sum(sizes) + len(sizes) * self._overhead_bytes
        if count > self._entries_maximum or total > max(self._bytes_maximum, self._largest_payload_bytes):
            raise ArgumentError(
                f"{count} payloads of {total} bytes exceed the window of {self._entries_maximum} entries and "
                f"{self._bytes_maximum} bytes; await append_many instead, or send fewer at a time"
            )
        pending = len(self._frames)
        fits = pending + count <= self._entries_maximum and (not pending or self.pending_bytes + total <= self._bytes_maximum)
        return fits and not self._streams.full

    def full_error(self) -> WindowFull:
        """The error of an append that found no room."""
        return WindowFull(
            f"{len(self._frames)} entries of {self.pending_bytes} bytes of ledger {self._ledger_id} are unacknowledged; "
            "await append instead, or slow down"
        )
