"""The dumps as commands: their lines, their exit codes, and that nothing is changed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.unit.bookie.offline.dump_rig import adds_group, content_of, journal_of
from triplicate.cli.main import cli
from triplicate.cli.server_commands.dump_command import choice_of
from triplicate.errors import ArgumentError
from triplicate.runtime.real_disk import RealDisk

GOLDEN = Path("tests/golden/disk/2026-11")
JOURNALS, LEDGERS = "journal-1", "ledgers-1"


@pytest.fixture
def bookie(tmp_path: Path) -> Path:
    """The directories of a stopped bookie."""
    return Path(shutil.copytree(GOLDEN, tmp_path / "bookie"))


def dump(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["dump", *map(str, arguments)])


def lines_of(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_each_dump_prints_json_lines_and_changes_nothing(bookie: Path) -> None:
    before = content_of(bookie)
    for kind, folder, found in (("journal", JOURNALS, "mark"), ("entry-log", LEDGERS, "block"), ("index", LEDGERS, "run")):
        done = dump(kind, bookie / folder, "--json")
        assert done.exit_code == 0, done.output
        lines = lines_of(done)
        assert found in {line["kind"] for line in lines}
        assert all({"file", "offset", "kind"} <= line.keys() for line in lines)
    assert content_of(bookie) == before


def test_the_index_of_a_running_bookie_is_printed_from_a_copy(bookie: Path) -> None:
    current = bookie / LEDGERS / "current"
    (current / "LOCK").touch()
    before = content_of(bookie)
    release = RealDisk().lock(str(current / "LOCK"))
    done = dump("index", bookie / LEDGERS, "--json")
    release()
    assert done.exit_code == 0, done.output
    assert "run" in {line["kind"] for line in lines_of(done)}
    assert content_of(bookie) == before


def test_text_names_the_file_and_leaves_out_what_is_false(tmp_path: Path) -> None:
    path = tmp_path / "7.journal"
    path.write_bytes(journal_of(adds_group(1, [(5, 0)])))
    done = dump("journal", path, "--ledger", 5)
    assert done.exit_code == 0
    assert done.stdout.splitlines()[0] == str(path)
    assert done.stdout.splitlines()[2].split() == ["4160", "entry", "ledger=5", "entry=0", "bytes=43", "last_add_confirmed=-1", "length=7"]


def test_damage_is_printed_and_the_exit_code_is_1(tmp_path: Path) -> None:
    path = tmp_path / "7.journal"
    path.write_bytes(journal_of(adds_group(1, [(5, 0)])[:100]))
    done = dump("journal", path, "--json")
    assert done.exit_code == 1
    assert [(line["kind"], line["offset"]) for line in lines_of(done)][1:] == [("damage", 4096)]


def test_a_refused_file_does_not_hide_the_next_one(tmp_path: Path) -> None:
    (tmp_path / "1.journal").write_bytes(b"BKLG" + bytes(9000))
    (tmp_path / "7.journal").write_bytes(journal_of(adds_group(1, [(5, 0)])))
    done = dump("journal", tmp_path, "--json")
    assert done.exit_code == 1
    assert [line["kind"] for line in lines_of(done)] == ["header", "group", "end"]
    assert "bookkeeper shell readjournal" in done.stderr


def test_a_directory_without_files_is_refused(tmp_path: Path) -> None:
    done = dump("entry-log", tmp_path)
    assert isinstance(done.exception, ArgumentError)
    assert "no file of a bookie" in str(done.exception)


@pytest.mark.parametrize(("text", "first", "last"), [("7", 7, 7), ("7:9", 7, 9), ("7:", 7, 2**63 - 1)])
def test_entries_are_chosen_by_id_or_range(text: str, first: int, last: int) -> None:
    chosen = choice_of(ledger_id=None, entry=text)
    assert (chosen.first_entry, chosen.last_entry) == (first, last)


@pytest.mark.parametrize("text", ["", "-1", ":3", "a", "1:2:3"])
def test_other_ranges_are_refused(text: str) -> None:
    with pytest.raises(ArgumentError, match="FIRST:LAST"):
        choice_of(ledger_id=None, entry=text)
