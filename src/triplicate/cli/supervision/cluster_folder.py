"""The folder of a local cluster: its processes, their ports, and their files.

DIR/cluster.json        processes and ports, fixed at the first start
DIR/processes.json      ids of the running processes; removed at an orderly end
DIR/metadata.db         the cluster's metadata, or
DIR/zookeeper/          zoo.cfg, data/, zookeeper.log of the ZooKeeper that holds it
DIR/lock                held by the `triplicate up` that runs this folder
DIR/bookie-1/           bookie.toml, journal/, ledgers/, log
DIR/security/           certificates, users and passwords of a secured cluster; see `secured_folder`
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import random
import socket
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from triplicate.cli.supervision.secured_folder import METADATA_USER, SecuredFolder, Tables
from triplicate.cli.supervision.zookeeper_process import configuration, secure_configuration
from triplicate.cli.supervision.zookeeper_security import ZooKeeperSecurity, write_secure_files
from triplicate.config import (
    CONFIG_VARIABLE,
    METADATA_VARIABLE,
    MetadataSettings,
    SecuritySettings,
    load,
    settings_of_environment,
    to_toml,
    variable_of,
)
from triplicate.errors import ConfigError, EnvironmentFault, FormatError, WrongCluster
from triplicate.metadata import DEFAULT_ROOT, METADATA_FILE

VERSION = 1
ZOOKEEPER_VERSION = 2
"""Version of a folder with its metadata in ZooKeeper. Releases that do not know it must not use another store."""
SECURED_VERSION = 3
"""Version of a secured folder, with either store. Releases that do not know it must not start its processes without protection."""

STORES = ("sqlite", "zk")
ZOOKEEPER = "zookeeper"
"""Name and kind of the process that holds the metadata."""
SECURITY = "security"
"""Folder of a secured cluster with its certificates, users and passwords, and the settings of its clients."""
CLIENT_FILE = f"{SECURITY}/client.toml"
"""Settings of client commands, in the folder of a secured cluster."""
_METADATA_ACCESS = ("tls", "user", "password_file", "mechanism", "acl")
"""Settings of section ``metadata`` by which a process is admitted to ZooKeeper."""
HOST = "127.0.0.1"
# Below Linux's range for the ports of outgoing connections, so that a port is still free at the next start.
PORTS = range(20_000, 32_000)


@dataclass(frozen=True)
class ClusterMember:
    """One process of the cluster."""

    name: str
    kind: str
    """``bookie``, ``node`` or ``zookeeper``: the command that runs it."""
    port: int
    metrics_port: int


@dataclass(frozen=True)
class ClusterFolder:
    """The content of `cluster.json`."""

    path: Path
    instance_id: str
    """The cluster's INSTANCEID; empty until the metadata is created."""
    members: tuple[ClusterMember, ...]
    is_secured: bool = False
    """Whether every door of the cluster is protected. It is chosen with the folder."""
    serves_resp: bool = False
    """Whether the nodes serve clients of Redis, as the last `triplicate up` that said so has it."""

    @property
    def security(self) -> SecuredFolder:
        """The files that secure the cluster."""
        return SecuredFolder(self.path / SECURITY)

    @property
    def zookeeper(self) -> ClusterMember | None:
        """The process that holds the metadata, or None if the metadata is in a file."""
        return next((member for member in self.members if member.kind == ZOOKEEPER), None)

    @property
    def store(self) -> str:
        """One of `STORES`."""
        return "sqlite" if self.zookeeper is None else "zk"

    @property
    def metadata_path(self) -> Path:
        """The file or folder with the metadata."""
        return self.path / (METADATA_FILE if self.zookeeper is None else f"{ZOOKEEPER}/data")

    @property
    def metadata_uri(self) -> str:
        server = self.zookeeper
        return f"sqlite://{self.metadata_path}" if server is None else f"zk://{HOST}:{server.port}{DEFAULT_ROOT}"

    def member(self, name: str) -> ClusterMember:
        """The process with this name.

        Raises:
            ConfigError: there is no such process.
        """
        for member in self.members:
            if member.name == name:
                return member
        raise ConfigError(f"{self.path} has no process {name}; it has {', '.join(member.name for member in self.members)}")

    def folder_of(self, member: ClusterMember) -> Path:
        return self.path / member.name

    def config_of(self, member: ClusterMember) -> Path:
        return self.folder_of(member) / ("zoo.cfg" if member.kind == ZOOKEEPER else f"{member.kind}.toml")

    def log_of(self, member: ClusterMember) -> Path:
        return self.folder_of(member) / "log"

    def save(self) -> None:
        """Replace `cluster.json` atomically."""
        members = [asdict(member) for member in self.members]
        content: dict[str, object] = {"v": VERSION, "instance_id": self.instance_id, "members": members}
        if self.zookeeper is not None:
            content |= {"v": ZOOKEEPER_VERSION, "metadata": self.metadata_uri}
        if self.is_secured:
            content |= {"v": SECURED_VERSION}
        if self.serves_resp:
            content |= {"resp": True}  # Earlier releases ignore it.
        write_json(self.path / "cluster.json", content)

    def write_configs(self) -> None:
        """Write the settings file of each process that has none. Existing files are kept, with the user's changes.

        Raises:
            ConfigError: the cluster is secured, and a file of its security cannot be used.
        """
        if self.is_secured:
            self.security.complete(member.name for member in self.members)
            self.security.write_client_file(self.metadata_uri)
        new = [member for member in self.members if not self.config_of(member).exists()]
        taken = [port for member in self.members for port in (member.port, member.metrics_port)]
        resp_ports = free_ports(sum(member.kind == "node" for member in new), taken=taken)
        for member in new:
            self.folder_of(member).mkdir(parents=True, exist_ok=True)
            if member.kind == ZOOKEEPER:
                self.config_of(member).write_text(self._zookeeper_configuration(member), encoding="utf-8")
            else:
                comment = f"Settings of {member.name}; see docs/reference/settings.md."
                self.config_of(member).write_text(to_toml(self._tables(member, resp_ports), comment=comment), encoding="utf-8")

    def _zookeeper_configuration(self, member: ClusterMember) -> str:
        if not self.is_secured:
            return configuration(self.metadata_path, member.port)
        return secure_configuration(self.metadata_path, member.port, self.write_zookeeper_security(member))

    def write_zookeeper_security(self, member: ClusterMember) -> Mapping[str, object]:
        """Write the files of a secured ZooKeeper from its certificate and password; returns their settings."""
        identity = load((SecuritySettings,), flags=_flags("security", self.security.certificate_settings(member.name)))
        users = {METADATA_USER: self.security.password(METADATA_USER)}
        return write_secure_files(self.folder_of(member), ZooKeeperSecurity(identity.get(SecuritySettings), users))

    def client_settings(self) -> tuple[MetadataSettings, SecuritySettings]:
        """How `up` itself reaches the metadata."""
        if not self.is_secured:
            return MetadataSettings(uri=self.metadata_uri), SecuritySettings()
        environment = {CONFIG_VARIABLE: str(self.security.client_file)}
        return settings_of_environment(MetadataSettings, environment), settings_of_environment(SecuritySettings, environment)

    def check_configs(self) -> None:
        """Check that no process is configured with another metadata store, as after a move of the cluster.

        Raises:
            ConfigError: a process has another store, or its file is not TOML.
        """
        for member in self.members:
            if member.kind == ZOOKEEPER:
                continue
            path = self.config_of(member)
            try:
                uri = tomllib.loads(path.read_text(encoding="utf-8")).get("metadata", {}).get("uri", self.metadata_uri)
            except tomllib.TOMLDecodeError as error:
                raise ConfigError(f"{path} is no TOML: {error}") from None
            if uri != self.metadata_uri:
                raise ConfigError(
                    f"{path} names the metadata {uri}, and this folder's is {self.metadata_uri}: if the cluster was moved, start its "
                    f"processes with `triplicate {member.kind} --config`; if not, correct the file"
                )

    def _tables(self, member: ClusterMember, resp_ports: Iterator[int]) -> dict[str, dict[str, object]]:
        """Settings of a bookie or node. A node has a port for clients of Redis, which is not opened without `resp.serve`."""
        folder = self.folder_of(member)
        own: dict[str, object]
        if member.kind == "bookie":
            own = {
                "bookie_id": member.name,
                "host": HOST,
                "port": member.port,
                "journal_directories": (str(folder / "journal"),),
                "ledger_directories": (str(folder / "ledgers"),),
            }
        else:
            own = {"node_id": member.name, "host": HOST, "port": member.port, "directory": str(folder / "data")}
        tables: dict[str, dict[str, object]] = {
            member.kind: own,
            "metadata": {"uri": self.metadata_uri},
            "process": {"metrics_port": member.metrics_port},
        }
        if member.kind == "bookie":
            tables["autorecovery"] = {"in_bookie": True}
        else:
            tables["resp"] = {"port": next(resp_ports)}
        return merged(tables, self.security_tables(member)) if self.is_secured else tables

    def environment_of_processes(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The given variables without settings that `up` decides for a process: they may be of another cluster."""
        decided = {name for member in self.members for name in self._decided(member)}
        kept = {name: value for name, value in environment.items() if name not in decided}
        return {**kept, variable_of("resp", "serve"): "true"} if self.serves_resp else kept

    def overruled(self, environment: Mapping[str, str]) -> list[str]:
        """The given variables that say something else than what `up` decides for a process, in order of their names."""
        decided = [self._decided(member) for member in self.members]
        return sorted({name for of in decided for name in of if name in environment and environment[name] != str(of[name])})

    def _decided(self, member: ClusterMember) -> dict[str, object]:
        """The variables of what makes a process the one that it is in this cluster, and how it reaches the others, with the settings of
        this folder (None for none). A variable otherwise overrides the file that has the setting.

        The switch of auto-recovery is not among them: it can be turned off for one run.
        """
        if member.kind == ZOOKEEPER:
            return {METADATA_VARIABLE: self.metadata_uri}
        access = {**self.security.tables(member.name, "", ""), "metadata": dict.fromkeys(_METADATA_ACCESS)}
        unset = {section: dict.fromkeys(table) for section, table in access.items()}
        tables = merged(unset, self._tables(member, iter((0,))))
        tables.pop("autorecovery", None)
        found = {variable_of(section, name): value for section, table in tables.items() for name, value in table.items()}
        return {**found, METADATA_VARIABLE: self.metadata_uri}

    def security_tables(self, member: ClusterMember) -> Tables:
        """The settings that protect a bookie or node: its door, and its connections to others."""
        is_bookie = member.kind == "bookie"
        door = self.security.bookie_door() if is_bookie else self.security.node_door(self.folder_of(member))
        others = self.security.tables(member.name, "autorecovery" if is_bookie else "node", self.metadata_uri)
        return {member.kind: door, **others} if is_bookie else {member.kind: door, "resp": self.security.resp_door(), **others}


def merged(tables: Mapping[str, Mapping[str, object]], more: Mapping[str, Mapping[str, object]]) -> Tables:
    """Settings of which `more` overrides those in `tables`, section by section."""
    return {section: {**tables.get(section, {}), **more.get(section, {})} for section in dict.fromkeys([*tables, *more])}


def _flags(section: str, table: Mapping[str, object]) -> dict[str, object]:
    return {f"{section}.{name}": value for name, value in table.items()}


def open_folder(
    path: Path,
    *,
    bookies: int | None,
    nodes: int | None,
    metadata: str | None = None,
    secure: bool = False,
    resp: bool | None = None,
) -> ClusterFolder:
    """Read the folder, or create a new one. Additional processes are added.

    Args:
        bookies: number of bookies; None for the present number, or `DEFAULT_BOOKIES` in a new folder.
        nodes: number of database nodes, likewise.
        metadata: one of `STORES`; None for the folder's store, or ``sqlite`` in a new folder.
        secure: whether a new folder is secured. One that exists must be, then.
        resp: whether the nodes serve clients of Redis; None for what the folder has, or no in a new one.

    Raises:
        ConfigError: the path is not a cluster folder, fewer processes are requested than exist, the metadata is in the other store, or
            it exists and is not secured.
        FormatError: `cluster.json` was written by an incompatible release.
    """
    path = path.absolute()
    known = read_folder(path)
    if known is None:
        refuse_foreign(path)
        known = ClusterFolder(path, "", (), secure)
    elif secure and not known.is_secured:
        raise ConfigError(
            f"{path} holds a cluster that is not secured: name a new --dir, or secure this one with `triplicate security convert {path}`; "
            "see docs/security.md"
        )
    members = list(known.members)
    if not members and metadata == "zk":
        members.append(ClusterMember(ZOOKEEPER, ZOOKEEPER, 0, 0))
    elif members and metadata is not None and metadata != known.store:
        raise ConfigError(
            f"{path} keeps its metadata in {known.metadata_uri}: leave --metadata out, name a new --dir, "
            "or move the cluster to a ZooKeeper of your own with `triplicate cluster copy-metadata`"
        )
    for kind, wanted, default in (("bookie", bookies, DEFAULT_BOOKIES), ("node", nodes, DEFAULT_NODES)):
        present = [member for member in members if member.kind == kind]
        count = wanted if wanted is not None else len(present) if known.members else default
        if count < len(present):
            raise ConfigError(
                f"{path} has {len(present)} {kind}s with data in them, {count} were asked for; leave the number out, or name a new --dir"
            )
        members += [ClusterMember(f"{kind}-{number}", kind, 0, 0) for number in range(len(present) + 1, count + 1)]
    serves_resp = known.serves_resp if resp is None else resp
    if tuple(members) == known.members and serves_resp == known.serves_resp:
        return known
    taken = [port for member in members for port in (member.port, member.metrics_port)]
    ports = free_ports(2 * sum(member.port == 0 for member in members), taken=taken)
    complete = tuple(one if one.port else _with_ports(one, ports) for one in members)
    folder = replace(known, members=complete, serves_resp=serves_resp)
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.save()
    return folder


def _with_ports(member: ClusterMember, ports: Iterator[int]) -> ClusterMember:
    # The jars for ZooKeeper's metrics are not available.
    return replace(member, port=next(ports), metrics_port=0 if member.kind == ZOOKEEPER else next(ports))


def refuse_foreign(path: Path) -> None:
    """Check that the folder is empty or holds a cluster, before anything is written there.

    Raises:
        ConfigError: it holds other files.
    """
    if path.exists() and not path.is_dir():
        raise ConfigError(f"{path} is a file; choose another --dir")
    if path.exists() and not (path / "cluster.json").exists() and any(name != "lock" for name in os.listdir(path)):
        raise ConfigError(f"{path} is not empty and holds no cluster; choose another --dir")


DEFAULT_BOOKIES = 4
"""One more than a ledger needs by default, so that ledgers can be created while one bookie is down."""
DEFAULT_NODES = 3


def read_folder(path: Path) -> ClusterFolder | None:
    """The content of `cluster.json`, or None if the file does not exist.

    Raises:
        FormatError: the file is damaged, or was written by an incompatible release.
    """
    path = path.absolute()
    try:
        text = (path / "cluster.json").read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        content = json.loads(text)
        version = content["v"]
        if version in (VERSION, ZOOKEEPER_VERSION, SECURED_VERSION):
            members = tuple(ClusterMember(**member) for member in content["members"])
            return ClusterFolder(path, content["instance_id"], members, version == SECURED_VERSION, bool(content.get("resp")))
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"{path / 'cluster.json'} is damaged ({error}); restore it, or start a new cluster in another --dir") from None
    raise FormatError(f"{path / 'cluster.json'} is of version {version}, this release knows {VERSION} to {SECURED_VERSION}")


def check_instance(folder: ClusterFolder, found: str) -> None:
    """Check that the metadata is the one the folder was created with.

    Raises:
        WrongCluster: it belongs to another cluster.
    """
    if folder.instance_id and folder.instance_id != found:
        raise WrongCluster(
            f"{folder.path} belongs to cluster {folder.instance_id}, but {folder.metadata_path} to {found}; "
            "put the right one back, or name a new --dir"
        )


def free_ports(count: int, *, taken: Iterable[int]) -> Iterator[int]:
    """`count` different loopback ports that are free now.

    Raises:
        EnvironmentFault: too few ports are free.
    """
    used = set(taken)
    found: list[int] = []
    for port in random.sample(PORTS, len(PORTS)):
        if len(found) == count:
            break
        if port in used:
            continue
        with socket.socket() as probe:
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
        found.append(port)
    if len(found) < count:
        raise EnvironmentFault(f"fewer than {count} free ports between {PORTS.start} and {PORTS.stop} on {HOST}; stop some servers")
    return iter(found)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock the folder for one `triplicate up`.

    Raises:
        ConfigError: another process holds the lock. The message names it.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(path / "lock", "a+", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            holder = lock.read().strip() or "unknown"
            raise ConfigError(f"{path} is run by another triplicate (process {holder}); stop that one, or name another --dir") from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def write_json(path: Path, content: object) -> None:
    """Replace a file atomically. The change is durable when this returns."""
    temporary = path.with_name(path.name + ".new")
    with open(temporary, "w", encoding="utf-8") as stream:
        json.dump(content, stream, indent=1, sort_keys=True)
        stream.write("\n")
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(temporary, path)
