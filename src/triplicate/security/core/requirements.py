"""The gaps of a process that is to be secure: each door that it opens and each connection that it makes must be protected. Pure.

`security.required` lets a process start only if nothing is missing. There is no order and no first gap: all are named at once, each by the
setting that closes it.
"""

from __future__ import annotations

from collections.abc import Iterator

from triplicate.config import (
    AutorecoverySettings,
    BookieSettings,
    ClientSettings,
    MetadataSettings,
    NodeSettings,
    ProcessSettings,
    RespSettings,
    SecuritySettings,
)
from triplicate.errors import ConfigError
from triplicate.security.core.page_protection import page_gaps

REQUIRED = "required"


def identity_gaps(security: SecuritySettings, *, is_server: bool) -> Iterator[str]:
    """Certificates that the process needs."""
    if not security.ca_file:
        yield "security.ca_file is not set: no certificate can be verified"
    if is_server and not security.certificate_file:
        yield "security.certificate_file is not set: a server proves itself by it"
    if is_server and not security.key_file:
        yield "security.key_file is not set: it belongs to the certificate"
    if not security.verify_host:
        yield "security.verify_host is off: any holder of a certificate could pose as any server"


def bookie_gaps(bookie: BookieSettings) -> Iterator[str]:
    """The gaps of a bookie's door."""
    if bookie.tls != REQUIRED:
        yield f"bookie.tls is {bookie.tls}: clients may connect in clear"
    if bookie.authentication == "none":
        yield "bookie.authentication is none: everybody may do everything"
    if bookie.authentication in ("sasl", "either") and not bookie.users_file:
        yield "bookie.users_file is not set: nobody could log in"
    if bookie.authentication in ("certificate", "either") and bookie.client_certificates == "none":
        yield "bookie.client_certificates is none: nobody could show one"


def node_gaps(node: NodeSettings) -> Iterator[str]:
    """The gaps of a node's door."""
    if node.tls != REQUIRED:
        yield f"node.tls is {node.tls}: clients may connect in clear"
    if node.authentication != "scram":
        yield f"node.authentication is {node.authentication}: every client may do everything"


def resp_gaps(resp: RespSettings) -> Iterator[str]:
    """The gaps of a node's door for clients of Redis, beside those of the node."""
    if resp.serve and not resp.users_file:
        yield "resp.users_file is not set: nobody could log in to the key-value stores"


def client_gaps(client: ClientSettings, security: SecuritySettings, *, has_authenticator: bool = False) -> Iterator[str]:
    """The gaps of connections to bookies.

    Args:
        has_authenticator: whether the program authenticates them by code of its own.
    """
    if client.bookie_tls != REQUIRED:
        yield f"client.bookie_tls is {client.bookie_tls}: entries are sent in clear"
    if has_authenticator:
        return
    if client.user:
        if not client.password_file:
            yield "client.password_file is not set: the user cannot log in at bookies"
    elif not security.certificate_file:
        yield "client.user is not set, and security.certificate_file neither: bookies would not know who connects"


def metadata_gaps(metadata: MetadataSettings) -> Iterator[str]:
    """The gaps of the connection to ZooKeeper. An embedded store is a file, protected by its mode."""
    if not metadata.uri.startswith(("zk:", "zk+")):
        return
    if not metadata.tls:
        yield "metadata.tls is off: ZooKeeper is spoken to in clear"
    if not metadata.user or not metadata.password_file:
        yield "metadata.user and metadata.password_file are not both set: everybody may change what this process creates"
    if metadata.acl != "creator":
        yield f"metadata.acl is {metadata.acl}: everybody may change what this process creates"


def gaps_of_bookie(
    bookie: BookieSettings,
    autorecovery: AutorecoverySettings,
    metadata: MetadataSettings,
    client: ClientSettings,
    process: ProcessSettings,
    security: SecuritySettings,
) -> Iterator[str]:
    """The gaps of a process that runs a bookie. It is a client of other bookies if it runs auto-recovery."""
    yield from identity_gaps(security, is_server=True)
    yield from bookie_gaps(bookie)
    if autorecovery.in_bookie:
        yield from client_gaps(client, security)
    yield from metadata_gaps(metadata)
    yield from page_gaps(process, security)


def gaps_of_node(
    node: NodeSettings, metadata: MetadataSettings, client: ClientSettings, process: ProcessSettings, security: SecuritySettings
) -> Iterator[str]:
    """The gaps of a process that runs a database node."""
    yield from identity_gaps(security, is_server=True)
    yield from node_gaps(node)
    yield from client_gaps(client, security)
    yield from metadata_gaps(metadata)
    yield from page_gaps(process, security)


def gaps_of_embedded_node(node: NodeSettings, security: SecuritySettings) -> Iterator[str]:
    """The gaps of a database node whose whole cluster is in its process, and which listens for PostgreSQL's clients."""
    yield from identity_gaps(security, is_server=True)
    yield from node_gaps(node)


def gaps_of_autorecovery(
    metadata: MetadataSettings, client: ClientSettings, process: ProcessSettings, security: SecuritySettings
) -> Iterator[str]:
    """The gaps of a process that only runs auto-recovery."""
    yield from identity_gaps(security, is_server=False)
    yield from client_gaps(client, security)
    yield from metadata_gaps(metadata)
    yield from page_gaps(process, security)


def gaps_of_client(
    metadata: MetadataSettings, client: ClientSettings, security: SecuritySettings, *, has_authenticator: bool = False
) -> Iterator[str]:
    """The gaps of a program that is a client of bookies; see `client_gaps`."""
    yield from gaps_of_metadata_client(metadata, security)
    yield from client_gaps(client, security, has_authenticator=has_authenticator)


def gaps_of_metadata_client(metadata: MetadataSettings, security: SecuritySettings) -> Iterator[str]:
    """The gaps of a command that uses the metadata alone."""
    yield from identity_gaps(security, is_server=False)
    yield from metadata_gaps(metadata)


def refuse_gaps(security: SecuritySettings, gaps: Iterator[str]) -> None:
    """Refuse to go on if security is required and anything is missing.

    Raises:
        ConfigError: with everything that is missing.
    """
    missing = list(gaps) if security.required else []
    if missing:
        raise ConfigError(f"security.required is set, and this process is not secure: {'; '.join(missing)}")
