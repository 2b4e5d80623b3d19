"""A stopped bookie on real disks, and the ways to break it."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import hashlib
import os
import re
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.source import ROOT
from triplicate.bookie import Bookie
from triplicate.bookie.core import file_header
from triplicate.bookie.core.file_header import FileIdentity, encode_file_header
from triplicate.cli.main import one_line
from triplicate.cli.server_commands.doctor_command import DoctorFinding, examine
from triplicate.cli.terminal.options import load_configuration
from triplicate.client import Client
from triplicate.config import BookieSettings, MetadataSettings, ProcessSettings, to_toml
from triplicate.errors import TriplicateError
from triplicate.metadata import open_cluster
from triplicate.runtime import real_host

NOBODY = 65534


MOVED_AWAY = (
    "if there is none, move all data of this bookie away, run `triplicate bookie format --config FILE --replace`, and let its peers copy "
    "the entries"
)


def known_lines() -> list[re.Pattern[str]]:
    """The lines of the page's blocks; what is in angle brackets may be anything."""
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    parts = [re.split(r"(<[^>]+>)", line) for line in lines]
    return [re.compile("".join(".*" if part.startswith("<") else re.escape(part) for part in line)) for line in parts]


KNOWN = known_lines()


class SetUp:
    """A bookie that ran, stored something and was stopped, on real disks under a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = folder / "bookie.toml"
        self.uri = f"sqlite://{folder}/metadata/metadata.db"
        self.journal = folder / "journal"
        self.ledgers = folder / "ledgers"
        (folder / "metadata").mkdir()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.settings = BookieSettings(
            bookie_id="bookie-1",
            port=port,
            journal_directories=(str(self.journal),),
            ledger_directories=(str(self.ledgers),),
            reserve_bytes=4096,
            journal_preallocate_bytes=64 * 1024,
        )
        self.write_config()
        asyncio.run(self._store())

    def write_config(self, **more: object) -> None:
        defaults = BookieSettings()
        names = [field.name for field in dataclasses.fields(BookieSettings)]
        table = {name: getattr(self.settings, name) for name in names if getattr(self.settings, name) != getattr(defaults, name)}
        self.config.write_text(to_toml({"bookie": {**table, **more}, "metadata": {"uri": self.uri}}), encoding="utf-8")

    async def _store(self) -> None:
        host = real_host("set-up")
        cluster = await open_cluster(self.uri, host, create=True)
        bookie = await Bookie.start(host, self.settings, cluster)
        async with Client(host, cluster) as client:
            for _ in range(2):
                async with await client.create(ensemble_size=1, write_quorum=1, ack_quorum=1) as writer:
                    await writer.append_many([b"x" * 100] * 10)
                await bookie.storage.flush()
        await bookie.stop()
        await cluster.aclose()

    def logs(self) -> list[Path]:
        return sorted((self.ledgers / "current").glob("*.entries"))

    def said(self) -> list[DoctorFinding]:
        return list(examine(str(self.config), {}))

    def wrong(self) -> list[str]:
        return [finding.text for finding in self.said() if finding.level == "wrong"]

    def start(self) -> str:
        """The line with which a start is refused."""
        with pytest.raises(TriplicateError) as raised:
            self.start_and_stop()
        return one_line(raised.value)

    def start_and_stop(self) -> None:
        async def body() -> None:
            host = real_host("start")
            configuration = load_configuration((BookieSettings, MetadataSettings, ProcessSettings), str(self.config), {})
            cluster = await open_cluster(self.uri, host)
            try:
                bookie = await Bookie.start(host, configuration.get(BookieSettings), cluster)
                await bookie.stop()
            finally:
                await cluster.aclose()

        asyncio.run(body())

    def picture(self) -> dict[str, str]:
        """Every file and directory of the bookie, with its content."""
        found: dict[str, str] = {}
        for top in (self.journal, self.ledgers):
            for path in [top, *top.rglob("*")]:
                if path.exists():
                    content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "directory"
                    found[str(path)] = f"{content} {path.stat().st_mtime_ns}"
        return found


@pytest.fixture
def setup() -> Iterator[SetUp]:
    # Not in pytest's own folder, which nobody but its owner may enter.
    folder = Path(tempfile.mkdtemp(prefix="triplicate-doctor-"))
    folder.chmod(0o755)
    try:
        yield SetUp(folder)
    finally:
        shutil.rmtree(folder)


@contextlib.contextmanager
def unprivileged(setup: SetUp) -> Iterator[None]:
    """As a user to whom permissions mean something."""
    if os.geteuid() != 0:
        yield
        return
    for path in [setup.folder / "metadata", *(setup.folder / "metadata").iterdir()]:
        path.chmod(0o777)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def read_only_directory(setup: SetUp) -> str:
    for top in (setup.journal, setup.ledgers):
        for path in [top, *top.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
    (setup.journal / "current").chmod(0o555)
    (setup.journal / "current" / "LOCK").chmod(0o444)
    return f"{setup.journal}: cannot be used (Permission denied): mount it, or make it writable for this user"


def missing_directory(setup: SetUp) -> str:
    setup.ledgers.rename(setup.folder / "elsewhere")
    return (
        f"{setup.ledgers}: it is not there, and bookie bookie-1 kept data in it, so it was wiped or is not mounted: mount the right disk; "
        "if the data is lost, run `triplicate bookie format --config FILE --replace`"
    )


def wiped_disk(setup: SetUp) -> str:
    shutil.rmtree(setup.journal / "current")
    (setup.journal / "current").mkdir()
    return (
        f"{setup.journal}: it has no VERSION file, and bookie bookie-1 kept data in it, so it was wiped or is not mounted: mount the right "
        "disk; if the data is lost, run `triplicate bookie format --config FILE --replace`"
    )


def foreign_cookie(setup: SetUp) -> str:
    setup.settings = dataclasses.replace(setup.settings, bookie_id="bookie-2")
    setup.write_config()
    return (
        f"{setup.journal}: its VERSION file says bookie id bookie-1, the settings say bookie-2: correct the setting, or use the right disk"
    )


def newer_journal(setup: SetUp) -> str:
    path = max((setup.journal / "current").glob("*.journal"))
    data = path.read_bytes()
    number = int(path.stem)
    instance_id = re.search(rb'"instance_id":"([^"]+)"', data)
    assert instance_id is not None
    identity = FileIdentity("bookie-1", instance_id[1].decode(), number, 1)
    known, file_header.FORMAT_VERSION = file_header.FORMAT_VERSION, 9
    try:
        header = encode_file_header(file_header.JOURNAL_MAGIC, identity)
    finally:
        file_header.FORMAT_VERSION = known
    path.write_bytes(header + data[len(header) :])
    return f"{path}: written in format 9, this release knows {known}: start the release that wrote it, or a newer one"


def without_a_mark(setup: SetUp) -> str:
    path = setup.journal / "current" / "mark"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    return f"{path}: the journal mark fails its checksum: delete the file, and everything that the journal still holds is replayed"


def foreign_log(setup: SetUp) -> str:
    data = setup.logs()[0].read_bytes()
    instance_id = re.search(rb'"instance_id":"([^"]+)"', data)
    assert instance_id is not None
    path = setup.ledgers / "current" / "0000000000000099.entries"
    path.write_bytes(encode_file_header(file_header.ENTRY_LOG_MAGIC, FileIdentity("bookie-2", instance_id[1].decode(), 99, 1)))
    cluster = instance_id[1].decode()
    return (
        f"{path}: an entry log of bookie bookie-2 in cluster {cluster}, not of bookie-1 in {cluster}: move the file to the bookie that "
        "wrote it, or give this bookie the directory that is its own"
    )


def renamed_log(setup: SetUp) -> str:
    path = setup.ledgers / "current" / "0000000000000099.entries"
    path.write_bytes(setup.logs()[0].read_bytes())
    return f"{path}: the file says that it is number 1: it was renamed; give it its name back"
