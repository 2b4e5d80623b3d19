"""The port of a node for clients of Redis, as its settings say."""

from __future__ import annotations

from triplicate.config import NodeSettings, RespSettings
from triplicate.errors import EnvironmentFault
from triplicate.kv import KeyValueStores, RespLimits, RespSecurity, RespServer
from triplicate.runtime import Host, Metrics


def resp_limits(settings: NodeSettings) -> RespLimits:
    return RespLimits(
        settings.connections,
        login_s=settings.login_s,
        half_open=settings.half_open_connections,
        half_open_per_address=settings.half_open_per_address,
        failed_logins=settings.failed_logins,
        failed_login_s=settings.failed_login_s,
        client_stall_s=settings.client_stall_s,
    )


async def open_resp_server(
    host: Host, stores: KeyValueStores, node: NodeSettings, resp: RespSettings, security: RespSecurity, metrics: Metrics
) -> RespServer:
    """Listen for clients of Redis.

    Raises:
        EnvironmentFault: the port cannot be opened.
    """
    place = resp.host or node.host, resp.port
    try:
        return await RespServer.open(
            host, stores, place, default_store=resp.default_store, limits=resp_limits(node), security=security, metrics=metrics
        )
    except OSError as error:
        raise EnvironmentFault(f"{place[0]}:{place[1]} cannot be opened ({error.strerror}); choose another resp.port") from None
