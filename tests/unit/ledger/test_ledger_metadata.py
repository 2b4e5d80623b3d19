from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.ledger.metadata_rig import BASE, with_field
from triplicate.errors import ArgumentError
from triplicate.ledger import EnsembleSegment, LedgerState, decode_metadata, encode_metadata


def test_the_segment_of_an_entry_is_the_last_that_begins_before() -> None:
    metadata = BASE.with_ensemble(5, ("a", "d", "c")).with_ensemble(9, ("a", "d", "e"))
    starts = [metadata.segment_of(entry_id).first_entry_id for entry_id in (0, 4, 5, 8, 9, 10**12)]
    assert starts == [0, 0, 5, 5, 9, 9]
    assert metadata.ensemble_of(6) == ("a", "d", "c")
    assert metadata.last_segment.ensemble == ("a", "d", "e")


def test_an_entry_before_the_first_segment_has_none() -> None:
    with pytest.raises(ArgumentError, match="entry -1 lies before"):
        BASE.segment_of(-1)


def test_a_change_at_the_last_segments_start_replaces_it() -> None:
    metadata = BASE.with_ensemble(5, ("a", "d", "c")).with_ensemble(5, ("a", "e", "c"))
    assert metadata.segments == (BASE.segments[0], EnsembleSegment(5, ("a", "e", "c")))
    with pytest.raises(ArgumentError, match="before the last one, at 5"):
        metadata.with_ensemble(4, ("a", "b", "c"))


def test_states_go_from_open_over_recovery_to_closed() -> None:
    recovering = BASE.recovering()
    assert recovering.state is LedgerState.IN_RECOVERY
    closed = recovering.closed(6, 100)
    assert (closed.is_closed, closed.last_entry_id, closed.length) == (True, 6, 100)
    assert closed.closed(6, 100) == closed
    with pytest.raises(ArgumentError, match="closed at entry 6"):
        closed.closed(7, 100)
    with pytest.raises(ArgumentError, match="needs no recovery"):
        closed.recovering()


def test_a_closed_ledger_may_change_its_ensemble_and_end_before_its_last_segment() -> None:
    closed = BASE.with_ensemble(7, ("a", "d", "c")).closed(6, 100)
    moved = closed.with_ensemble(7, ("x", "d", "c"))
    assert decode_metadata(encode_metadata(moved)) == moved


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"ensemble_size": 0}, "ensemble_size"),
        ({"ensemble_size": 4}, "ensemble_size"),
        ({"write_quorum": 4}, "write_quorum"),
        ({"write_quorum": 0}, "write_quorum"),
        ({"ack_quorum": 3}, "ack_quorum"),
        ({"ack_quorum": 0}, "ack_quorum"),
        ({"segments": ()}, "segments"),
        ({"segments": (EnsembleSegment(0, ("a", "b", "c")), EnsembleSegment(0, ("a", "b", "c")))}, "segments"),
        ({"last_entry_id": 3}, "last_entry_id"),
        ({"length": 3}, "length"),
        ({"state": LedgerState.CLOSED, "last_entry_id": -2}, "last_entry_id"),
        ({"state": LedgerState.CLOSED, "length": -1}, "length"),
        ({"format_version": 4}, "format_version"),
        ({"ctime_ms": 2**63}, "ctime_ms"),
    ],
)
def test_impossible_metadata_is_refused_by_name(change: dict[str, Any], name: str) -> None:
    with pytest.raises(ArgumentError, match=name):
        replace(BASE, **change)


def test_unknown_fields_survive_a_change_of_ensemble() -> None:
    unknown = bytes.fromhex("9a0103666f6f")  # field 19: "foo"
    metadata = decode_metadata(with_field(encode_metadata(BASE), unknown))
    assert metadata.unknown_fields == unknown
    changed = metadata.with_ensemble(4, ("a", "d", "c")).recovering().closed(7, 10)
    assert encode_metadata(changed).endswith(unknown)
    assert decode_metadata(encode_metadata(changed)) == changed


def test_unknown_fields_of_a_segment_survive_a_change_of_its_ensemble() -> None:
    metadata = replace(BASE, segments=(EnsembleSegment(0, ("a", "b", "c"), bytes.fromhex("4805")),))
    found = decode_metadata(encode_metadata(metadata))
    assert found.with_ensemble(0, ("a", "b", "d")).segments == (EnsembleSegment(0, ("a", "b", "d"), bytes.fromhex("4805")),)


def test_equal_metadata_hash_alike() -> None:
    assert hash(BASE) == hash(replace(BASE, custom=dict(BASE.custom)))
