"""Credentials and ACLs in the form that kazoo and ZooKeeper expect.

A closed node has one entry with all permissions, the user's. BookKeeper's `CREATOR_ALL_ACL` names every identity of the creator's
connection; with TLS that includes the certificate of one process, which would then open the node without a password.

Source: ZooKeeper Programmer's Guide (access control); BookKeeper `ZkUtils.getACLs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kazoo.security import ACL, OPEN_ACL_UNSAFE, Id, Permissions, make_digest_acl_credential

from triplicate.metadata.drivers.metadata_access import MetadataAccess


def sasl_options(user: str, password: str) -> dict[str, Any]:
    """Service and host are fixed in ZooKeeper's servers for this mechanism."""
    return {"mechanism": "DIGEST-MD5", "service": "zookeeper", "username": user, "password": password}


def digest_credentials(user: str, passwords: Sequence[str]) -> set[tuple[str, str]]:
    """Each password is an identity of its own; the session has all of them."""
    return {("digest", f"{user}:{password}") for password in passwords}


def acl_of(access: MetadataAccess, password: str) -> list[ACL]:
    """The ACL of the nodes that a process creates."""
    user = access.settings.user
    if not access.closes_nodes:
        return list(OPEN_ACL_UNSAFE)
    if access.settings.mechanism == "sasl":
        return [ACL(Permissions.ALL, Id("sasl", user))]
    return [ACL(Permissions.ALL, Id("digest", make_digest_acl_credential(user, password)))]


def is_open(acl: Sequence[ACL]) -> bool:
    """Whether everyone has a permission on a node."""
    return any(entry.id.scheme == "world" and entry.perms for entry in acl)
