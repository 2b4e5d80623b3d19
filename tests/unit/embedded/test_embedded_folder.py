from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from triplicate.embedded.embedded_folder import EmbeddedFolder
from triplicate.errors import ConfigError, EnvironmentFault, FormatError
from triplicate.runtime.real_disk import RealDisk


def folder(path: Path) -> EmbeddedFolder:
    return EmbeddedFolder(RealDisk(), str(path))


def test_a_second_user_of_a_folder_is_refused_and_learns_of_the_first(tmp_path: Path) -> None:
    first = folder(tmp_path / "a")
    first.open()
    (tmp_path / "a" / "lock").write_text("4711\n")
    with pytest.raises(EnvironmentFault, match="in use by process 4711"):
        folder(tmp_path / "a").open()
    (tmp_path / "a" / "lock").write_text(f"{os.getpid()}\n")
    with pytest.raises(EnvironmentFault, match="in use by this process"):
        folder(tmp_path / "a").open()
    first.close()
    again = folder(tmp_path / "a")
    again.open()
    again.close()


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(ConfigError, match="not empty"):
        folder(tmp_path).open()
    assert os.listdir(tmp_path) == ["letter.txt"]


def test_a_folder_of_a_later_release_is_refused(tmp_path: Path) -> None:
    (tmp_path / "embedded.json").write_text('{"v": 2}')
    with pytest.raises(FormatError, match="of format 2"):
        folder(tmp_path).open()


def test_a_file_in_the_place_of_the_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    with pytest.raises(EnvironmentFault, match="cannot be used"):
        folder(tmp_path / "a").open()


def test_a_folder_of_a_local_cluster_is_recognised(tmp_path: Path) -> None:
    assert folder(tmp_path).up_cluster() is None
    members = [{"name": "bookie-1", "kind": "bookie", "port": 1, "metrics_port": 2}]
    (tmp_path / "cluster.json").write_text(json.dumps({"v": 1, "instance_id": "x", "members": members}))
    found = folder(tmp_path).up_cluster()
    assert found is not None
    assert (found.metadata_uri, found.client_file) == (f"sqlite://{tmp_path}/metadata.db", "")
    members.append({"name": "zookeeper", "kind": "zookeeper", "port": 2181, "metrics_port": 0})
    (tmp_path / "cluster.json").write_text(json.dumps({"v": 3, "instance_id": "x", "members": members}))
    secured = folder(tmp_path).up_cluster()
    assert secured is not None
    assert (secured.metadata_uri, secured.client_file) == ("zk://127.0.0.1:2181/ledgers", f"{tmp_path}/security/client.toml")
    (tmp_path / "cluster.json").write_text("{")
    with pytest.raises(FormatError, match="damaged"):
        folder(tmp_path).up_cluster()
