"""Runs the work of a command with a client of the cluster."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from triplicate.cli.process.serving import run_loop
from triplicate.cli.terminal.options import client_settings, cluster_uri
from triplicate.client import Client, connect
from triplicate.config import ClientSettings, MetadataSettings, SecuritySettings


def client_of(uri: str, *, name: str = "client") -> connect:
    """A client of the cluster, with the settings of client commands: a context manager, see `connect`.

    Raises:
        ConfigError: a setting is wrong.
    """
    return connect(
        uri,
        settings=client_settings(ClientSettings),
        name=name,
        security=client_settings(SecuritySettings),
        metadata=client_settings(MetadataSettings),
    )


def run_with_client(metadata: str | None, work: Callable[[Client], Awaitable[None]], *, name: str = "client") -> None:
    """Run a function with a client of the cluster, until it returns.

    Args:
        metadata: the option of the command; None for the cluster in the default folder.
        name: of the client, for traces and locks.

    Raises:
        ConfigError: no cluster is given, or its URI is wrong. All errors of `connect` and of the function.
    """
    uri = cluster_uri(metadata)

    async def body() -> None:
        async with client_of(uri, name=name) as client:
            await work(client)

    run_loop(body())
