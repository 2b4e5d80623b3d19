"""The folder of a local cluster keeps its processes and ports, and is refused with a reason when it cannot be what it claims."""

from __future__ import annotations

import dataclasses
import json
import socket
from pathlib import Path

import pytest

from triplicate.cli.server_commands.bookie_command import SECTIONS
from triplicate.cli.supervision.cluster_folder import (
    DEFAULT_BOOKIES,
    HOST,
    PORTS,
    ClusterFolder,
    check_instance,
    free_ports,
    locked,
    open_folder,
    read_folder,
)
from triplicate.cli.supervision.zookeeper_process import read_configuration
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
from triplicate.errors import ConfigError, FormatError, WrongCluster


def test_a_new_folder_gets_bookies_with_ports_of_their_own(tmp_path: Path) -> None:
    folder = open_folder(tmp_path / "c", bookies=None, nodes=0)
    assert [member.name for member in folder.members] == [f"bookie-{number}" for number in range(1, DEFAULT_BOOKIES + 1)]
    ports = [port for member in folder.members for port in (member.port, member.metrics_port)]
    assert len(set(ports)) == len(ports)
    assert all(port in PORTS for port in ports)


def test_a_later_start_finds_the_same_ports(tmp_path: Path) -> None:
    first = open_folder(tmp_path, bookies=3, nodes=0)
    assert open_folder(tmp_path, bookies=None, nodes=None) == first
    assert open_folder(tmp_path, bookies=3, nodes=None) == first


def test_bookies_can_be_added_but_not_left_out(tmp_path: Path) -> None:
    first = open_folder(tmp_path, bookies=3, nodes=0)
    more = open_folder(tmp_path, bookies=4, nodes=None)
    assert more.members[:3] == first.members
    assert more.members[3].name == "bookie-4"
    with pytest.raises(ConfigError, match="has 4 bookies with data in them, 2 were asked for"):
        open_folder(tmp_path, bookies=2, nodes=None)


def test_a_folder_of_other_things_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ConfigError, match="holds no cluster; choose another --dir"):
        open_folder(tmp_path, bookies=None, nodes=None)
    with pytest.raises(ConfigError, match="is a file; choose another --dir"):
        open_folder(tmp_path / "thesis.txt", bookies=None, nodes=None)


@pytest.mark.parametrize("text", ["{", "[]", '{"v": 1}', '{"v": 1, "instance_id": "", "members": [{"nme": "x"}]}'])
def test_a_damaged_description_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "cluster.json").write_text(text)
    with pytest.raises(FormatError, match="is damaged"):
        read_folder(tmp_path)


def test_a_description_of_another_release_is_refused(tmp_path: Path) -> None:
    open_folder(tmp_path, bookies=1, nodes=0)
    content = json.loads((tmp_path / "cluster.json").read_text())
    (tmp_path / "cluster.json").write_text(json.dumps({**content, "v": 9}))
    with pytest.raises(FormatError, match="is of version 9, this release knows 1"):
        read_folder(tmp_path)


def test_the_metadata_of_another_cluster_is_refused(tmp_path: Path) -> None:
    folder = ClusterFolder(tmp_path, "here", ())
    check_instance(folder, "here")
    check_instance(ClusterFolder(tmp_path, "", ()), "anywhere")
    with pytest.raises(WrongCluster, match=r"belongs to cluster here, but .*metadata\.db to there"):
        check_instance(folder, "there")


def test_a_port_in_use_is_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as holder:
        holder.bind((HOST, 0))
        used = holder.getsockname()[1]
        monkeypatch.setattr("triplicate.cli.supervision.cluster_folder.PORTS", range(used, used + 20))
        assert used not in list(free_ports(3, taken=[used + 1]))


def test_the_settings_of_a_bookie_are_those_of_its_place_and_stay_as_changed(tmp_path: Path) -> None:
    folder = dataclasses.replace(open_folder(tmp_path, bookies=1, nodes=0), instance_id="i")
    folder.write_configs()
    (member,) = folder.members
    config = folder.config_of(member)
    loaded = load(SECTIONS, file=str(config), environment={})
    settings = loaded.get(BookieSettings)
    assert (settings.bookie_id, settings.host, settings.port) == ("bookie-1", HOST, member.port)
    assert settings.journal_directories == (str(tmp_path / "bookie-1" / "journal"),)
    assert loaded.get(MetadataSettings).uri == f"sqlite://{tmp_path}/metadata.db"
    assert loaded.get(ProcessSettings).metrics_port == member.metrics_port
    assert loaded.get(AutorecoverySettings).in_bookie
    config.write_text(config.read_text() + "# changed\n")
    folder.write_configs()
    assert config.read_text().endswith("# changed\n")


def test_each_node_keeps_a_port_of_its_own_for_clients_of_redis(tmp_path: Path) -> None:
    def ports(folder: ClusterFolder) -> list[int]:
        files = [folder.config_of(member) for member in folder.members if member.kind == "node"]
        return [load(tuple(all_sections().values()), file=str(file), environment={}).get(RespSettings).port for file in files]

    folder = open_folder(tmp_path, bookies=1, nodes=2)
    folder.write_configs()
    first = ports(folder)
    longer = open_folder(tmp_path, bookies=1, nodes=3)
    longer.write_configs()
    assert ports(longer)[:2] == first
    used = [port for member in longer.members for port in (member.port, member.metrics_port)] + ports(longer)
    assert 0 not in used
    assert len(set(used)) == len(used)


def test_a_folder_that_serves_clients_of_redis_does_so_until_it_is_forbidden(tmp_path: Path) -> None:
    path = tmp_path / "c"
    assert open_folder(path, bookies=1, nodes=1).serves_resp is False
    assert open_folder(path, bookies=None, nodes=None, resp=True).serves_resp is True
    for folder in (open_folder(path, bookies=None, nodes=None), open_folder(path, bookies=2, nodes=2), read_folder(path)):
        assert folder is not None
        assert folder.serves_resp is True
    assert open_folder(path, bookies=None, nodes=None, resp=False).serves_resp is False
    assert open_folder(path, bookies=None, nodes=None).serves_resp is False
    assert "resp" not in json.loads((path / "cluster.json").read_text())


def test_a_folder_is_run_by_one_at_a_time(tmp_path: Path) -> None:
    with (
        locked(tmp_path / "c"),
        pytest.raises(ConfigError, match=r"run by another triplicate \(process [0-9]+\); stop that one"),
        locked(tmp_path / "c"),
    ):
        pass
    with locked(tmp_path / "c"):
        pass


def test_a_folder_with_zookeeper_says_so_to_every_later_start_and_to_earlier_releases(tmp_path: Path) -> None:
    first = open_folder(tmp_path / "c", bookies=2, nodes=1, metadata="zk")
    assert [member.name for member in first.members] == ["zookeeper", "bookie-1", "bookie-2", "node-1"]
    assert first.metadata_uri == f"zk://{HOST}:{first.members[0].port}/ledgers"
    content = json.loads((tmp_path / "c" / "cluster.json").read_text())
    assert (content["v"], content["metadata"]) == (2, first.metadata_uri)
    assert read_folder(tmp_path / "c") == first
    for metadata in (None, "zk"):
        assert open_folder(tmp_path / "c", bookies=None, nodes=None, metadata=metadata) == first
    with pytest.raises(ConfigError, match="keeps its metadata in zk://"):
        open_folder(tmp_path / "c", bookies=None, nodes=None, metadata="sqlite")
    first.write_configs()
    settings = read_configuration(tmp_path / "c" / "zookeeper" / "zoo.cfg")
    assert settings["clientPort"] == str(first.members[0].port)
    assert settings["dataDir"] == str(first.metadata_path) == str(tmp_path / "c" / "zookeeper" / "data")
    bookie = load(SECTIONS, file=str(first.config_of(first.member("bookie-1"))), environment={})
    assert bookie.get(MetadataSettings).uri == first.metadata_uri


def test_a_folder_with_a_file_stays_readable_by_earlier_releases(tmp_path: Path) -> None:
    folder = open_folder(tmp_path / "c", bookies=1, nodes=0, metadata="sqlite")
    content = json.loads((tmp_path / "c" / "cluster.json").read_text())
    assert (content["v"], sorted(content)) == (1, ["instance_id", "members", "v"])
    assert folder.metadata_uri == f"sqlite://{tmp_path}/c/metadata.db"
    with pytest.raises(ConfigError, match="copy-metadata"):
        open_folder(tmp_path / "c", bookies=None, nodes=None, metadata="zk")


@pytest.mark.parametrize("text", ["", "clientPort=2181\n", "dataDir=/x\nclientPort=many\n"])
def test_a_zoo_cfg_that_says_too_little_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "zoo.cfg").write_text(text)
    with pytest.raises(ConfigError, match="names no dataDir, or neither clientPort nor secureClientPort"):
        read_configuration(tmp_path / "zoo.cfg")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_configuration(tmp_path / "nowhere.cfg")


OTHER_CLUSTER = {
    "TRIPLICATE_METADATA": "zk://other:2181/ledgers",
    "TRIPLICATE_METADATA_URI": "zk://other:2181/ledgers",
    "TRIPLICATE_METADATA_USER": "other",
    "TRIPLICATE_METADATA_TLS": "true",
    "TRIPLICATE_CLIENT_USER": "other",
    "TRIPLICATE_CLIENT_BOOKIE_TLS": "off",
    "TRIPLICATE_SECURITY_CA_FILE": "/other/ca.pem",
    "TRIPLICATE_BOOKIE_BOOKIE_ID": "other",
    "TRIPLICATE_BOOKIE_PORT": "3181",
    "TRIPLICATE_BOOKIE_JOURNAL_DIRECTORIES": "/other/journal",
    "TRIPLICATE_NODE_NODE_ID": "other",
    "TRIPLICATE_NODE_DIRECTORY": "/other/data",
    "TRIPLICATE_RESP_PORT": "6379",
    "TRIPLICATE_PROCESS_METRICS_PORT": "9090",
}
TASTE = {
    "PATH": "/bin",
    "TRIPLICATE_AUTORECOVERY_IN_BOOKIE": "false",
    "TRIPLICATE_NODE_CONNECTIONS": "7",
    "TRIPLICATE_PROCESS_LOG_LEVEL": "debug",
}


@pytest.mark.parametrize("secure", [False, True])
def test_variables_of_another_cluster_do_not_reach_the_processes_of_this_one(tmp_path: Path, *, secure: bool) -> None:
    folder = open_folder(tmp_path, bookies=1, nodes=1, secure=secure)
    folder.write_configs()
    for member in folder.members:
        environment = folder.environment_of_processes(OTHER_CLUSTER | TASTE)
        assert environment.items() >= TASTE.items()
        file = str(folder.config_of(member))
        sections = tuple(all_sections().values())
        loaded, alone = load(sections, file=file, environment=environment), load(sections, file=file)
        for section in (MetadataSettings, SecuritySettings, ClientSettings, RespSettings):
            assert loaded.get(section) == alone.get(section)
        own = ("bookie_id", "port", "journal_directories") if member.kind == "bookie" else ("node_id", "directory", "port")
        settings: type = BookieSettings if member.kind == "bookie" else NodeSettings
        for name in own:
            assert getattr(loaded.get(settings), name) == getattr(alone.get(settings), name)
        assert loaded.get(ProcessSettings).metrics_port == member.metrics_port
        assert "TRIPLICATE_METADATA" not in environment
    assert folder.overruled(OTHER_CLUSTER | TASTE) == sorted(OTHER_CLUSTER)


def test_variables_that_name_this_cluster_are_not_reported(tmp_path: Path) -> None:
    folder = open_folder(tmp_path, bookies=1, nodes=1)
    assert folder.overruled(TASTE | {"TRIPLICATE_METADATA": folder.metadata_uri, "TRIPLICATE_METADATA_URI": folder.metadata_uri}) == []


def test_a_zookeeper_of_the_folder_gets_the_same_environment(tmp_path: Path) -> None:
    folder = open_folder(tmp_path, bookies=1, nodes=0, metadata="zk")
    given = {"TRIPLICATE_METADATA": "zk://other:2181/ledgers", "JAVA_HOME": "/java"}
    assert folder.environment_of_processes(given) == {"JAVA_HOME": "/java"}
    assert folder.overruled({"TRIPLICATE_METADATA": folder.metadata_uri}) == []
