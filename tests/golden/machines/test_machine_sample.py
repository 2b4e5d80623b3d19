"""The sample of a bookie's machine, written by the first release that had it. Every later release must read it."""

from __future__ import annotations

from pathlib import Path

from triplicate.metadata import bookie_service
from triplicate.metadata.bookie_machines import decode_machine, encode_machine

SAMPLE = Path(__file__).parent / "machine.json"


def test_the_sample_is_read_and_written_again() -> None:
    assert decode_machine(SAMPLE.read_bytes()) == bookie_service("10.0.0.7", 0, network_location="/west/rack-2")
    assert encode_machine("10.0.0.7", "/west/rack-2") == SAMPLE.read_bytes()
