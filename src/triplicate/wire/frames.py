"""Frames: ``u32 length`` and that many bytes, split from a byte stream, with a limit. Source: BookKeeper `BookieNettyServer`."""

from __future__ import annotations

from struct import Struct

from triplicate.errors import FrameTooLarge

MAX_FRAME_BYTES = 5 * 1024 * 1024
"""The greatest frame that a client sends and Apache's bookies accept by default, in bytes, including the 4 bytes of the length."""

BOOKIE_FRAME_BYTES = MAX_FRAME_BYTES + 10 * 1024
"""The greatest frame our bookies accept by default: 5 MiB of payload in every envelope. Apache Pulsar sets its bookies to the same."""

LENGTH_BYTES = 4

APART_BYTES = 32 * 1024
"""A chunk of at least this many bytes is not joined with an incomplete frame before it: copying it would cost more than a second buffer."""

PIECES = 256
"""Number of pieces of an incomplete frame at which they are joined: small pieces cost more memory than their bytes."""

_unpack_length = Struct(">I").unpack_from
_pack_length = Struct(">I").pack


def encode_frame(body: bytes) -> bytes:
    """A frame: the body after its length."""
    return _pack_length(len(body)) + body


def next_frame(buffer: bytes, position: int, end: int, max_frame_bytes: int = MAX_FRAME_BYTES) -> tuple[int, int] | None:
    """Start and end of the body of the frame that begins at `position`; None while the frame is not complete before `end`.

    Raises:
        FrameTooLarge: its length exceeds the limit, even while it is not complete.
    """
    start = position + LENGTH_BYTES
    if start > end:
        return None
    stop = start + _unpack_length(buffer, position)[0]
    if stop - position > max_frame_bytes:
        raise FrameTooLarge(
            f"a frame of {stop - position} bytes exceeds the limit of {max_frame_bytes}: "
            "the peer speaks another protocol, or its frame limit is set higher than this one"
        )
    return (start, stop) if stop <= end else None


def excess_of(buffer: bytes, position: int, end: int, max_frame_bytes: int, excess_bytes: int) -> int:
    """The size, with its length, of the frame at `position` if it exceeds the limit by no more than `excess_bytes`; otherwise 0."""
    if position + LENGTH_BYTES > end:
        return 0
    size = LENGTH_BYTES + int(_unpack_length(buffer, position)[0])
    return size if max_frame_bytes < size <= max_frame_bytes + excess_bytes else 0


class FrameBuffer:
    """Holds the received bytes of a frame that is not complete.

    For each chunk: ``buffer = frames.feed(data)``, take whole frames from its front, then ``frames.keep(buffer, position)`` with
    the end of the last whole frame. Pieces of an incomplete frame are joined when it is whole, or when there are
    many. So memory is bounded by the frame limit and one chunk, even if chunks have only a few bytes.
    """

    __slots__ = ("_excess_bytes", "_frame_bytes", "_held_bytes", "_pieces", "max_frame_bytes")

    def __init__(self, max_frame_bytes: int = MAX_FRAME_BYTES, excess_bytes: int = 0) -> None:
        """
        Args:
            excess_bytes: a frame that exceeds the limit by no more than this is not collected: once its length has arrived, `feed`
                returns the part that has arrived, for a caller that skips the frame (`excess_of`).
        """
        self.max_frame_bytes = max_frame_bytes
        self._excess_bytes = excess_bytes
        self._pieces: list[bytes] = []
        self._held_bytes = 0
        self._frame_bytes = 0

    @property
    def held_bytes(self) -> int:
        """Bytes of the incomplete frame that have arrived."""
        return self._held_bytes

    @property
    def wanted_bytes(self) -> int:
        """Size of the frame at the beginning of the held bytes, in bytes; that of its length field while the field is incomplete."""
        return max(self._frame_bytes, LENGTH_BYTES) if self._pieces else 0

    def feed(self, data: bytes) -> bytes:
        """Bytes that begin with a frame's length; empty while the first frame is not complete."""
        if not self._pieces:
            return data
        if data:
            self._pieces.append(data)
            self._held_bytes += len(data)
        if self._held_bytes < self._frame_bytes:
            if len(self._pieces) >= PIECES:
                self._pieces = [b"".join(self._pieces)]
            return b""
        buffer = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces = []
        self._held_bytes = 0
        return buffer

    def feed_apart(self, data: bytes) -> tuple[bytes, bytes, int]:
        """As `feed`, but a large chunk is not joined with the beginning of its first frame, which arrived before.

        Returns:
            the result of `feed`, or the first frame alone; the bytes that contain the rest, empty if there is none; the rest's start.
        """
        missing = self._frame_bytes - self._held_bytes
        if len(data) < APART_BYTES or not self._pieces or self._frame_bytes <= LENGTH_BYTES or not 0 < missing <= len(data):
            return self.feed(data), b"", 0
        self._pieces.append(data[:missing])
        frame = b"".join(self._pieces)
        self._pieces = []
        self._held_bytes = 0
        return frame, data, missing

    def keep(self, buffer: bytes, position: int) -> None:
        """Hold the bytes from `position`, the beginning of a frame, for the next `feed`.

        A caller that pauses may leave whole frames; ``feed(b"")`` gives them back. An empty `buffer` (from `feed`) changes nothing.

        Raises:
            FrameTooLarge: the frame announces more than the limit.
        """
        if position >= len(buffer):
            return
        has_length = len(buffer) - position >= LENGTH_BYTES
        next_frame(buffer, position, len(buffer), self.max_frame_bytes + self._excess_bytes)
        self._frame_bytes = LENGTH_BYTES + (_unpack_length(buffer, position)[0] if has_length else 0)
        if self._frame_bytes > self.max_frame_bytes:
            self._frame_bytes = LENGTH_BYTES
        self._pieces = [buffer[position:]]
        self._held_bytes = len(self._pieces[0])

    def bodies(self, data: bytes) -> list[bytes]:
        """Call `feed`, return the bodies of all whole frames, and call `keep`: for connections that need not be fast.

        Raises:
            FrameTooLarge: a frame announces more than the limit.
        """
        buffer = self.feed(data)
        bodies: list[bytes] = []
        position = 0
        while (frame := next_frame(buffer, position, len(buffer), self.max_frame_bytes)) is not None:
            bodies.append(buffer[frame[0] : frame[1]])
            position = frame[1]
        self.keep(buffer, position)
        return bodies
