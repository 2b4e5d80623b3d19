"""A port in use is reported with the process that holds it."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest

from triplicate.cli.process.port_holders import PortHolder, holder_of
from triplicate.cli.supervision.cluster_folder import ClusterFolder, ClusterMember
from triplicate.cli.supervision.port_conflicts import port_conflict


@pytest.mark.parametrize(("address", "asked"), [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("::1", "::1"), ("::", "127.0.0.1")])
def test_the_process_that_listens_is_found(address: str, asked: str) -> None:
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as listening:
        listening.bind((address, 0))
        port = listening.getsockname()[1]
        assert holder_of(asked, port) is None, "bound and not listening"
        listening.listen()
        holder = holder_of(asked, port)
        assert holder is not None
        assert holder.pid == os.getpid()
        assert os.path.basename(sys.executable)[:6] in holder.command[0]
    assert holder_of(asked, port) is None


def folder_of(tmp_path: Path, text: str) -> ClusterFolder:
    folder = ClusterFolder(tmp_path, "id", (ClusterMember("node-1", "node", 1, 2),))
    (tmp_path / "node-1").mkdir(parents=True)
    (tmp_path / "node-1" / "node.toml").write_text(text)
    return folder


def test_a_port_of_another_program_is_reported_with_its_process_and_the_setting(tmp_path: Path) -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        port = listening.getsockname()[1]
        for table, key in (("[node]\nport", "node.port"), ("[process]\nmetrics_port", "process.metrics_port")):
            folder = folder_of(tmp_path / key, f"{table} = {port}\n")
            text = port_conflict(folder, folder.members[0])
            assert text is not None
            assert text.startswith(f"node-1 did not start: 127.0.0.1:{port} is held by process {os.getpid()} (")
            assert text.endswith(f"choose another {key} in {folder.path}/node-1/node.toml")


def test_free_ports_are_no_conflict(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "[node]\nport = 0\n")
    assert port_conflict(folder, folder.members[0]) is None


def test_a_command_line_names_its_file_also_relative_to_its_folder(tmp_path: Path) -> None:
    config = tmp_path / "node-1" / "node.toml"
    assert PortHolder(1, ("python", "-m", "triplicate", "node", "--config", str(config)), "/").runs(config)
    assert PortHolder(1, ("triplicate", "node", "--config", "node-1/node.toml"), str(tmp_path)).runs(config)
    assert not PortHolder(1, ("triplicate", "node", "--config", "node-2/node.toml"), str(tmp_path)).runs(config)
    assert not PortHolder(1, ("nc", "-l"), str(tmp_path)).runs(config)
    assert str(PortHolder(None, (), "")) == "a process of another user"
