"""The certificates at the doors of a cluster, as a client sees them: each is shown by the server itself, in a handshake.

A handshake needs no login. It proves what no file does: that the server has taken a renewed certificate up.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import cast

from triplicate.cli.overview.core.cluster_facts import DoorCertificate
from triplicate.errors import ProtocolError
from triplicate.runtime import Host, fail, resolve
from triplicate.security import HANDSHAKE_TIMEOUT_S, TlsIdentity, reason_of_tls_failure
from triplicate.wire import FrameBuffer, StartTlsRequest, Status, v3

POSTGRES_SSL_REQUEST = bytes.fromhex("0000000804d2162f")
"""PostgreSQL's SSLRequest. Source: PostgreSQL's documentation, 'Message Formats'."""
ANSWER_BYTES_MAX = 4096

Answered = Callable[[bytes], bool | None]
"""Whether a server's answer accepts TLS; None while it is not complete. Raises ProtocolError."""


def bookie_answer(data: bytes) -> bool | None:
    """The answer of a bookie to START_TLS."""
    for body in FrameBuffer(ANSWER_BYTES_MAX).bodies(data):
        _, answer = v3.decode_response(body)
        return answer.status is Status.OK
    return None


def node_answer(data: bytes) -> bool | None:
    """The answer of a database node to SSLRequest."""
    return data == b"S" if data else None


async def certificate_of_bookie(host: Host, tls: TlsIdentity, name: str, address: str) -> DoorCertificate | None:
    """The certificate of a bookie; None if it has no TLS. Errors are part of the result. The caller limits the time."""
    return await _certificate(host, tls, f"bookie {name}", address, v3.encode_request(StartTlsRequest(), 1), bookie_answer)


async def certificate_of_node(host: Host, tls: TlsIdentity, name: str, address: str) -> DoorCertificate | None:
    """The certificate of a database node, likewise."""
    return await _certificate(host, tls, f"node {name}", address, POSTGRES_SSL_REQUEST, node_answer)


async def _certificate(host: Host, tls: TlsIdentity, door: str, address: str, request: bytes, answered: Answered) -> DoorCertificate | None:
    place, _, port = address.rpartition(":")
    place = place.removeprefix("[").removesuffix("]")
    try:
        transport, protocol = await host.network.connect(lambda: _Asking(answered), place, int(port))
    except (OSError, ValueError):
        return None  # Whether it answers is another check's.
    asking = cast("_Asking", protocol)
    try:
        transport.write(request)
        if not await asking.answer:
            return None
        context = tls.client_context()
        transport = await host.network.start_tls(transport, asking, context, limit_s=HANDSHAKE_TIMEOUT_S, server_name=place)
        shown = transport.get_extra_info("peercert") or {}
        return DoorCertificate(door, ssl.cert_time_to_seconds(str(shown["notAfter"])))
    except KeyError:
        return DoorCertificate(door, None, "it cannot be read")
    except ProtocolError as error:
        return DoorCertificate(door, None, f"it does not answer as a server of its kind: {error}")
    except OSError as error:
        return DoorCertificate(door, None, f"the TLS handshake failed: {reason_of_tls_failure(error)}")
    finally:
        # Not aborted: that would take back the end of the handshake, which the server would report as a failure.
        transport.close()


class _Asking(asyncio.Protocol):
    """Awaits one answer in clear."""

    def __init__(self, answered: Answered) -> None:
        self.answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._answered = answered
        self._received = b""

    def data_received(self, data: bytes) -> None:
        if self.answer.done():
            return
        self._received += data
        try:
            found = self._answered(self._received)
        except ProtocolError as error:
            fail(self.answer, error)
            return
        if found is not None:
            resolve(self.answer, found)
        elif len(self._received) > ANSWER_BYTES_MAX:
            fail(self.answer, ProtocolError("its answer is too long"))

    def connection_lost(self, error: Exception | None) -> None:
        if not self.answer.done():
            resolve(self.answer, False)
