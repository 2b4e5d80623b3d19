"""The codecs of an entry's body: none, zlib, zstd. An entry is one block, bounded before it is unpacked."""

from __future__ import annotations

import zlib

import zstandard

from triplicate.errors import ArgumentError, CorruptionError

NONE, ZLIB, ZSTD = 0, 1, 2
CODECS = {NONE: "none", ZLIB: "zlib", ZSTD: "zstd"}
CODEC_NUMBERS = {"none": NONE, "zlib": ZLIB, "zstd": ZSTD, "auto": ZSTD}
SMALLEST_BODY = 128
"""Shorter bodies, in bytes, are not compressed: the call costs more than it saves."""


class Compressor:
    """Compresses bodies with one codec; keeps zstd's working memory between entries. Not for several threads at once.

    Args:
        name: ``none``, ``zlib``, ``zstd`` or ``auto`` (zstd). Every codec is used only where it saves at least an eighth.

    Raises:
        ArgumentError: an unknown name.
    """

    def __init__(self, name: str) -> None:
        if name not in CODEC_NUMBERS:
            raise ArgumentError(f"unknown compression {name!r}: choose one of {', '.join(CODEC_NUMBERS)}")
        self.codec = CODEC_NUMBERS[name]
        self._zstd = zstandard.ZstdCompressor(level=1) if self.codec == ZSTD else None

    def compress(self, body: bytes) -> tuple[int, bytes]:
        """The codec used and the bytes to store: the body itself where compression does not save enough."""
        if self.codec == NONE or len(body) < SMALLEST_BODY:
            return NONE, body
        packed = self._zstd.compress(body) if self._zstd is not None else zlib.compress(body, 1)
        if len(packed) > len(body) - len(body) // 8:
            return NONE, body
        return self.codec, packed


def decompress(codec: int, stored: memoryview, raw_length: int) -> memoryview:
    """The raw body; with codec none, a view of the stored bytes.

    Raises:
        CorruptionError: it does not unpack, or not to `raw_length` bytes. No more memory than that is ever allocated.
    """
    if codec == NONE:
        body = stored
    elif codec == ZLIB:
        unpacker = zlib.decompressobj()
        try:
            body = memoryview(unpacker.decompress(stored, raw_length + 1))
        except zlib.error as error:
            raise CorruptionError(f"body of an entry does not unpack: {error}") from error
        if not unpacker.eof or unpacker.unused_data:
            raise CorruptionError(f"body of an entry does not unpack to the {raw_length} bytes its header says")
    else:
        body = _unpack_zstd(stored, raw_length)
    if len(body) != raw_length:
        raise CorruptionError(f"body of an entry has {len(body)} bytes, its header says {raw_length}")
    return body


def _unpack_zstd(stored: memoryview, raw_length: int) -> memoryview:
    try:
        # A frame that declares a size is unpacked to that size even beyond the given limit, so the declaration is checked first.
        if zstandard.frame_content_size(stored) != raw_length:
            raise CorruptionError(f"body of an entry does not declare the {raw_length} bytes its header says")
        return memoryview(zstandard.ZstdDecompressor().decompress(stored, max_output_size=raw_length, allow_extra_data=False))
    except zstandard.ZstdError as error:
        raise CorruptionError(f"body of an entry does not unpack: {error}") from error
