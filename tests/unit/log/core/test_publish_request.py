"""Requests to publish as values: what they hold, how large they get, and what is refused."""

from __future__ import annotations

import pytest

from triplicate.errors import ArgumentError, CorruptionError, FormatError
from triplicate.log.core.head import LogSegment, SegmentState
from triplicate.log.core.publish_request import REQUEST_LIMIT_BYTES, PublishRequest, arrival_of, decode_request, encode_request


def request(count: int) -> PublishRequest:
    segments = tuple(LogSegment(2**62 + number, 0, 10**6, 10**9, 9999, 10**15, 10**15 + 1, SegmentState.CLOSED) for number in range(count))
    return PublishRequest("0123456789abcdef" * 2, "p" * 256, "a" * 256, 2**62, segments)


def test_the_largest_publish_fits_into_one_node() -> None:
    data = encode_request(request(10_000))
    assert len(data) <= REQUEST_LIMIT_BYTES
    assert decode_request(data, "l") == request(10_000)
    with pytest.raises(ArgumentError, match="fewer tasks"):
        encode_request(request(12_000))


def test_what_is_no_request_of_this_release_is_refused() -> None:
    with pytest.raises(FormatError, match="version 2"):
        decode_request(encode_request(request(1)).replace(b'"v":1', b'"v":2'), "l")
    for damaged in (b"", b"[]", b'{"v":1}', encode_request(request(1)).replace(b'"segments":[[4', b'"segments":[["4",')):
        with pytest.raises(CorruptionError):
            decode_request(damaged, "l")


def test_requests_are_served_in_the_order_of_arrival() -> None:
    assert sorted(["ff-0000000010", "aa-0000000011", "bb-0000000009"], key=arrival_of) == [
        "bb-0000000009",
        "ff-0000000010",
        "aa-0000000011",
    ]
