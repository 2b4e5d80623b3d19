"""The content of a bookie's registration node: the addresses on which it listens.

Source: BookKeeper `BookieServiceInfo`, `BookieServiceInfoUtils`, `DefaultBookieAddressResolver`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from google.protobuf.message import DecodeError

from triplicate.errors import ArgumentError, BookieUnavailable, FormatError
from triplicate.ledger import RegisteredBookie
from triplicate.metadata.core.bookkeeper_pb2 import BookieServiceInfoFormat

BOOKIE_PROTOCOL = "bookie-rpc"
TLS_EXTENSION = "tls"
"""The extension of an endpoint at which START_TLS is served. Source: BookKeeper `BookieService`."""
NETWORK_LOCATION = "networkLocation"
"""The property in which a bookie publishes its network location."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One address of a bookie."""

    id: str
    port: int
    host: str
    protocol: str = BOOKIE_PROTOCOL
    auth: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BookieServiceInfo:
    """A bookie's addresses and properties."""

    endpoints: tuple[Endpoint, ...]
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def address(self) -> tuple[str, int]:
        """Host and port for BookKeeper's protocol.

        Raises:
            BookieUnavailable: no endpoint has this protocol.
        """
        address = self.rpc_address
        if address is not None:
            return address
        raise BookieUnavailable(f"the bookie publishes no {BOOKIE_PROTOCOL} endpoint")

    @property
    def rpc_address(self) -> tuple[str, int] | None:
        """As `address`, but None if no endpoint has the protocol."""
        for endpoint in self.endpoints:
            if endpoint.protocol == BOOKIE_PROTOCOL:
                return endpoint.host, endpoint.port
        return None


def bookie_service(
    host: str, port: int, *, http_port: int | None = None, network_location: str = "", has_tls: bool = False
) -> BookieServiceInfo:
    """The registration of a bookie: its endpoint ``bookie``, and, if it has them, ``httpserver`` and its network location.

    Args:
        has_tls: whether connections to the endpoint may ask for TLS.
    """
    endpoints = [Endpoint("bookie", port, host, extensions=(TLS_EXTENSION,) if has_tls else ())]
    if http_port is not None:
        endpoints.append(Endpoint("httpserver", http_port, host, "http"))
    return BookieServiceInfo(tuple(endpoints), {NETWORK_LOCATION: network_location} if network_location else {})


def machine_of(bookie_id: str, info: BookieServiceInfo) -> str:
    """The host of a bookie by its registration. Without an address the bookie's id stands for it."""
    address = info.rpc_address
    return address[0] if address is not None else bookie_id


def registered_bookie(bookie_id: str, info: BookieServiceInfo) -> RegisteredBookie:
    """The site of a bookie by its registration."""
    return RegisteredBookie(bookie_id, machine_of(bookie_id, info), info.properties.get(NETWORK_LOCATION, ""))


def encode_service_info(info: BookieServiceInfo) -> bytes:
    """Binary BookieServiceInfoFormat, not delimited.

    Raises:
        ArgumentError: a port outside 0 to 65535.
    """
    message = BookieServiceInfoFormat()
    for endpoint in info.endpoints:
        if not 0 <= endpoint.port <= 65535:
            raise ArgumentError(f"port {endpoint.port} of endpoint {endpoint.id} is outside 0 to 65535")
        message.endpoints.add(
            id=endpoint.id,
            port=endpoint.port,
            host=endpoint.host,
            protocol=endpoint.protocol,
            auth=endpoint.auth,
            extensions=endpoint.extensions,
        )
    for key in sorted(info.properties):
        message.properties[key] = info.properties[key]
    return message.SerializeToString(deterministic=True)


def decode_service_info(bookie_id: str, data: bytes) -> BookieServiceInfo:
    """Decode a registration node. Empty data is the legacy form, in which the id is ``host:port``.

    Raises:
        FormatError: the data has neither of the two forms.
    """
    if not data:
        host, _, rest = bookie_id.partition(":")
        port = rest.split(":", 1)[0]
        if not host or not port.isdecimal() or int(port) > 65535:
            raise FormatError(f"bookie {bookie_id} publishes no address, and its id is not host:port")
        return BookieServiceInfo((Endpoint("bookie", int(port), host),))
    message = BookieServiceInfoFormat()
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise FormatError(f"the registration of bookie {bookie_id} is not a BookieServiceInfo: {error}") from error
    if not message.IsInitialized():
        raise FormatError(f"the registration of bookie {bookie_id} has an endpoint without id, port, host or protocol")
    endpoints = tuple(Endpoint(e.id, e.port, e.host, e.protocol, tuple(e.auth), tuple(e.extensions)) for e in message.endpoints)
    info = BookieServiceInfo(endpoints, dict(message.properties))
    if not all(isinstance(text, str) for text in _texts(info)):
        # The protobuf library returns bytes for a version-2 string that is not UTF-8.
        raise FormatError(f"the registration of bookie {bookie_id} holds text that is not UTF-8")
    return info


def _texts(info: BookieServiceInfo) -> Iterator[str]:
    for endpoint in info.endpoints:
        yield from (endpoint.id, endpoint.host, endpoint.protocol, *endpoint.auth, *endpoint.extensions)
    for key, value in info.properties.items():
        yield from (key, value)
