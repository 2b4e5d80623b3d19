"""A publisher's request to the living writer of a log: the value and its JSON. `docs/formats/log.md` fixes the form."""

from __future__ import annotations

import json
from dataclasses import dataclass

from triplicate.errors import ArgumentError, CorruptionError
from triplicate.log.core.head import LogSegment, SegmentState, load_node

REQUEST_VERSION = 1
REQUEST_LIMIT_BYTES = 896 * 1024
"""Size limit of a request's node, bytes: enough for the ledgers of one publish, and below ZooKeeper's limit."""
REQUESTS_MAXIMUM = 8
"""Requests that wait at one log. Further publishers wait until one of them is gone."""


@dataclass(frozen=True, slots=True)
class PublishRequest:
    """One batch that is to be listed at the writer's next roll.

    Args:
        token: names the request; never drawn twice.
        publisher: a name for messages.
        application, batch: as in `Logs.publish`.
        segments: the sealed ledgers with records, in order; their first offsets have no meaning.
        log_id: of the log to which the batch is published; empty in requests of earlier releases.
    """

    token: str
    publisher: str
    application: str | None
    batch: int | None
    segments: tuple[LogSegment, ...]
    log_id: str = ""


def encode_request(request: PublishRequest) -> bytes:
    """A request's node.

    Raises:
        ArgumentError: it would pass 896 KiB.
    """
    value: dict[str, object] = {
        "application": request.application,
        "batch": request.batch,
        "by": request.publisher,
        "segments": [
            [item.ledger_id, item.records, item.size_bytes, item.last_entry, item.min_time_us, item.max_time_us]
            for item in request.segments
        ],
        "token": request.token,
        "v": REQUEST_VERSION,
    }
    if request.log_id:
        value["log"] = request.log_id
    data = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    if len(data) > REQUEST_LIMIT_BYTES:
        raise ArgumentError(
            f"a request to publish {len(request.segments)} ledgers would have {len(data)} bytes, and a node has at most "
            f"{REQUEST_LIMIT_BYTES}: write the batch with fewer tasks, or publish it while no writer is alive"
        )
    return data


def decode_request(data: bytes, name: str) -> PublishRequest:
    """Read a request of log `name`. Raises FormatError, CorruptionError."""
    what = f"a request to publish to log {name!r}"
    value = load_node(data, what, REQUEST_VERSION)
    try:
        segments = tuple(
            LogSegment(ledger_id, 0, records, size_bytes, last_entry, min_time_us, max_time_us, SegmentState.CLOSED)
            for ledger_id, records, size_bytes, last_entry, min_time_us, max_time_us in value["segments"]
        )
        return PublishRequest(value["token"], value["by"], value["application"], value["batch"], segments, str(value.get("log", "")))
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptionError(f"{what} lacks a field or has a wrong one: {error!r}") from error


def arrival_of(child: str) -> int:
    """The place of a request in the order of arrival, from its node's name: a token, a dash and a rising number."""
    return int(child.rpartition("-")[2])
