"""The conversion of a stopped local cluster that is open into a secured one."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

from triplicate.cli.supervision.cluster_folder import ZOOKEEPER, ClusterFolder, ClusterMember, locked, merged, read_folder
from triplicate.cli.supervision.local_processes import wait_for_orphans
from triplicate.config import to_toml
from triplicate.errors import ConfigError
from triplicate.security import write_private

FORMER = ".open"
"""Ending of a settings file from before the conversion."""


def convert_folder(path: Path) -> ClusterFolder:
    """Secure a folder whose `triplicate up` does not run. Data stay as they are, and settings are kept where security does not set them.

    A conversion that was interrupted is repeated: the folder counts as secured from its last step on.

    Raises:
        ConfigError: it holds no cluster, is run by `triplicate up`, is secured already, or a settings file cannot be read.
    """
    path = path.absolute()
    if read_folder(path) is None:
        raise ConfigError(f"{path} holds no cluster; make a secured one with `triplicate up --secure --dir {path}`")
    with locked(path):
        wait_for_orphans(path)
        folder = read_folder(path)
        assert folder is not None
        if folder.is_secured:
            raise ConfigError(f"{path} is secured already")
        secured = replace(folder, is_secured=True)
        secured.security.complete(member.name for member in secured.members)
        for member in secured.members:
            _convert_settings(secured, member)
        secured.write_configs()
        secured.save()
        return secured


def _convert_settings(secured: ClusterFolder, member: ClusterMember) -> None:
    path = secured.config_of(member)
    former = path.with_name(path.name + FORMER)
    if not path.exists():
        return
    if not former.exists():
        write_private(str(former), path.read_bytes())
    if member.kind == ZOOKEEPER:
        path.unlink()  # Written again by `write_configs`, with other ports and files.
        return
    try:
        tables = tomllib.loads(former.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{former} is no TOML: {error}") from None
    comment = f"Settings of {member.name}; those from before it was secured are in {former.name}."
    write_private(str(path), to_toml(merged(tables, secured.security_tables(member)), comment=comment).encode())
