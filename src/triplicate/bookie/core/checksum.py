"""CRC32C over several buffers in sequence, as if they were one."""

from __future__ import annotations

from collections.abc import Iterable

import google_crc32c

Buffer = bytes | bytearray | memoryview


def crc32c(*buffers: Buffer) -> int:
    """CRC32C (Castagnoli) of the concatenation of `buffers`."""
    return crc32c_of(buffers)


def crc32c_of(buffers: Iterable[Buffer], value: int = 0) -> int:
    """Continue the finished checksum `value` over `buffers`. The library accepts only `bytes`, so other buffers are copied."""
    extend = google_crc32c.extend
    for buffer in buffers:
        value = extend(value, buffer if type(buffer) is bytes else bytes(buffer))
    return value
