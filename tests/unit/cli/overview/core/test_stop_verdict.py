"""Which stops harm which ledgers: the last copies of closed ledgers, ack quorums and recovery of open ones."""

from __future__ import annotations

import pytest

from triplicate.cli.overview.core.stop_verdict import AvailableCopies, Harm, HarmedLedger, StopCheck, StopVerdict
from triplicate.ledger import BookieSite, EnsembleSegment, FaultDomain, LedgerMetadata, NetworkLocation, PlacementPolicy


def ledger(
    *ensembles: str, write_quorum: int | None = None, ack_quorum: int = 2, last_entry_id: int | None = None, every: int = 10
) -> LedgerMetadata:
    """One letter for each bookie; each segment begins `every` entries after the one before; closed if `last_entry_id` is given."""
    segments = tuple(EnsembleSegment(place * every, tuple(ensemble)) for place, ensemble in enumerate(ensembles))
    size = len(ensembles[0])
    metadata = LedgerMetadata(size, write_quorum or size, ack_quorum, segments)
    return metadata if last_entry_id is None else metadata.closed(last_entry_id, 100)


def verdict(stopping: str, metadata: LedgerMetadata | None, copies: AvailableCopies | None = None, ledger_id: int = 7) -> StopVerdict:
    check = StopCheck(tuple(stopping), copies or AvailableCopies(frozenset("abcdef")))
    check.add(ledger_id, metadata)
    return check.verdict()


def harm(stopping: str, metadata: LedgerMetadata | None, copies: AvailableCopies | None = None) -> Harm | None:
    found = verdict(stopping, metadata, copies).harmed
    return found[0].harm if found else None


@pytest.mark.parametrize(
    ("stopping", "present", "expected"),
    [
        ("a", "abcdef", None),
        ("ab", "abcdef", None),
        ("abc", "abcdef", Harm.NO_COPY),
        ("a", "adef", Harm.NO_COPY),
        ("a", "abdef", None),
        ("a", "def", Harm.NO_COPY),
        ("d", "def", None),
    ],
)
def test_a_closed_ledger_needs_one_copy_of_each_entry(stopping: str, present: str, expected: Harm | None) -> None:
    assert harm(stopping, ledger("abc", last_entry_id=5), AvailableCopies(frozenset(present))) is expected


@pytest.mark.parametrize(
    ("stopping", "present", "ack_quorum", "expected"),
    [
        ("a", "abc", 2, None),
        ("a", "ab", 2, Harm.NO_ACK_QUORUM),
        ("ab", "abc", 2, Harm.NO_ACK_QUORUM),
        ("abc", "abc", 2, Harm.NO_COPY),
        ("a", "abc", 3, Harm.NO_ACK_QUORUM),
        ("a", "abc", 1, Harm.NO_RECOVERY),
        ("d", "abd", 2, None),
    ],
)
def test_an_open_ledger_needs_its_ack_quorum_and_its_recovery(stopping: str, present: str, ack_quorum: int, expected: Harm | None) -> None:
    assert harm(stopping, ledger("abc", ack_quorum=ack_quorum), AvailableCopies(frozenset(present))) is expected


def test_every_write_set_of_a_striped_ledger_counts() -> None:
    striped = ledger("abcd", write_quorum=2, last_entry_id=50)
    assert harm("ac", striped) is None
    assert harm("ab", striped) is Harm.NO_COPY


def test_write_sets_without_entries_do_not_count() -> None:
    """Entries 0 and 1 are on a, b and b, c; no entry is on c, d."""
    assert harm("cd", ledger("abcd", write_quorum=2, last_entry_id=1)) is None
    assert harm("cd", ledger("abcd", write_quorum=2, last_entry_id=2)) is Harm.NO_COPY


def test_an_empty_closed_ledger_needs_nothing() -> None:
    assert harm("abc", ledger("abc", last_entry_id=-1)) is None


def test_a_segment_after_the_end_of_a_closed_ledger_needs_nothing() -> None:
    assert harm("def", ledger("abc", "def", last_entry_id=9)) is None
    assert harm("def", ledger("abc", "def", last_entry_id=10)) is Harm.NO_COPY


def test_an_earlier_segment_of_an_open_ledger_needs_one_copy() -> None:
    metadata = ledger("abc", "def")
    assert harm("ab", metadata) is None
    found = verdict("abc", metadata).harmed
    assert found == (HarmedLedger(7, Harm.NO_COPY, True, 0, ()),)


def test_marked_copies_do_not_count() -> None:
    copies = AvailableCopies(frozenset("abc"), {7: ("b", "c")})
    assert harm("a", ledger("abc", last_entry_id=5), copies) is Harm.NO_COPY
    assert verdict("a", ledger("abc", last_entry_id=5), copies, ledger_id=8).is_safe


def test_replaced_disks_do_not_count_for_older_ledgers() -> None:
    copies = AvailableCopies(frozenset("abc"), unsure_below={"b": 8, "c": 8})
    assert harm("a", ledger("abc", last_entry_id=5), copies) is Harm.NO_COPY
    assert verdict("a", ledger("abc", last_entry_id=5), copies, ledger_id=8).is_safe


def test_a_ledger_that_cannot_be_decoded_is_not_safe() -> None:
    assert harm("a", None) is Harm.UNKNOWN


def test_the_verdict_counts_ledgers_and_single_copies() -> None:
    check = StopCheck(("a",), AvailableCopies(frozenset("ab")))
    check.add(1, ledger("abc", last_entry_id=5))
    check.add(2, ledger("bcd", last_entry_id=5))
    check.add(3, ledger("abcde", ack_quorum=1))
    found = check.verdict()
    assert (found.checked, found.concerned, found.single, found.largest_open) == (3, 2, 1, 5)
    assert found.harmed == (HarmedLedger(3, Harm.NO_RECOVERY, True, 0, ("b",)),)
    assert not found.is_safe


def test_an_open_ledger_needs_its_fault_domains() -> None:
    sites = {name: BookieSite(name, NetworkLocation(rack=rack)) for name, rack in zip("abc", "xxy", strict=True)}
    policy = PlacementPolicy(ack_domain=FaultDomain.RACK, min_ack_domains=2)
    for stopping, last, expected in (("c", None, Harm.TOO_FEW_DOMAINS), ("a", None, None), ("c", 5, None)):
        check = StopCheck(tuple(stopping), AvailableCopies(frozenset("abc")), policy, sites)
        check.add(7, ledger("abc", last_entry_id=last))
        assert [one.harm for one in check.verdict().harmed] == ([expected] if expected else [])
