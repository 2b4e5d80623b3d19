"""Broken set-ups: what the doctor says, that a start says the same, that the page for operators has it, and that no disk is changed."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import errno
import os
import resource
import shutil
import socket
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.certificates import DAY_S, CertificateFolder
from tests.unit.cli.doctor_rig import (
    KNOWN,
    MOVED_AWAY,
    SetUp,
    foreign_cookie,
    foreign_log,
    missing_directory,
    newer_journal,
    read_only_directory,
    renamed_log,
    setup,
    unprivileged,
    wiped_disk,
    without_a_mark,
)
from triplicate.bookie import Bookie
from triplicate.bookie.storage.index import Index
from triplicate.cli.main import cli, one_line
from triplicate.cli.server_commands import machine_checks
from triplicate.cli.server_commands.doctor_command import DoctorFinding, door_findings
from triplicate.cli.terminal.options import load_configuration
from triplicate.client import Client
from triplicate.config import BookieSettings, MetadataSettings, ProcessSettings, SecuritySettings
from triplicate.errors import TriplicateError
from triplicate.metadata import open_cluster
from triplicate.runtime import Buffer, real_host
from triplicate.runtime.real_disk import RealDisk, RealFile

__all__ = ["setup"]

ROOM_WANTED = "free some space, and start it again"


BREAKS = [read_only_directory, missing_directory, wiped_disk, foreign_cookie, newer_journal, without_a_mark, foreign_log, renamed_log]


@pytest.mark.parametrize("damage", BREAKS, ids=lambda damage: damage.__name__)
def test_the_doctor_says_what_a_start_says_and_neither_changes_a_disk(setup: SetUp, damage: Callable[[SetUp], str]) -> None:
    assert setup.wrong() == [], "well before"
    expected = damage(setup)
    before = setup.picture()
    with unprivileged(setup) if damage is read_only_directory else contextlib.nullcontext():
        assert setup.wrong()[0] == expected
        assert setup.picture() == before
        assert setup.start() == expected
    assert setup.picture() == before
    assert any(line.fullmatch(expected) for line in KNOWN), "the page for operators has it"


def test_a_directory_that_this_user_may_not_enter_is_not_called_wiped(setup: SetUp) -> None:
    setup.journal.chmod(0)
    with unprivileged(setup):
        wrong = setup.wrong()
    setup.journal.chmod(0o700)
    assert wrong[0] == f"{setup.journal}: cannot be used (Permission denied): mount it, or make it writable for this user"


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"journal_directory": "x"}, "unknown setting bookie.journal_directory (file {config}); did you mean bookie.journal_directories?"),
        ({"gc_interval_s": 0.001}, "bookie.gc_interval_s = 0.001 (file {config}): at least 0.05 seconds is allowed (from 0.05 to 604800)"),
        (
            {"flush_interval_s": "soon"},
            "bookie.flush_interval_s = 'soon' (file {config}): a number of seconds is expected, for example 200 ms",
        ),
    ],
)
def test_settings_are_refused_by_name(setup: SetUp, more: dict[str, Any], expected: str) -> None:
    setup.write_config(**more)
    expected = expected.format(config=setup.config)
    assert setup.wrong() == [expected]
    with pytest.raises(TriplicateError) as raised:
        load_configuration((BookieSettings, MetadataSettings, ProcessSettings), str(setup.config), {})
    assert one_line(raised.value) == expected
    assert any(line.fullmatch(expected) for line in KNOWN)


def test_a_port_in_use_is_found(setup: SetUp) -> None:
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", setup.settings.port))
        other.listen()
        expected = (
            f"port {setup.settings.port} of 127.0.0.1 cannot be used (Address already in use): "
            "stop the process that has it, or choose another"
        )
        before = setup.picture()
        assert setup.wrong() == [expected]
        assert setup.start() == expected
        assert setup.picture() == before
    assert any(line.fullmatch(expected) for line in KNOWN)
    assert setup.wrong() == []


def lose_a_log(setup: SetUp) -> str:
    setup.logs()[0].unlink()
    return "the index names entry log 1, which is in none of the ledger directories: bring the file back"


def cut_a_log(setup: SetUp) -> str:
    path = setup.logs()[0]
    data = path.read_bytes()
    path.write_bytes(data[:-700])
    return f"{path}: it has {len(data) - 700} bytes, and the index knows that "


def lose_rows(setup: SetUp) -> str:
    index = Index(RealDisk(), str(setup.ledgers / "current" / "index.db"), 1 << 20)
    index._change("DELETE FROM runs WHERE ledger = ?", [(index.ledger_ids()[0],)])
    index.close()
    return "the log holds them, and the index does not name them: stop the bookie and run `triplicate bookie rebuild-index`"


def another_log(setup: SetUp) -> str:
    index = Index(RealDisk(), str(setup.ledgers / "current" / "index.db"), 1 << 20)
    index._change("UPDATE runs SET offset = offset + ?", [(4,)])
    index.close()
    return "the log does not hold them: stop the bookie and run `triplicate bookie rebuild-index`"


@pytest.mark.parametrize("damage", [lose_a_log, cut_a_log, lose_rows, another_log], ids=lambda damage: damage.__name__)
def test_an_index_that_disagrees_with_the_logs_is_found(setup: SetUp, damage: Callable[[SetUp], str]) -> None:
    expected = damage(setup)
    before = setup.picture()
    said = setup.wrong()
    assert expected in said[0]
    assert all(any(line.fullmatch(text) for line in KNOWN) for text in said)
    assert setup.picture() == before


def damage_header(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)


def damage_footer(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-21] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("index", [True, False])
def test_an_entry_log_whose_header_alone_is_damaged_is_read(setup: SetUp, index: bool) -> None:
    path = setup.logs()[0]
    damage_header(path)
    for each in (setup.ledgers / "current").glob("none" if index else "index.db*"):
        each.unlink()
    before = setup.picture()
    said = setup.said()
    assert [finding for finding in said if finding.level == "wrong"] == []
    expected = f"{path}: the file header is damaged, and the rest is whole, so it is read: restore the file, if there is a copy"
    assert expected in [finding.text for finding in said]
    assert any(line.fullmatch(expected) for line in KNOWN)
    assert setup.picture() == before
    setup.start_and_stop()
    done = CliRunner().invoke(cli, ["bookie", "rebuild-index", "--config", str(setup.config), "--json"])
    assert '"ledgers": 2' in done.output, done.output
    assert setup.wrong() == []


@pytest.mark.parametrize("index", [True, False])
def test_an_entry_log_that_cannot_be_identified_is_refused_by_start_and_doctor(setup: SetUp, index: bool) -> None:
    path = setup.logs()[0]
    damage_header(path)
    damage_footer(path)
    for each in (setup.ledgers / "current").glob("none" if index else "index.db*"):
        each.unlink()
    before = setup.picture()
    what = "the file header is damaged, and the footer too, so the file cannot be identified: restore it"
    if not index:
        what = "damaged at byte 0, and the index that knew the rest is gone: restore the file"
    expected = f"{path}: {what} from a backup; {MOVED_AWAY}"
    assert setup.wrong() == [expected]
    assert any(line.fullmatch(expected) for line in KNOWN)
    assert setup.start() == expected
    if index:
        assert setup.picture() == before


def test_all_is_well_behind_compaction_and_deletions(setup: SetUp) -> None:
    async def body() -> None:
        host = real_host("compacts")
        cluster = await open_cluster(setup.uri, host)
        settings = dataclasses.replace(setup.settings, trash_period_s=0.0, entry_log_bytes=64 * 1024)
        bookie = await Bookie.start(host, settings, cluster)
        async with Client(host, cluster) as client:
            ledgers = []
            for _ in range(8):
                async with await client.create(ensemble_size=1, write_quorum=1, ack_quorum=1) as writer:
                    await writer.append_many([b"x" * 1000] * 30)
                    ledgers.append(writer.ledger_id)
                await bookie.storage.flush()
            for ledger_id in ledgers[::2]:
                await client.delete(ledger_id)
        assert await bookie.collect_garbage() == 4
        assert await bookie.compact(1.0) > 0
        await bookie.stop()
        await cluster.aclose()

    asyncio.run(body())
    assert setup.wrong() == []
    assert '"ledgers": 6' in CliRunner().invoke(cli, ["bookie", "status", "--config", str(setup.config), "--offline", "--json"]).output


def test_the_command_that_the_doctor_names_mends_the_index(setup: SetUp) -> None:
    lose_rows(setup)
    assert setup.wrong()
    done = CliRunner().invoke(cli, ["bookie", "rebuild-index", "--config", str(setup.config), "--json"])
    assert '"ledgers": 2' in done.output, done.output
    assert setup.wrong() == []


def test_a_lost_index_is_a_remark_and_not_made(setup: SetUp) -> None:
    for path in (setup.ledgers / "current").glob("index.db*"):
        path.unlink()
    before = setup.picture()
    said = setup.said()
    assert [finding for finding in said if finding.level == "wrong"] == []
    assert any("a start rebuilds the index" in finding.text for finding in said)
    assert setup.picture() == before


def test_a_running_bookie_is_left_alone(setup: SetUp) -> None:
    async def body() -> list[DoctorFinding]:
        host = real_host("runs")
        cluster = await open_cluster(setup.uri, host)
        bookie = await Bookie.start(host, setup.settings, cluster)
        try:
            return await asyncio.to_thread(setup.said)
        finally:
            await bookie.stop()
            await cluster.aclose()

    said = asyncio.run(body())
    assert [finding.text for finding in said if finding.level == "wrong"] == []
    assert any("a bookie runs on it, so its data and port were not checked" in finding.text for finding in said)


def test_the_exit_code_distinguishes_well_wrong_and_a_usage_error(setup: SetUp) -> None:
    runner = CliRunner()
    well = runner.invoke(cli, ["doctor", "--config", str(setup.config), "--json"])
    assert (well.exit_code, '"well": true' in well.output) == (0, True), well.output
    setup.write_config(no_such_key=1)
    wrong = runner.invoke(cli, ["doctor", "--config", str(setup.config)])
    assert wrong.exit_code == 1
    assert wrong.output.startswith("wrong: unknown setting bookie.no_such_key")
    assert runner.invoke(cli, ["doctor", "--config", str(setup.folder / "none.toml")]).exit_code == 2
    assert runner.invoke(cli, ["doctor", "--no-such-option"]).exit_code == 2


def test_status_shows_a_stopped_bookie_on_one_screen(setup: SetUp) -> None:
    runner = CliRunner()
    shown = runner.invoke(cli, ["bookie", "status", "--config", str(setup.config)])
    assert shown.exit_code == 0, shown.output
    assert len(shown.output.splitlines()) <= 40
    for words in ("registered", "no", "cookie of bookie-1, incarnation 1", "mark at file", "2 ledgers", "sum of the bounds"):
        assert words in shown.output
    before = setup.picture()
    facts = runner.invoke(cli, ["bookie", "status", "--config", str(setup.config), "--offline", "--json"])
    assert '"ledgers": 2' in facts.output
    assert setup.picture() == before
    lost = runner.invoke(cli, ["bookie", "status", "--bookie-id", "bookie-9", "--bookie-port", "9"])
    assert lost.exit_code == 1


def test_status_asks_a_running_bookie(setup: SetUp) -> None:
    async def body() -> str:
        host = real_host("runs")
        cluster = await open_cluster(setup.uri, host)
        bookie = await Bookie.start(host, setup.settings, cluster)
        try:
            shown = await asyncio.to_thread(
                CliRunner().invoke, cli, ["bookie", "status", "--bookie-id", "bookie-1", "--metadata", setup.uri, "--json"]
            )
            return shown.output
        finally:
            await bookie.stop()
            await cluster.aclose()

    output = asyncio.run(body())
    assert '"registered": "writable"' in output
    assert '"answers": "yes"' in output


def test_format_replaces_only_empty_directories_and_on_confirmation(setup: SetUp) -> None:
    runner = CliRunner()
    base = ["bookie", "format", "--config", str(setup.config)]
    assert runner.invoke(cli, base).exit_code == 2
    refused = runner.invoke(cli, [*base, "--replace", "--yes"])
    assert "it holds data" in one_line(refused.exception or RuntimeError())
    for directory in (setup.journal, setup.ledgers):
        shutil.rmtree(directory)
        directory.mkdir()
    assert runner.invoke(cli, [*base, "--replace"], input="n\n").exit_code == 1
    assert not list(setup.journal.iterdir())
    done = runner.invoke(cli, [*base, "--replace", "--yes", "--json"])
    assert '"incarnation": 2' in done.output
    said = setup.said()
    assert [finding.text for finding in said if finding.level == "wrong"] == []
    assert any("is in incarnation 2 and not visited" in finding.text for finding in said)
    assert '"changed": true' in runner.invoke(cli, [*base, "--visited", "--yes", "--json"]).output


@contextlib.contextmanager
def full_disks() -> Iterator[None]:
    """Disks on which no file can grow."""

    def pwrite(file: RealFile, buffers: Sequence[Buffer], offset: int) -> int:
        if offset + sum(map(len, buffers)) > file.size():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), file.path)
        return write(file, buffers, offset)

    def allocate(file: RealFile, offset: int, length: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), file.path)

    def free_space(disk: RealDisk, path: str) -> tuple[int, int]:
        return 0, 1 << 30

    write = RealFile.pwrite
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RealFile, "pwrite", pwrite)
        patch.setattr(RealFile, "allocate", allocate)
        patch.setattr(RealDisk, "free_space", free_space)
        patch.setattr(machine_checks, "PROBE", b"")
        yield


@pytest.mark.parametrize("index", [True, False])
def test_a_start_on_a_full_disk_goes_as_the_doctor_says(setup: SetUp, index: bool) -> None:
    for path in (setup.ledgers / "current").glob("none" if index else "index.db*"):
        path.unlink()
    for directory in (setup.journal, setup.ledgers):
        (directory / "current" / "RESERVE").unlink()
    before = setup.picture()
    with full_disks():
        wrong = setup.wrong()
        assert setup.picture() == before
        if index:
            assert wrong == []
            setup.start_and_stop()
        else:
            assert wrong == [f"{setup.ledgers}/current/index.db-commits: the disk is full (No space left on device): {ROOM_WANTED}"]
            assert setup.start() == wrong[0]
            assert any(line.fullmatch(wrong[0]) for line in KNOWN)


@pytest.mark.parametrize(("limits", "remarks"), [((100, 1_000_000), 0), ((100, 300), 1)])
def test_the_doctor_asks_for_open_files_that_a_server_cannot_take_by_itself(
    setup: SetUp, monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int], remarks: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    said = [str(each) for each in machine_checks.machine_findings(setup.settings) if "open files" in str(each)]
    assert len(said) == remarks
    assert all(text.startswith("the hard limit of open files is 300, and bookie.connections allows ") for text in said)


@pytest.mark.parametrize("starts", [True, False])
def test_the_doctor_says_that_a_bookie_starts_read_only_only_where_it_does(
    setup: SetUp, monkeypatch: pytest.MonkeyPatch, starts: bool
) -> None:
    def refuse(descriptor: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", refuse)
    said = [str(each) for each in machine_checks.machine_findings(setup.settings, starts=starts)]
    full = [text for text in said if ": the disk is full" in text]
    assert full == [
        f"{directory}: the disk is full: {'the bookie starts read-only; ' * starts}free some space"
        for directory in (setup.journal, setup.ledgers)
    ]


def test_a_rebuild_is_refused_where_the_old_index_knows_of_a_lost_log(setup: SetUp) -> None:
    expected = lose_a_log(setup)
    before = setup.picture()
    done = CliRunner().invoke(cli, ["bookie", "rebuild-index", "--config", str(setup.config)])
    assert isinstance(done.exception, TriplicateError)
    told = one_line(done.exception)
    assert expected in told
    assert told == setup.start()
    assert setup.picture() == before
    accepted = CliRunner().invoke(cli, ["bookie", "rebuild-index", "--config", str(setup.config), "--accept-lost-logs"])
    assert "the entry logs end with flush 0" in str(accepted.exception), "where the newest flush is lost nothing helps"


def test_a_rebuild_names_a_log_that_an_unfinished_index_knows_and_that_is_not_there(setup: SetUp) -> None:
    index = Index(RealDisk(), str(setup.ledgers / "current" / "index.db"), 1 << 20)
    index._change("UPDATE facts SET value = 0 WHERE name = 'complete'", [()])
    index._change("INSERT INTO logs VALUES (?, ?)", [(77, 5000)])
    index.close()
    done = CliRunner().invoke(cli, ["bookie", "rebuild-index", "--config", str(setup.config)])
    assert done.exit_code == 0, done.output
    assert "missing" not in done.stdout
    (warning,) = done.stderr.splitlines()
    assert "entry log 77, which the old index named, is in none of the ledger directories" in warning
    assert any(line.fullmatch(warning) for line in KNOWN)
    assert setup.wrong() == []


def test_the_doctor_names_the_protection_of_the_door_and_contradictions(tmp_path: Path) -> None:
    folder = CertificateFolder(tmp_path)
    secured = folder.settings("bookie")

    async def findings(settings: BookieSettings, security: SecuritySettings) -> list[str]:
        return [f"{each.level}: {each.text}" for each in door_findings(settings, security, real_host("doctor"))]

    def lines(security: SecuritySettings = secured, **settings: Any) -> list[str]:
        return asyncio.run(findings(BookieSettings(**settings), security))

    assert lines() == []
    assert lines(host="0.0.0.0") == ["remark: door: every client that reaches 0.0.0.0 may do everything, in clear; see docs/security.md"]
    assert lines(tls="required") == ["remark: door: TLS required, no authentication; the certificate expires in 1.0 days"]
    assert lines(SecuritySettings(), tls="required") == ["wrong: bookie.tls = required needs security.ca_file, which is not set"]
    assert lines(folder.settings("old", made_s_ago=3 * DAY_S), tls="offered") == [
        "remark: door: TLS offered, no authentication; the certificate expired 2.0 days ago"
    ]
