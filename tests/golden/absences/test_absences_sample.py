"""The sample of the record of absences, written by the first release that had it. Every later release must read it."""

from __future__ import annotations

from pathlib import Path

from triplicate.metadata import ObservedAbsences
from triplicate.metadata.observed_absences import decode_absences, encode_absences

SAMPLE = Path(__file__).parent / "absences.json"
ABSENCES = ObservedAbsences(1_700_000_000_000, {"bookie-2": 37.5, "10.0.0.1:3181": 0.0})


def test_the_sample_is_read_and_written_again() -> None:
    assert decode_absences(SAMPLE.read_bytes()) == ABSENCES
    assert encode_absences(ABSENCES) == SAMPLE.read_bytes()
