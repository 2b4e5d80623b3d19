"""The sample of the record of a repair's progress, written by the first release that had it. Every later release must read it."""

from __future__ import annotations

from pathlib import Path

from triplicate.metadata import RepairProgress
from triplicate.metadata.repair_progress import decode_repair_progress, encode_repair_progress

SAMPLE = Path(__file__).parent / "progress.json"
PROGRESS = RepairProgress("bookie-2", 1_700_000_000_000, 1_700_000_030_000, 1200, 1_228_800, 5000, 40.5, 41472.0)


def test_the_sample_is_read_and_written_again() -> None:
    assert decode_repair_progress(SAMPLE.read_bytes()) == PROGRESS
    assert encode_repair_progress(PROGRESS) == SAMPLE.read_bytes()
