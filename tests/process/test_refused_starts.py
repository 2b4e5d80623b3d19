"""Commands on broken set-ups: they print one line that docs/operations.md explains, and change neither disk nor metadata."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import errno
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.process.running import TIMEOUT_S, command, environment
from tests.unit.cli.doctor_rig import (
    KNOWN,
    NOBODY,
    SetUp,
    foreign_cookie,
    missing_directory,
    newer_journal,
    read_only_directory,
    setup,
    unprivileged,
    wiped_disk,
    without_a_mark,
)
from triplicate.bookie.storage.index import Index
from triplicate.cli.main import cli
from triplicate.metadata import Tree, open_tree
from triplicate.runtime import real_host
from triplicate.runtime.real_disk import RealDisk, RealFile

__all__ = ["setup"]


def unknown_setting(setup: SetUp) -> str:
    setup.write_config(journal_directory="x")
    return f"unknown setting bookie.journal_directory (file {setup.config}); did you mean bookie.journal_directories?"


def value_out_of_bounds(setup: SetUp) -> str:
    setup.write_config(gc_interval_s=0.001)
    return f"bookie.gc_interval_s = 0.001 (file {setup.config}): at least 0.05 seconds is allowed (from 0.05 to 604800)"


def nothing_chosen(setup: SetUp) -> str:
    """An empty file, as a wrong path or a failed template leaves it."""
    setup.config.write_text(f"[metadata]\nuri = '{setup.uri}'\n")
    text = "is not set, and a server does not choose it by itself: put it into the --config file, or into the variable"
    return f"bookie.bookie_id {text} TRIPLICATE_BOOKIE_BOOKIE_ID"


def no_directories(setup: SetUp) -> str:
    setup.config.write_text(f"[metadata]\nuri = '{setup.uri}'\n[bookie]\nbookie_id = 'bookie-9'\n")
    text = "is not set, and a server does not choose it by itself: put it into the --config file, or into the variable"
    return f"bookie.journal_directories {text} TRIPLICATE_BOOKIE_JOURNAL_DIRECTORIES"


def no_cluster(setup: SetUp) -> str:
    setup.uri = f"sqlite://{setup.folder}/nowhere/metadata.db"
    setup.write_config()
    return f"metadata file {setup.folder}/nowhere/metadata.db: its directory does not exist; create it, or correct the address"


def one_directory_more(setup: SetUp) -> str:
    directories = (str(setup.ledgers), str(setup.folder / "more"))
    setup.settings = dataclasses.replace(setup.settings, ledger_directories=directories)
    setup.write_config()
    return (
        f"the metadata's cookie of bookie bookie-1 says ledger directories {setup.ledgers}, the settings say {','.join(directories)}: "
        "correct the setting, or use the right disk"
    )


GIVEN_UP = "bring the file back; if it is lost, move the rest of the data away and run `triplicate bookie format --config FILE --replace`"

RESTORED = "restore the file, or replace this bookie's disks and let its peers copy the entries back"


def lost_log(setup: SetUp) -> str:
    setup.logs()[0].unlink()
    index = setup.ledgers / "current" / "index.db"
    return f"{index}: the index names entry log 1, which is in none of the ledger directories: {GIVEN_UP}"


def shortened_log(setup: SetUp) -> str:
    path = setup.logs()[0]
    index = Index(RealDisk(), str(setup.ledgers / "current" / "index.db"), 1 << 20)
    known = index.log_sizes()[1]
    index.close()
    # Only a footer may follow, and a missing footer is rebuilt.
    os.truncate(path, known - 1)
    return f"{path}: it has {known - 1} bytes, and the index knows that {known} were written: {GIVEN_UP}"


def all_in_the_journal(setup: SetUp) -> Path:
    """Without the mark the whole journal is replayed."""
    (setup.journal / "current" / "mark").unlink()
    return min((setup.journal / "current").glob("*.journal"))


def damaged_group(setup: SetUp) -> str:
    path = all_in_the_journal(setup)
    data = bytearray(path.read_bytes())
    assert data[4096:4100] == data[8192:8196] == b"TPJG"
    data[4096 + 40] ^= 1
    path.write_bytes(data)
    return (
        f"{path}: the group at byte 4096 is damaged, but group 2 at byte 8192 behind it is whole: this is no torn write; nothing was "
        f"changed; {RESTORED}"
    )


def damaged_header(setup: SetUp) -> str:
    path = all_in_the_journal(setup)
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)
    return f"{path}: the file header fails its checksum: {RESTORED}"


BREAKS = [
    read_only_directory,
    missing_directory,
    wiped_disk,
    foreign_cookie,
    newer_journal,
    without_a_mark,
    unknown_setting,
    value_out_of_bounds,
    nothing_chosen,
    no_directories,
    no_cluster,
    one_directory_more,
    lost_log,
    shortened_log,
    damaged_group,
    damaged_header,
]


AS_NOBODY = f"""
import os, sys, uvloop
from triplicate.cli.process import autorecovery_process
from triplicate.cli.server_commands import bookie_command
from triplicate.cli.main import main
os.seteuid({NOBODY})
main(sys.argv[1:])
"""
"""Modules imported before root's permissions are dropped, since other users cannot read root's home."""


def start(setup: SetUp, *, as_nobody: bool) -> subprocess.CompletedProcess[str]:
    """Run a bookie on the set-up's configuration, optionally as an unprivileged user, whom file permissions restrict."""
    arguments = ["bookie", "--config", str(setup.config)]
    return subprocess.run(
        [sys.executable, "-c", AS_NOBODY, *arguments] if as_nobody and os.geteuid() == 0 else command(*arguments),
        env=environment(TRIPLICATE_PROCESS_LOG_LEVEL="warning"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def metadata(uri: str) -> dict[str, bytes]:
    """Every node of the cluster's metadata with its data."""

    async def walk(tree: Tree, path: str, found: dict[str, bytes]) -> None:
        found[path], _ = await tree.get(path)
        names, _ = await tree.children(path)
        for name in names:
            await walk(tree, f"{path.rstrip('/')}/{name}", found)

    async def body() -> dict[str, bytes]:
        tree = await open_tree(uri, real_host("looks"))
        found: dict[str, bytes] = {}
        try:
            await walk(tree, "/", found)
        finally:
            await tree.close()
        return found

    return asyncio.run(body())


def check(setup: SetUp, expected: str, uri: str, *, as_nobody: bool = False) -> None:
    """Both commands print this line, which docs/operations.md explains, and neither changes anything."""
    before, nodes, names = setup.picture(), metadata(uri), sorted(path.name for path in setup.folder.iterdir())
    with unprivileged(setup) if as_nobody else contextlib.nullcontext():
        doctor = CliRunner().invoke(cli, ["doctor", "--config", str(setup.config)])
    wrong = [line for line in doctor.output.splitlines() if not line.startswith("remark: ")]
    assert (doctor.exit_code, wrong[0]) == (1, f"wrong: {expected}")
    assert wrong[-1].startswith(f"{len(wrong) - 1} wrong, ")
    refused = start(setup, as_nobody=as_nobody)
    assert (refused.returncode, refused.stdout, refused.stderr) == (1, "", f"triplicate: {expected}\n")
    assert setup.picture() == before
    assert metadata(uri) == nodes
    assert sorted(path.name for path in setup.folder.iterdir()) == names
    assert any(line.fullmatch(expected) for line in KNOWN), "the page for operators has it"


@pytest.mark.parametrize("damage", BREAKS, ids=lambda damage: damage.__name__)
def test_a_broken_set_up_gets_one_line_from_start_and_doctor_and_nothing_changes(setup: SetUp, damage: Callable[[SetUp], str]) -> None:
    uri = setup.uri
    check(setup, damage(setup), uri, as_nobody=damage is read_only_directory)


@contextlib.contextmanager
def listening(port: int) -> Iterator[None]:
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", port))
        other.listen()
        yield


def test_a_port_in_use_gets_one_line_from_start_and_doctor_and_nothing_changes(setup: SetUp) -> None:
    port = setup.settings.port
    with listening(port):
        check(
            setup,
            f"port {port} of 127.0.0.1 cannot be used (Address already in use): stop the process that has it, or choose another",
            setup.uri,
        )


def test_a_port_in_use_keeps_a_new_bookie_from_making_its_directories(setup: SetUp) -> None:
    port = setup.settings.port
    directories = [setup.folder / "new" / kind for kind in ("journal", "ledgers")]
    setup.settings = dataclasses.replace(
        setup.settings, bookie_id="bookie-2", journal_directories=(str(directories[0]),), ledger_directories=(str(directories[1]),)
    )
    setup.write_config()
    with listening(port):
        check(
            setup,
            f"port {port} of 127.0.0.1 cannot be used (Address already in use): stop the process that has it, or choose another",
            setup.uri,
        )


def test_a_start_on_a_full_disk_names_the_file_that_needs_space(setup: SetUp, monkeypatch: pytest.MonkeyPatch) -> None:
    index = setup.ledgers / "current" / "index.db"
    for path in index.parent.glob("index.db*"):
        path.unlink()
    before = setup.picture()

    def refuse(file: RealFile, *_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device", file.path)

    with monkeypatch.context() as patch:
        patch.setattr(RealFile, "pwrite", refuse)
        refused = setup.start()
    assert refused == f"{index}-commits: the disk is full (No space left on device): free some space, and start it again"
    assert any(line.fullmatch(refused) for line in KNOWN), "the page for operators has it"
    assert {path: content for path, content in setup.picture().items() if path in before and "directory" not in content} == {
        path: content for path, content in before.items() if "directory" not in content
    }
    assert setup.wrong() == [], "with room again a start rebuilds the index"
