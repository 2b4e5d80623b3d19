from __future__ import annotations

import struct
import tracemalloc

import pytest

from triplicate.errors import FrameTooLarge
from triplicate.wire import MAX_FRAME_BYTES, FrameBuffer, encode_frame, next_frame


def test_frames_come_out_of_any_cut() -> None:
    bodies = [b"", b"a", b"bc" * 50, b"", b"d" * 7]
    stream = b"".join(map(encode_frame, bodies))
    for first in range(len(stream) + 1):
        for size in (1, 3, 64):
            frames = FrameBuffer()
            found = frames.bodies(stream[:first])
            for start in range(first, len(stream), size):
                found += frames.bodies(stream[start : start + size])
            assert found == bodies
            assert frames.held_bytes == 0


def test_the_limit_counts_the_length_itself() -> None:
    assert next_frame(struct.pack(">I", MAX_FRAME_BYTES - 4), 0, 4) is None
    with pytest.raises(FrameTooLarge, match=f"a frame of {MAX_FRAME_BYTES + 1} bytes exceeds the limit of {MAX_FRAME_BYTES}"):
        next_frame(struct.pack(">I", MAX_FRAME_BYTES - 3), 0, 4)


def test_a_frame_too_large_is_refused_when_its_length_arrives() -> None:
    frames = FrameBuffer(max_frame_bytes=10)
    assert frames.bodies(encode_frame(b"123456")) == [b"123456"]
    assert frames.bodies(b"\x00\x00\x00") == []
    with pytest.raises(FrameTooLarge):
        frames.bodies(b"\x07")


def test_a_whole_frame_too_large_is_refused() -> None:
    with pytest.raises(FrameTooLarge):
        FrameBuffer(max_frame_bytes=10).bodies(encode_frame(b"1234567"))


def test_a_length_with_its_top_bit_is_too_large_not_negative() -> None:
    with pytest.raises(FrameTooLarge):
        FrameBuffer().bodies(b"\xff\xff\xff\xff")


def test_pieces_of_a_large_frame_are_joined_once() -> None:
    frames = FrameBuffer()
    body = bytes(range(256)) * 64
    stream = encode_frame(body) + encode_frame(b"next")
    assert frames.feed(stream[:100]) == stream[:100]
    frames.keep(stream[:100], 0)
    for start in range(100, len(body) - 100, 100):
        assert frames.feed(stream[start : start + 100]) == b""
        frames.keep(b"", 0)
    assert frames.held_bytes < len(body) + 4
    assert frames.feed(stream[frames.held_bytes :]) == stream


def test_a_caller_that_pauses_gets_whole_frames_back() -> None:
    frames = FrameBuffer()
    stream = encode_frame(b"one") + encode_frame(b"two")
    buffer = frames.feed(stream)
    frames.keep(buffer, 7)
    assert frames.held_bytes == 7
    assert frames.feed(b"") == encode_frame(b"two")
    assert frames.feed(b"") == b""


def test_a_frame_that_comes_two_bytes_at_a_time_takes_little_more_than_its_bytes() -> None:
    size = 256 * 1024
    frames = FrameBuffer()
    assert frames.bodies(struct.pack(">I", size)) == []
    chunk = b"ab"
    tracemalloc.start()
    for index in range(size // 2 - 1):
        assert frames.bodies(bytes(chunk if index % 2 else b"cd")) == []
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert frames.held_bytes == size + 2
    assert most < 4 * size
