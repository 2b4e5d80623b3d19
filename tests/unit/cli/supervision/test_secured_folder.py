"""The files of a secured local cluster: what is made, what is kept, and that nothing is left open."""

from __future__ import annotations

import json
import stat
import tomllib
from pathlib import Path

import pytest

from triplicate.cli.supervision.cluster_folder import ClusterFolder, locked, open_folder, read_folder
from triplicate.cli.supervision.folder_conversion import convert_folder
from triplicate.config import (
    AutorecoverySettings,
    BookieSettings,
    ClientSettings,
    MetadataSettings,
    NodeSettings,
    ProcessSettings,
    RespSettings,
    SecuritySettings,
    all_sections,
    load,
)
from triplicate.errors import ConfigError, FormatError
from triplicate.security import BookieRole, CertificateStore, gaps_of_bookie, gaps_of_client, gaps_of_node, read_users


def gaps(folder: ClusterFolder) -> list[str]:
    """The gaps of the processes and clients of a folder, by their files."""
    found: list[str] = []
    files = {member.name: folder.config_of(member) for member in folder.members if member.kind != "zookeeper"}
    for name, file in {**files, "client": folder.security.client_file}.items():
        one = load(tuple(all_sections().values()), file=str(file))
        metadata, client, process, security = (
            one.get(MetadataSettings),
            one.get(ClientSettings),
            one.get(ProcessSettings),
            one.get(SecuritySettings),
        )
        assert security.required, name
        if name.startswith("bookie"):
            found += gaps_of_bookie(one.get(BookieSettings), one.get(AutorecoverySettings), metadata, client, process, security)
        elif name.startswith("node"):
            found += gaps_of_node(one.get(NodeSettings), metadata, client, process, security)
        else:
            found += gaps_of_client(metadata, client, security)
    return found


@pytest.mark.parametrize("store", ["sqlite", "zk"])
def test_every_process_of_a_secured_folder_is_secure(tmp_path: Path, store: str) -> None:
    folder = open_folder(tmp_path / "c", bookies=2, nodes=1, metadata=store, secure=True)
    folder.write_configs()
    assert gaps(folder) == []
    assert read_folder(tmp_path / "c") == folder
    certificates = CertificateStore(str(tmp_path / "c" / "security"))
    assert set(certificates.names()) == {member.name for member in folder.members} | {"client"}
    users = read_users(str(tmp_path / "c" / "security" / "bookie-users.toml"), "bookie.users_file")
    assert {name: user.roles for name, user in users.items()} == {
        "autorecovery": (BookieRole.ADMIN,),
        "node": (BookieRole.READ, BookieRole.WRITE),
        "operator": (BookieRole.ADMIN,),
    }
    of_clients = read_users(str(tmp_path / "c" / "security" / "resp-users.toml"), "resp.users_file")
    assert {name: user.roles for name, user in of_clients.items()} == {"administrator": (BookieRole.ADMIN,)}
    node = load(tuple(all_sections().values()), file=str(folder.config_of(folder.member("node-1"))), environment={}).get(RespSettings)
    assert node.users_file == str(tmp_path / "c" / "security" / "resp-users.toml")
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "c" / "security").iterdir()}
    assert modes == {0o600}
    passwords = {path.read_text() for path in (tmp_path / "c" / "security").glob("*.password")}
    assert len(passwords) == 5
    assert min(map(len, passwords)) > 30


def test_a_process_that_is_added_gets_its_files_and_the_others_keep_theirs(tmp_path: Path) -> None:
    open_folder(tmp_path / "c", bookies=1, nodes=0, secure=True).write_configs()
    before = {path.name: path.read_bytes() for path in (tmp_path / "c" / "security").iterdir()}
    folder = open_folder(tmp_path / "c", bookies=2, nodes=1)
    assert folder.is_secured
    folder.write_configs()
    after = {path.name: path.read_bytes() for path in (tmp_path / "c" / "security").iterdir()}
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) == {"bookie-2.pem", "bookie-2.key", "node-1.pem", "node-1.key"}
    assert gaps(folder) == []


def test_an_open_folder_is_not_secured_by_the_flag(tmp_path: Path) -> None:
    open_folder(tmp_path / "c", bookies=1, nodes=0)
    with pytest.raises(ConfigError, match="security convert"):
        open_folder(tmp_path / "c", bookies=None, nodes=None, secure=True)
    folder = read_folder(tmp_path / "c")
    assert folder is not None
    assert not folder.is_secured


def test_a_release_that_does_not_know_secured_folders_refuses_them(tmp_path: Path) -> None:
    open_folder(tmp_path / "c", bookies=1, nodes=0, secure=True)
    path = tmp_path / "c" / "cluster.json"
    content = json.loads(path.read_text())
    assert content["v"] == 3
    path.write_text(json.dumps({**content, "v": 4}))
    with pytest.raises(FormatError, match="version 4"):
        read_folder(tmp_path / "c")


@pytest.mark.parametrize("store", ["sqlite", "zk"])
def test_a_stopped_folder_is_converted_and_keeps_what_a_user_has_set(tmp_path: Path, store: str) -> None:
    opened = open_folder(tmp_path / "c", bookies=1, nodes=1, metadata=store)
    opened.write_configs()
    settings = tmp_path / "c" / "bookie-1" / "bookie.toml"
    settings.write_text(settings.read_text() + "\n[log_client]\nlinger_s = 0.5\n")
    former = settings.read_text()
    converted = convert_folder(tmp_path / "c")
    assert read_folder(tmp_path / "c") == converted
    assert gaps(converted) == []
    tables = tomllib.loads(settings.read_text())
    assert tables["log_client"] == {"linger_s": 0.5}
    assert tables["bookie"]["port"] == tomllib.loads(former)["bookie"]["port"]
    assert settings.with_name("bookie.toml.open").read_text() == former
    if store == "zk":
        assert "secureClientPort=" in (tmp_path / "c" / "zookeeper" / "zoo.cfg").read_text()
    with pytest.raises(ConfigError, match="secured already"):
        convert_folder(tmp_path / "c")


def test_a_conversion_that_was_interrupted_is_repeated(tmp_path: Path) -> None:
    opened = open_folder(tmp_path / "c", bookies=1, nodes=0)
    opened.write_configs()
    before = (tmp_path / "c" / "cluster.json").read_bytes()
    former = (tmp_path / "c" / "bookie-1" / "bookie.toml").read_text()
    convert_folder(tmp_path / "c")
    # As if it had been killed before its last step.
    (tmp_path / "c" / "cluster.json").write_bytes(before)
    assert gaps(convert_folder(tmp_path / "c")) == []
    assert (tmp_path / "c" / "bookie-1" / "bookie.toml.open").read_text() == former


def test_a_folder_in_use_or_without_a_cluster_is_not_converted(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds no cluster"):
        convert_folder(tmp_path / "c")
    open_folder(tmp_path / "c", bookies=1, nodes=0)
    with locked(tmp_path / "c"), pytest.raises(ConfigError, match="is run by another triplicate"):
        convert_folder(tmp_path / "c")
