"""A client on the real clock, network and disk of this machine."""

from __future__ import annotations

import os
from contextlib import AsyncExitStack
from dataclasses import replace
from types import TracebackType

from triplicate.client.client import Client
from triplicate.client.connection.authentication import Authenticator, ConnectionAuthenticator
from triplicate.config import ClientSettings, MetadataSettings, SecuritySettings
from triplicate.metadata import MetadataAccess, open_cluster
from triplicate.runtime import Metrics, real_host
from triplicate.security import gaps_of_client, refuse_gaps


class connect:
    """``async with connect("sqlite:///…/metadata.db") as client:`` opens a cluster and closes everything at the end.

    Args:
        uri: location of the cluster's metadata.
        settings: None for the defaults.
        metrics: the registry for the client's metrics; None for none.
        name: of this client, for traces, locks and other writers; None for that of this machine and process.
        authenticate: authenticates the client to bookies, in place of `client.user`; None for the settings.
        security: certificates of this process, and the authority that it trusts; None for none.
        metadata: how this process authenticates to ZooKeeper; None for no authentication and no TLS. Its `uri` has no effect.

    Raises (on entering):
        ConfigError: the scheme of `uri` is unknown, a setting or a file that it names cannot be used, or `security.required` is set and
        a connection is not protected.
        AccessRefused: ZooKeeper refuses this process, or this process its certificate. EnvironmentFault or UsageError: there is no
        cluster; the message says what to do.
    """

    def __init__(
        self,
        uri: str,
        *,
        settings: ClientSettings | None = None,
        metrics: Metrics | None = None,
        name: str | None = None,
        authenticate: Authenticator | ConnectionAuthenticator | None = None,
        security: SecuritySettings | None = None,
        metadata: MetadataSettings | None = None,
    ) -> None:
        self._uri = uri
        self._settings = settings if settings is not None else ClientSettings()
        self._metrics = metrics
        self._name = name if name is not None else f"{os.uname().nodename}:{os.getpid()}"
        self._authenticate = authenticate
        self._security = security if security is not None else SecuritySettings()
        self._access_settings = metadata if metadata is not None else MetadataSettings()
        self._stack: AsyncExitStack | None = None

    async def __aenter__(self) -> Client:
        async with AsyncExitStack() as stack:
            host = real_host(self._name)
            metadata_settings, plugin = replace(self._access_settings, uri=self._uri), self._authenticate is not None
            gaps = gaps_of_client(metadata_settings, self._settings, self._security, has_authenticator=plugin)
            refuse_gaps(self._security, gaps)
            access = MetadataAccess.of(self._access_settings, self._security, host)
            metadata = await open_cluster(self._uri, host, access=access)
            stack.push_async_callback(metadata.aclose)
            opened = Client(host, metadata, self._settings, self._metrics, self._authenticate, self._security)
            client = await stack.enter_async_context(opened)
            self._stack = stack.pop_all()
        return client

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        stack, self._stack = self._stack, None
        assert stack is not None, "connect is left without having been entered"
        await stack.aclose()
