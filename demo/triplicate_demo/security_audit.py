"""The proof of a demonstration with ``--secure``: nobody gets in without credentials, and no secret is where others may read it."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil
import psycopg
from psycopg.conninfo import make_conninfo

from triplicate.cli import ClusterFolder
from triplicate.client import Client, connect
from triplicate.errors import BookieError
from triplicate.log import read_keys
from triplicate.security import read_secret_file
from triplicate_demo.demo_logs import demo_logs

REFUSALS = re.compile("UNAUTHORIZED|authenticat|TLS only")
"""In the errors of bookies and nodes that refuse a client; other errors prove nothing."""
SECRET_CHARACTERS_MIN = 20


async def open_bookies(metadata_uri: str, bookies: Sequence[str]) -> list[str]:
    """Complaints about bookies that do not refuse a client without TLS and without a user."""
    complaints = []
    async with connect(metadata_uri) as intruder:
        for bookie_id in bookies:
            try:
                await intruder.bookie_info(bookie_id)
            except BookieError as error:
                refusal = str(error)
            else:
                refusal = "it answered"
            complaints += _complaints(bookie_id, refusal)
    return complaints


def open_nodes(dsn: str, ports: Sequence[int]) -> list[str]:
    """Complaints about database nodes that let a client in: without TLS, or by a wrong password.

    Args:
        dsn: of the administrator. ports: of the nodes, each of which is tried.
    """
    complaints = []
    for port in ports:
        one: dict[str, str | int | None] = {"host": "127.0.0.1", "port": port, "target_session_attrs": "any"}
        for how, options in (
            ("in clear", {"sslmode": "disable", "channel_binding": "prefer"}),
            ("by a wrong password", {"password": "wrong"}),
        ):
            try:
                psycopg.connect(make_conninfo(dsn, **one, **options), connect_timeout=3).close()
            except psycopg.OperationalError as error:
                refusal = str(error)
            else:
                refusal = "it let a client in"
            complaints += _complaints(f"the node at port {port}, {how}", refusal)
    return complaints


def _complaints(door: str, refusal: str) -> list[str]:
    return [] if REFUSALS.search(refusal) else [f"{door}: {' '.join(refusal.split())}"]


async def plain_logs(client: Client, names: Sequence[str], key_id: str) -> list[str]:
    """Complaints about logs that are not encrypted under this key."""
    logs = demo_logs(client)
    heads = {name: await logs.head(name) for name in names}
    return [
        f"log {name} has the key {head.key_id!r}, not {key_id!r}" for name, head in heads.items() if not key_id or head.key_id != key_id
    ]


def secrets_of(cluster: ClusterFolder, keys_file: str) -> dict[str, str]:
    """Every secret of a secured cluster, by its place: passwords, what bookies keep of them, private keys, keys of logs.

    Raises:
        ConfigError: a file cannot be read, or others may read it.
    """
    folder = cluster.security.path
    found = {path.name: read_secret_file(str(path), "--dir") for path in sorted(folder.glob("*.password"))}
    for path in sorted(folder.glob("*.key")):
        # The first line names the format. The second is random in its greater part.
        found[path.name] = path.read_text(encoding="utf-8").splitlines()[1]
    users = (folder / "bookie-users.toml").read_text(encoding="utf-8")
    found |= {f"bookie-users.toml {place}": value for place, value in enumerate(re.findall(r'= "([^"]{20,})"', users))}
    found |= {f"the key {key_id} of logs": base64.b64encode(key).decode() for key_id, key in read_keys(keys_file).items()}
    return found


def shown_secrets(secrets: Mapping[str, str], files: Sequence[Path]) -> list[str]:
    """Complaints about secrets in files, as logs, and on the command lines of this process's descendants. They do not repeat the secret."""
    shown = {str(path): path.read_text(encoding="utf-8", errors="replace") for path in files}
    for process in psutil.Process().children(recursive=True):
        try:
            shown[f"the command line of process {process.pid}"] = " ".join(process.cmdline())
        except psutil.Error:
            continue  # It ended after it was listed.
    short = [f"{name} is too short to be a secret" for name, secret in secrets.items() if len(secret) < SECRET_CHARACTERS_MIN]
    return short + [f"{name} is in {place}" for place, text in shown.items() for name, secret in secrets.items() if secret in text]
