"""The rows of `bookie status` about the scrubber."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from tests.unit.client.cluster import run
from triplicate.bookie import Inspection
from triplicate.bookie.core.scrub_state import Damage, ScrubState
from triplicate.bookie.scrub_file import ScrubFile
from triplicate.cli.server_commands.bookie_status import rows_of
from triplicate.config import BookieSettings
from triplicate.runtime import real_host


def rows(state: ScrubState | None) -> dict[str, str]:
    return dict(rows_of({"scrub": None if state is None else dataclasses.asdict(state)}))


def test_the_last_pass_the_present_one_and_the_damage_are_shown() -> None:
    done = ScrubState().begun([1, 2], 1_000).with_bytes(12, 5000).ended(61_000)
    present = done.begun([1, 2, 3, 4], 90_000).with_log_read(1).with_damage([Damage(7, 3, 5, 1, "its digest does not match")])
    shown = rows(present.with_index_fault())
    assert shown["last full scrub"].endswith(": 12 entries, 4.9 KiB, 0 damaged")
    assert shown["scrub"].startswith("1 of 4 entry logs read; since ")
    assert shown["scrub"].endswith("3 damaged, 1 faults of the index")
    assert shown["damaged"] == "entries 3 to 5 of ledger 7 in entry log 1: its digest does not match"


def test_a_bookie_without_a_pass_says_so() -> None:
    assert rows(ScrubState())["last full scrub"] == "none yet"
    assert "last full scrub" not in rows(None)


def test_a_state_that_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    async def body() -> None:
        host = real_host("test", seed=1)
        settings = BookieSettings(
            bookie_id="a", journal_directories=(str(tmp_path / "journal"),), ledger_directories=(str(tmp_path / "ledgers"),)
        )
        current = tmp_path / "ledgers" / "current"
        current.mkdir(parents=True)
        state = ScrubState().begun([1], 1_000)
        assert ScrubFile(host.disk, str(current)).write(state)
        assert Inspection(host, settings, "a", "").facts().scrub == state
        (current / "scrub").write_text("{")
        assert Inspection(host, settings, "a", "").facts().scrub is None

    run(body())
