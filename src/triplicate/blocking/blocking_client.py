"""The blocking client of a cluster, with methods for ledgers. It creates the objects for logs and databases."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from triplicate.blocking.background_loop import BackgroundLoop, OpenOnLoop
from triplicate.blocking.ledger_facade import ClientMethods
from triplicate.client import connect as connect_async

if TYPE_CHECKING:
    from triplicate.blocking.database_facade import BlockingDatabases
    from triplicate.blocking.log_facade import BlockingLogs
    from triplicate.blocking.store_facade import BlockingStores
    from triplicate.client import Authenticator, Client, ClientSettings, ConnectionAuthenticator
    from triplicate.config import MetadataSettings, SecuritySettings
    from triplicate.log import LogClientSettings
    from triplicate.runtime import Metrics


class BlockingClient(OpenOnLoop, ClientMethods):
    """`Client` without `await`. Create it with `connect`.

    It has a `BackgroundLoop`, which all objects that it creates use.
    """

    def __init__(
        self,
        uri: str,
        settings: ClientSettings | None = None,
        metrics: Metrics | None = None,
        authenticate: Authenticator | ConnectionAuthenticator | None = None,
        security: SecuritySettings | None = None,
        metadata: MetadataSettings | None = None,
    ) -> None:
        begin = partial(connect_async, uri, settings=settings, metrics=metrics, authenticate=authenticate)
        loop = BackgroundLoop()
        super().__init__(loop, self._open(loop, partial(begin, security=security, metadata=metadata)))

    @property
    def client(self) -> Client:
        """The async client, for coroutines that run with ``loop.call``."""
        return self._client

    def logs(self, settings: LogClientSettings | None = None) -> BlockingLogs:
        """The logs of the cluster. See `Logs`.

        Args:
            settings: how this process writes and reads logs; None for the defaults.
        """
        from triplicate.blocking.log_facade import BlockingLogs
        from triplicate.log import Logs

        return BlockingLogs(self.loop, Logs(self._client, settings))

    def databases(self) -> BlockingDatabases:
        """The SQL databases of the cluster: create, list, rename, drop and undelete. Statements are sent by PostgreSQL's protocol."""
        from triplicate.blocking.database_facade import BlockingDatabases

        return BlockingDatabases(self.loop, self._client)

    def stores(self) -> BlockingStores:
        """The key-value stores of the cluster: create, list and drop. `key_value` opens one in this process."""
        from triplicate.blocking.store_facade import BlockingStores

        return BlockingStores(self.loop, self._client)


def connect(
    uri: str,
    *,
    settings: ClientSettings | None = None,
    metrics: Metrics | None = None,
    authenticate: Authenticator | ConnectionAuthenticator | None = None,
    security: SecuritySettings | None = None,
    metadata: MetadataSettings | None = None,
) -> BlockingClient:
    """``with triplicate.blocking.connect("sqlite:///…/metadata.db") as client:`` Arguments and errors as for `triplicate.connect`."""
    return BlockingClient(uri, settings, metrics, authenticate, security, metadata)
