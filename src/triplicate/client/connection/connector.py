"""Connects to one bookie: address, transport, authentication, backoff after failures, and the check of an address from memory.

Source: BookKeeper `PerChannelBookieClient.connect`, `DefaultBookieAddressResolver`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Protocol

from triplicate.client.connection.bookie_access import BookieAccess
from triplicate.client.connection.exchange import Exchange
from triplicate.client.connection.handshake import Handshake
from triplicate.client.connection.response_errors import bookie_unavailable
from triplicate.config import ClientSettings
from triplicate.errors import BookieError, ProtocolError, TriplicateError
from triplicate.metadata import BookieRegistry, Location
from triplicate.runtime import Backoff, Host, TaskScope, sleep, timeout_at
from triplicate.security import reason_of_tls_failure

WRITE_BUFFER_BYTES = 1 << 24
CONFIRM_FIRST_S = 0.25
CONFIRM_LONGEST_S = 10.0
"""Bounds of the pauses between attempts to confirm that a bookie still belongs at the address where it was last known to listen."""


class ConnectingChannel(Protocol):
    """The channel that a connector serves. It is the asyncio protocol of its connections."""

    @property
    def is_closed(self) -> bool: ...

    @property
    def has_requests(self) -> bool:
        """Whether requests wait for a connection."""

    def is_on(self, transport: asyncio.Transport) -> bool:
        """Whether this is the present connection."""

    def connected(self, transport: asyncio.Transport) -> None:
        """Use this connection."""

    def connect_failed(self, error: BookieError) -> None:
        """There is no connection: fail every request."""


@dataclass(frozen=True, slots=True)
class ChannelResources:
    """The state that all channels of one pool share.

    Attributes:
        scope: owns the tasks that connect.
        access: how each connection is protected and authenticated before it carries requests.
    """

    host: Host
    registry: BookieRegistry
    settings: ClientSettings
    scope: TaskScope
    access: BookieAccess


class BookieConnector:
    """Belongs to one channel. It makes one connection at a time.

    Attributes:
        handshake: of a connection that is being made; it handles what the connection receives.
        violation: of the protocol, for which this client ends the present connection.

    Args:
        bookie_id: its address is looked up again for each connection, since version 2 has no greeting that would expose another process
            at an old address.
        protocol: the channel, as the asyncio protocol of its connections.
        limit_bytes: the largest frame that is accepted.
    """

    def __init__(
        self,
        resources: ChannelResources,
        bookie_id: str,
        channel: ConnectingChannel,
        protocol: asyncio.Protocol,
        exchange: Exchange,
        limit_bytes: int,
    ) -> None:
        self.handshake: Handshake | None = None
        self.violation: ProtocolError | None = None
        self._host = host = resources.host
        self._bookie_id = bookie_id
        self._registry = resources.registry
        self._settings = settings = resources.settings
        self._scope = resources.scope
        self._channel = channel
        self._protocol = protocol
        self._exchange = exchange
        self._access = resources.access
        self._limit_bytes = limit_bytes
        self._now = host.clock.monotonic
        self._unconfirmed: asyncio.Task[None] | None = None
        """The task that confirms the address; it runs while the connection uses the last known address and nothing has confirmed it."""
        self._is_connecting = False
        backoff_maximum = max(settings.reconnect_first_s, settings.reconnect_maximum_s)
        self._backoff = Backoff(settings.reconnect_first_s, backoff_maximum, host.entropy.stream(f"reconnect {bookie_id}"))
        self._retry_at = 0.0
        self._connected_at = 0.0
        self._last_error = ""

    @property
    def is_confirmed(self) -> bool:
        """Whether the bookie is known to belong at the address of the present connection."""
        return self._unconfirmed is None

    def connect_early(self) -> None:
        """Begin to connect before there is a request, unless a failure was too recent."""
        if not self._scope.closing and self._retry_at <= self._now():
            self.connect()

    def connect(self) -> None:
        """Begin to connect. During a backoff, and while the client is closing, the requests fail instead."""
        if not self._is_connecting:
            self._is_connecting = True
            if self._now() < self._retry_at or self._scope.closing:
                asyncio.get_running_loop().call_soon(self._refuse)
            else:
                self._scope.spawn(self._connect(), name=f"connect {self._bookie_id}")

    def connection_lost(self, error: Exception | None, received_at: float) -> str:
        """The present connection is gone. Returns why.

        Args:
            error: of the transport.
            received_at: when the bookie last sent something, in seconds of the monotonic clock; the beginning if it has not.
        """
        violation, self.violation = self.violation, None
        if violation is not None:
            why = f"the connection was ended: {violation}"
        elif error is not None:
            why = f"the connection broke ({reason_of_tls_failure(error) if isinstance(error, OSError) else error})"
        else:
            why = "it closed the connection"
        if self._access.tls is not None and received_at <= self._connected_at:
            # In TLS 1.3 a bookie judges the client's certificate when the client's side of the handshake is complete.
            why += " before it answered anything; perhaps it does not accept this client's certificate"
            self._retry_at = self._now() + self._backoff.next_s()
        else:
            self._backoff.reset()
        self._last_error = why
        self.stop()
        return why

    def stop(self) -> None:
        """Stop confirming the address. Idempotent."""
        task, self._unconfirmed = self._unconfirmed, None
        if task is not None:
            task.cancel()

    def _refuse(self) -> None:
        self._is_connecting = False
        why = f"{self._last_error or 'the client is closing'}; it is tried again in a moment"
        self._channel.connect_failed(bookie_unavailable(self._bookie_id, why))

    async def _connect(self) -> None:
        deadline = self._now() + self._settings.connect_timeout_s
        transport: asyncio.Transport | None = None
        location: Location | None = None
        try:
            async with timeout_at(deadline):
                location = await self._registry.locate(self._bookie_id, self._settings.address_wait_s)
                transport = await self._open(location)
                if self._access.has_handshake:
                    self.handshake = Handshake(self._host, self._access, self._exchange, self._protocol, self._limit_bytes)
                    transport = await self.handshake.run(transport, self._bookie_id, location.info.address[0], deadline)
        except TimeoutError:
            self._fail(self._overdue(), transport, location)
        except (OSError, TriplicateError) as error:
            self._fail(str(error) or type(error).__name__, transport, location)
        except BaseException as error:
            # A fault of ours, or the end of the client: the requests that wait for this connection must fail.
            self._fail(f"connecting was interrupted: {error!r}", transport)
            raise
        else:
            self._use(transport, location)

    def _overdue(self) -> str:
        text = f"no connection within {self._settings.connect_timeout_s:g} s"
        if self.handshake is None:
            return text
        # BookKeeper's SASL provider leaves a wrong password without an answer.
        return f"{text}, which waited for {self.handshake.stage}"

    def _use(self, transport: asyncio.Transport, location: Location) -> None:
        channel = self._channel
        if transport.is_closing() and not channel.is_closed:
            # A bookie that is about to start accepts connections and closes them at once; `connection_lost` was called already.
            self._fail("it closed the connection at once", transport, location)
            return
        self._is_connecting = False
        self.handshake = None
        if channel.is_closed:
            transport.abort()
            return
        transport.set_write_buffer_limits(WRITE_BUFFER_BYTES)
        if self._access.tls is None:
            self._backoff.reset()
        if not location.registered:
            self._unconfirmed = self._scope.spawn(self._confirm(transport, location), name=f"address of {self._bookie_id}")
        channel.connected(transport)
        self._connected_at = self._now()  # Later than the channel's own note of the beginning, and earlier than any answer.

    async def _open(self, location: Location) -> asyncio.Transport:
        address, port = location.info.address
        network = self._host.network
        if location.registered is not False:
            return (await network.connect(lambda: self._protocol, address, port))[0]
        try:
            # Usually the process is gone, and perhaps its machine, which then does not answer at all.
            async with timeout_at(self._now() + self._settings.address_wait_s):
                return (await network.connect(lambda: self._protocol, address, port))[0]
        except TimeoutError:
            raise bookie_unavailable(self._bookie_id, "it is not registered, and does not answer where it last was") from None

    async def _confirm(self, transport: asyncio.Transport, location: Location) -> None:
        """Find out whether the bookie still belongs at the address of this connection, and end the connection if it does not."""
        self._host.trace("client.connected_from_memory", bookie=self._bookie_id, registered=location.registered)
        pause = Backoff(CONFIRM_FIRST_S, CONFIRM_LONGEST_S, self._host.entropy.stream(f"confirm {self._bookie_id}"))
        # The channel uses the connection before this task first runs.
        while self._channel.is_on(transport):
            await sleep(self._host.clock, pause.next_s())
            try:
                found = await self._registry.resolve(self._bookie_id)
            except (TriplicateError, OSError):
                continue  # The address is still unknown.
            self._unconfirmed = None
            moved = found.rpc_address != location.info.rpc_address
            self._host.trace("client.address_confirmed", bookie=self._bookie_id, moved=moved)
            if moved and self._channel.is_on(transport):
                transport.abort()
            return

    def _fail(self, why: str, transport: asyncio.Transport | None, location: Location | None = None) -> None:
        if location is not None and location.registered is False:
            self._registry.forget(self._bookie_id)
        if transport is not None:
            transport.abort()
        self._is_connecting = False
        self.handshake = None
        self._last_error = why
        if self._channel.has_requests:  # Otherwise the connection was made early, and no request failed.
            self._retry_at = self._now() + self._backoff.next_s()
        self._host.trace("client.connect_failed", bookie=self._bookie_id, why=why)
        self._channel.connect_failed(bookie_unavailable(self._bookie_id, why))
