"""A frame over the limit while it passes through a connection: its first bytes are kept, the rest is read and dropped."""

from __future__ import annotations

from triplicate.wire import OVERSIZED_HEAD_BYTES


class OversizedFrame:
    """See the module's text. It takes `OVERSIZED_HEAD_BYTES` of memory for a frame of any size.

    Args:
        size_bytes: of the whole frame, its length included.
    """

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.left_bytes = size_bytes
        """Bytes that have not arrived yet."""
        self.head = b""
        self.refused = False
        """The peer has been sent an answer."""

    @property
    def has_head(self) -> bool:
        return len(self.head) == min(OVERSIZED_HEAD_BYTES, self.size_bytes)

    def pass_over(self, buffer: bytes, position: int) -> int:
        """Consume the frame's bytes in the buffer from `position` on; returns where they end."""
        end = min(len(buffer), position + self.left_bytes)
        self.head += buffer[position : min(end, position + OVERSIZED_HEAD_BYTES - len(self.head))]
        self.left_bytes -= end - position
        return end
