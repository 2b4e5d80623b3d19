"""A query gets the client that another query opened with other settings."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/spark/cluster/test_connections.py::test_queries_with_other_settings_have_another_client"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.blocking import BlockingClient
    from triplicate.spark.cluster import connections
    from triplicate.spark.core.given_options import ClientOptions

    opened = connections.client

    def broken(metadata_uri: str, options: ClientOptions = ()) -> BlockingClient:
        return next(iter(connections._process_connections.clients.values()), None) or opened(metadata_uri, options)

    patch(connections, "client", broken)
