"""Runs the work of a command with a client of the cluster."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from triplicate.cli.process.serving import run_loop
from triplicate.cli.terminal.options import client_settings, cluster_uri, folder_of
from triplicate.client import Client, connect
from triplicate.config import ClientSettings, MetadataSettings, SecuritySettings
from triplicate.config.log_settings import LogClientSettings
from triplicate.errors import BookieUnavailable, MetadataError, NotEnoughBookies, ReadFailed

if TYPE_CHECKING:
    from triplicate.log import Logs


def client_of(uri: str, *, name: str | None = None) -> connect:
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


def run_with_client(metadata: str | None, work: Callable[[Client], Awaitable[None]], *, name: str | None = None) -> None:
    """Run a function with a client of the cluster, until it returns.

    Args:
        metadata: the option of the command; None for the cluster in the default folder.
        name: of the client, for traces and locks; None for that of this machine and process.

    Raises:
        ConfigError: no cluster is given, or its URI is wrong. All errors of `connect` and of the function.
    """
    uri = cluster_uri(metadata)

    async def body() -> None:
        async with client_of(uri, name=name) as client:
            try:
                await work(client)
            except (BookieUnavailable, NotEnoughBookies, ReadFailed) as error:
                try:
                    registered = await client.metadata.bookies.registered_ids()
                except MetadataError:
                    raise error from None
                if registered:
                    raise
                start = f"start `triplicate up --dir {folder_of(uri)}`, or its servers"
                raise type(error)(f"no bookie of the cluster at {uri} runs: {start}") from error

    run_loop(body())


def run_with_logs(metadata: str | None, work: Callable[[Logs], Awaitable[None]]) -> None:
    """Run a function with the logs of the cluster; see `run_with_client`."""
    # Imported here because commands that need no log do not wait for its modules.
    from triplicate.log import Logs

    run_with_client(metadata, lambda client: work(Logs(client, client_settings(LogClientSettings))))
