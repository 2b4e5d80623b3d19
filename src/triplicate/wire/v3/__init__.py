"""Packets of protocol version 3 to messages and back: protobuf, after the same length field as in version 2.

`encode_…` gives a whole frame with its length, `decode_…` takes a body without it. The presence
of an optional field has a meaning: a read with a previous last-add-confirmed is a long poll, a read with the fence flag fences. So a
field is written only when it is meant. `wire.v3.bulk` handles many adds and their answers at once. Source: BookKeeper
`BookkeeperProtocol.proto`, `PerChannelBookieClient`, `BookieRequestProcessor`, the `…ProcessorV3` classes.
"""

from triplicate.wire.v3.envelope import AUTH_DISABLED, VERSION, OperationType, V3Request, is_v3
from triplicate.wire.v3.requests import DEFERRED_SYNC, HIGH_PRIORITY, decode_request, encode_request
from triplicate.wire.v3.responses import (
    NO_ID,
    decode_response,
    encode_refusal,
    encode_response,
    encode_unauthenticated,
    encode_unknown_operation,
    refusal_of,
)

__all__ = [
    "AUTH_DISABLED",
    "DEFERRED_SYNC",
    "HIGH_PRIORITY",
    "NO_ID",
    "VERSION",
    "OperationType",
    "V3Request",
    "decode_request",
    "decode_response",
    "encode_refusal",
    "encode_request",
    "encode_response",
    "encode_unauthenticated",
    "encode_unknown_operation",
    "is_v3",
    "refusal_of",
]
