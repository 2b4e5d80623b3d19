"""Packets of protocol version 3 to messages and back: protobuf, behind the same length as version 2's.

`encode_…` gives a whole frame with its length, `decode_…` takes a body without it. What BookKeeper asks of an optional field is whether
it is there: a read with a previous last-add-confirmed is a long poll, one with the fence flag fences; so fields are written only when
they are meant. Adds and their answers have a form in bulk beside this one (`wire.v3_adds`). Source: BookKeeper
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
