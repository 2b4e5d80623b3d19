"""The recovery machine, step by step."""

from __future__ import annotations

import pytest

from triplicate.ledger import AckDomains, DigestType, EnsembleSegment, LedgerMetadata, LedgerState
from triplicate.ledger import recovery as machine

Recovery = machine.Recovery


def metadata(*segments: tuple[int, str], write_quorum: int = 3, ack_quorum: int = 2) -> LedgerMetadata:
    return LedgerMetadata(
        len(segments[0][1]),
        write_quorum,
        ack_quorum,
        tuple(EnsembleSegment(first, tuple(ensemble)) for first, ensemble in segments),
        LedgerState.IN_RECOVERY,
        digest_type=DigestType.CRC32C,
    )


def started(*segments: tuple[int, str], window: int = 1) -> Recovery:
    recovery = Recovery(metadata(*segments), window, 0.0, hedge_s=0.5)
    commands = recovery.pop_commands()
    assert commands == [machine.FenceAndReadLac(i, bookie_id) for i, bookie_id in enumerate(segments[-1][1])]
    return recovery


def reads(recovery: Recovery) -> list[tuple[int, str]]:
    commands = recovery.pop_commands()
    assert all(isinstance(command, machine.RecoveryRead) for command in commands)
    return [(command.entry_id, command.bookie_id) for command in commands if isinstance(command, machine.RecoveryRead)]


def test_an_empty_ledger_is_closed_empty() -> None:
    recovery = started((0, "abc"))
    recovery.step(machine.LacAbsent(0), 0.0)
    assert recovery.pop_commands() == []
    recovery.step(machine.LacAbsent(2), 0.0)
    assert reads(recovery) == [(0, "a")]
    recovery.step(machine.EntryAbsent(0, "a"), 0.0)
    # The second has not answered the fence, so the third comes before it.
    assert reads(recovery) == [(0, "c")]
    recovery.step(machine.EntryAbsent(0, "c"), 0.0)
    (close,) = recovery.pop_commands()
    assert isinstance(close, machine.CloseLedger)
    assert (close.metadata.state, close.metadata.last_entry_id, close.metadata.length) == (LedgerState.CLOSED, -1, 0)


def test_entries_behind_the_confirmed_prefix_are_copied_until_an_ack_quorum_has_them() -> None:
    recovery = started((0, "abc"))
    recovery.step(machine.LacAnswered(0, 1, 0, 20), 0.0)
    recovery.step(machine.LacAnswered(1, 0, -1, 10), 0.0)
    assert reads(recovery) == [(1, "b")]
    recovery.step(machine.EntryFailed(1, "b", "broken"), 0.0)
    assert reads(recovery) == [(1, "a")]
    recovery.step(machine.EntryFound(1, "a", 20, b"one"), 0.0)
    adds = recovery.pop_commands()
    assert adds == [machine.RecoveryAdd(1, bookie_id, 0, 20, b"one") for bookie_id in "bca"]
    recovery.step(machine.AddsAcknowledged("a", (1,)), 0.0)
    assert recovery.pop_commands() == []
    recovery.step(machine.AddsAcknowledged("b", (1,)), 0.0)
    assert reads(recovery) == [(2, "a")]
    recovery.step(machine.EntryAbsent(2, "a"), 0.0)
    recovery.pop_commands()
    recovery.step(machine.EntryAbsent(2, "b"), 0.0)
    (close,) = recovery.pop_commands()
    assert isinstance(close, machine.CloseLedger)
    assert (close.metadata.last_entry_id, close.metadata.length) == (1, 20)


def test_the_floor_is_the_entry_before_the_last_segment() -> None:
    recovery = started((0, "xyz"), (5, "abc"))
    for position in range(2):
        recovery.step(machine.LacAbsent(position), 0.0)
    assert recovery.known_confirmed() == 4
    assert reads(recovery) == [(5, "a")]
    recovery.step(machine.EntryAbsent(5, "a"), 0.0)
    recovery.pop_commands()
    recovery.step(machine.EntryAbsent(5, "b"), 0.0)
    # No answer gave the length at entry 4, so that entry is read for it, where the earlier segment has it.
    assert reads(recovery) == [(4, "y")]
    recovery.step(machine.EntryFound(4, "y", 50, b"four"), 0.0)
    (close,) = recovery.pop_commands()
    assert isinstance(close, machine.CloseLedger)
    assert (close.metadata.last_entry_id, close.metadata.length) == (4, 50)


def test_unknown_bookies_stop_the_recovery_and_are_named() -> None:
    recovery = started((0, "abc"))
    recovery.step(machine.LacFailed(0, "refused"), 1.0)
    recovery.step(machine.LacAbsent(1), 1.0)
    assert not recovery.is_finished
    recovery.step(machine.LacFailed(2, "no answer"), 2.5)
    assert recovery.failure is not None
    assert "within 2.5 s" in recovery.failure
    assert "a (refused), c (no answer)" in recovery.failure


def test_an_entry_that_can_be_neither_found_nor_denied_stops_the_recovery() -> None:
    recovery = started((0, "abc"))
    recovery.step(machine.LacAbsent(0), 0.0)
    recovery.step(machine.LacAbsent(1), 0.0)
    recovery.step(machine.EntryFailed(0, "a", "timed out"), 0.0)
    recovery.step(machine.EntryAbsent(0, "b"), 0.0)
    assert not recovery.is_finished
    recovery.step(machine.EntryFailed(0, "c", "timed out"), 0.0)
    assert recovery.failure is not None
    assert "entry 0" in recovery.failure
    assert not any(isinstance(command, machine.CloseLedger) for command in recovery.pop_commands())


def test_nothing_behind_the_first_absent_entry_is_copied() -> None:
    recovery = started((0, "abc"), window=3)
    recovery.step(machine.LacAbsent(0), 0.0)
    recovery.step(machine.LacAbsent(1), 0.0)
    assert reads(recovery) == [(0, "a"), (1, "b"), (2, "a")]
    recovery.step(machine.EntryFound(1, "b", 20, b"one"), 0.0)
    assert recovery.pop_commands() == [], "entry 0 is not decided yet"
    recovery.step(machine.EntryAbsent(0, "a"), 0.0)
    recovery.pop_commands()
    recovery.step(machine.EntryAbsent(0, "b"), 0.0)
    (close,) = recovery.pop_commands()
    assert isinstance(close, machine.CloseLedger)
    assert close.metadata.last_entry_id == -1


def test_a_failed_bookie_is_replaced_in_memory_only() -> None:
    recovery = started((0, "abc"))
    recovery.step(machine.LacAbsent(0), 0.0)
    recovery.step(machine.LacAbsent(1), 0.0)
    recovery.pop_commands()
    recovery.step(machine.EntryFound(0, "a", 10, b"zero"), 0.0)
    recovery.pop_commands()
    recovery.step(machine.AddsAcknowledged("b", (0,)), 0.0)
    recovery.step(machine.AddFailed("c", "disk full"), 0.0)
    assert recovery.pop_commands() == [machine.ReplaceBookies(("a", "b", "c"), (2,))]
    recovery.step(machine.AddsAcknowledged("a", (0,)), 0.0)
    assert recovery.pop_commands() == [], "nothing is confirmed during a change"
    recovery.step(machine.EnsembleReplaced(("a", "b", "d")), 0.0)
    assert machine.RecoveryAdd(0, "d", -1, 10, b"zero") in recovery.pop_commands()
    recovery.step(machine.EntryAbsent(1, "b"), 0.0)
    recovery.step(machine.EntryAbsent(1, "a"), 0.0)
    (close,) = [command for command in recovery.pop_commands() if isinstance(command, machine.CloseLedger)]
    assert close.metadata.segments == (EnsembleSegment(0, ("a", "b", "d")),)


def test_where_no_copy_has_the_length_the_greatest_reported_one_is_used() -> None:
    recovery = started((0, "xyz"), (5, "abc"))
    recovery.step(machine.LacAnswered(0, 6, 3, 77), 0.0)
    recovery.step(machine.LacAbsent(1), 0.0)
    for bookie_id in "ab":
        recovery.step(machine.EntryAbsent(5, bookie_id), 0.0)
    for bookie_id in "yzx":
        recovery.step(machine.EntryFailed(4, bookie_id, "gone"), 0.0)
    (close,) = [command for command in recovery.pop_commands() if isinstance(command, machine.CloseLedger)]
    assert (close.metadata.last_entry_id, close.metadata.length, close.length_is_known) == (4, 77, False)


def test_recovery_starts_only_once_the_metadata_says_so() -> None:
    fresh = LedgerMetadata(3, 3, 2, (EnsembleSegment(0, ("a", "b", "c")),))
    with pytest.raises(AssertionError):
        Recovery(fresh, 1, 0.0)


def test_copies_carry_the_last_add_confirmed_that_was_found() -> None:
    recovery = started((0, "abc"), window=4)
    recovery.step(machine.LacAnswered(0, 3, 0, 40), 0.0)
    recovery.step(machine.LacAnswered(1, 3, 0, 40), 0.0)
    recovery.pop_commands()
    for entry_id in (1, 2, 3):
        recovery.step(machine.EntryFound(entry_id, "a", 10 * entry_id, b"x"), 0.0)
        for bookie_id in "abc":
            recovery.step(machine.AddsAcknowledged(bookie_id, (entry_id,)), 0.0)
    adds = [command for command in recovery.pop_commands() if isinstance(command, machine.RecoveryAdd)]
    assert len(adds) == 9
    # An advancing one could name entries that are confirmed only in an ensemble that the metadata will never know.
    assert {command.last_add_confirmed for command in adds} == {0}


def test_without_a_replacement_recovery_goes_on_while_ack_quorums_remain() -> None:
    recovery = started((0, "abc"))
    recovery.step(machine.LacAbsent(0), 0.0)
    recovery.step(machine.LacAbsent(1), 0.0)
    recovery.step(machine.EntryFound(0, "a", 10, b"zero"), 0.0)
    recovery.pop_commands()
    recovery.step(machine.AddFailed("c", "gone"), 0.0)
    recovery.pop_commands()
    recovery.step(machine.NoReplacement("nobody is left"), 0.0)
    for bookie_id in "ab":
        recovery.step(machine.AddsAcknowledged(bookie_id, (0,)), 0.0)
    assert recovery.pop_commands() == [machine.RecoveryRead(1, "b")]
    recovery.step(machine.EntryFound(1, "b", 20, b"one"), 0.0)
    recovery.step(machine.AddFailed("b", "gone"), 0.0)
    recovery.step(machine.NoReplacement("nobody is left"), 0.0)
    assert recovery.failure is not None
    assert "c: gone; b: gone" in recovery.failure


def test_who_is_waited_for_is_known_in_every_phase() -> None:
    recovery = started((0, "abc"))
    assert recovery.waits_for() == {"last entry": ["a", "b", "c"]}
    recovery.step(machine.LacFailed(1, "refused"), 0.0)
    assert recovery.waits_for() == {"last entry": ["a", "c"]}
    recovery.step(machine.LacAnswered(0, 0, -1, 3), 0.0)
    recovery.step(machine.LacAbsent(2), 0.0)
    assert recovery.is_fenced
    assert recovery.waits_for() == {"entry 0": ["a"]}
    recovery.step(machine.EntryFound(0, "a", 3, b"one"), 0.0)
    assert recovery.waits_for() == {"storing copies": ["a", "b", "c"]}
    recovery.step(machine.AddsAcknowledged("a", (0,)), 0.0)
    assert recovery.waits_for() == {"storing copies": ["b", "c"]}
    recovery.step(machine.AddsAcknowledged("c", (0,)), 0.0)
    assert recovery.waits_for() == {"entry 1": ["b"]}


def test_many_are_read_ahead_but_few_behind_the_last_entry_that_is_known() -> None:
    recovery = started((0, "abc"), window=1000)
    recovery.step(machine.LacAnswered(0, 99, 9, 1000), 0.0)
    recovery.step(machine.LacAnswered(1, 104, 4, 1050), 0.0)
    asked = [entry_id for entry_id, _ in reads(recovery)]
    beyond = machine.READ_BEYOND_ENTRIES
    assert asked == list(range(10, 105 + beyond))
    # An entry found behind it moves that limit.
    recovery.step(machine.EntryFound(110, "x", 1110, b"x" * 10), 0.0)
    assert [entry_id for entry_id, _ in reads(recovery)] == list(range(105 + beyond, 111 + beyond))


def test_what_is_read_ahead_is_bounded_in_bytes() -> None:
    recovery = Recovery(metadata((0, "abc")), 1000, 0.0, window_bytes=1000)
    recovery.pop_commands()
    # 100 bytes an entry on the average.
    recovery.step(machine.LacAnswered(0, 99, 9, 10_000), 0.0)
    recovery.step(machine.LacAbsent(1), 0.0)
    assert [entry_id for entry_id, _ in reads(recovery)] == list(range(10, 20))
    # Larger ones are reckoned with as soon as one is seen.
    for entry_id in range(10, 15):
        recovery.step(machine.EntryFound(entry_id, "abc"[entry_id % 3], 1000 + 500 * (entry_id - 9), b"x" * 500), 0.0)
    recovery.pop_commands()
    for bookie_id in "ab":
        recovery.step(machine.AddsAcknowledged(bookie_id, tuple(range(10, 15))), 0.0)
    assert recovery.pop_commands() == [], "the five that are asked for may hold more than the window"
    # An entry larger than the window is read all the same.
    lonely = Recovery(metadata((0, "abc")), 1000, 0.0, window_bytes=1)
    lonely.pop_commands()
    lonely.step(machine.LacAnswered(0, 1, -1, 10_000), 0.0)
    lonely.step(machine.LacAbsent(1), 0.0)
    assert [entry_id for entry_id, _ in reads(lonely)] == [0]


def test_copies_of_an_entry_are_distinguished_from_others() -> None:
    add = machine.RecoveryAdd(1, "a", 0, 20, b"one")
    assert add.is_copy_of(machine.RecoveryAdd(1, "b", 0, 20, add.payload))
    for other in (
        machine.RecoveryAdd(2, "a", 0, 20, add.payload),
        machine.RecoveryAdd(1, "a", 1, 20, add.payload),
        machine.RecoveryAdd(1, "a", 0, 21, add.payload),
        machine.RecoveryAdd(1, "a", 0, 20, b"two"),
    ):
        assert not add.is_copy_of(other)


# Slow bookies.


def hedging(hedge_s: float) -> Recovery:
    """A recovery in which all have answered the fence at 1.0, and entry 0 is asked for."""
    recovery = Recovery(metadata((0, "abc")), 1, 0.0, hedge_s=hedge_s)
    recovery.pop_commands()
    for position in range(3):
        recovery.step(machine.LacAbsent(position), 1.0)
    assert reads(recovery) == [(0, "a")]
    return recovery


def test_a_bookie_that_is_slow_to_answer_a_read_is_not_waited_for() -> None:
    recovery = hedging(0.5)
    assert recovery.hedge_at == 1.5
    recovery.step(machine.TimePassed(), 1.4)
    assert recovery.pop_commands() == [], "it is not late yet"
    recovery.step(machine.TimePassed(), 1.5)
    assert reads(recovery) == [(0, "b")]
    recovery.step(machine.EntryAbsent(0, "b"), 1.6)
    assert reads(recovery) == [(0, "c")]
    assert recovery.hedge_at == float("inf"), "there is nobody left to ask"
    recovery.step(machine.EntryAbsent(0, "c"), 1.7)
    (close,) = recovery.pop_commands()
    assert isinstance(close, machine.CloseLedger)
    assert close.metadata.last_entry_id == -1


def test_a_late_copy_counts_though_others_were_asked_meanwhile() -> None:
    recovery = hedging(0.5)
    recovery.step(machine.TimePassed(), 1.5)
    assert reads(recovery) == [(0, "b")]
    recovery.step(machine.EntryAbsent(0, "b"), 1.6)
    assert reads(recovery) == [(0, "c")]
    recovery.step(machine.EntryFound(0, "a", 10, b"zero"), 1.7)
    assert [type(command) for command in recovery.pop_commands()] == [machine.RecoveryAdd] * 3


def test_silence_denies_nothing_however_long_it_lasts() -> None:
    recovery = hedging(0.5)
    for now in (1.5, 2.0, 2.5, 60.0):
        recovery.step(machine.TimePassed(), now)
    assert reads(recovery) == [(0, "b"), (0, "c")]
    recovery.step(machine.EntryAbsent(0, "b"), 61.0)
    assert not recovery.is_finished
    assert recovery.pop_commands() == []
    recovery.step(machine.EntryFailed(0, "c", "timed out"), 61.0)
    recovery.step(machine.EntryFailed(0, "a", "timed out"), 61.0)
    assert recovery.failure is not None


def test_without_hedging_one_replica_is_waited_for() -> None:
    recovery = hedging(float("inf"))
    assert recovery.hedge_at == float("inf")
    recovery.step(machine.TimePassed(), 1e9)
    assert recovery.pop_commands() == []


def copying(domains: tuple[int, ...]) -> Recovery:
    """A recovery in two domains of an ensemble a, b, c, whose entry 0 was read and sent to all of them."""
    recovery = Recovery(metadata((0, "abc")), 1, 0.0, domains=AckDomains(2, domains))
    for position in range(2):
        recovery.step(machine.LacAnswered(position, 0, -1, 3), 0.0)
    recovery.step(machine.EntryFound(0, "a", 3, b"one"), 0.0)
    recovery.pop_commands()
    return recovery


def stores(recovery: Recovery, name: str) -> bool:
    """The bookie stores entry 0. Whether the recovery closes the ledger behind it."""
    recovery.step(machine.AddsAcknowledged(name, (0,)), 0.0)
    return closes(recovery)


def closes(recovery: Recovery) -> bool:
    for other in "bca":
        recovery.step(machine.EntryAbsent(1, other), 0.0)
    return any(isinstance(command, machine.CloseLedger) for command in recovery.pop_commands())


def test_copies_are_stored_in_several_domains() -> None:
    recovery = copying((1, 1, 2))
    assert [stores(recovery, name) for name in "abc"] == [False, False, True]


def test_copies_are_stored_in_as_many_domains_as_are_left() -> None:
    recovery = copying((1, 1, 2))
    assert [stores(recovery, name) for name in "ab"] == [False, False]
    recovery.step(machine.AddFailed("c", "gone"), 0.0)
    assert recovery.pop_commands() == [machine.ReplaceBookies(("a", "b", "c"), (2,))]
    recovery.step(machine.NoReplacement("there is no other"), 0.0)
    assert closes(recovery)


def test_an_ensemble_in_one_domain_needs_no_second() -> None:
    recovery = copying((1, 1, 1))
    assert [stores(recovery, name) for name in "ab"] == [False, True]


def test_a_replaced_bookie_brings_its_domain_to_the_copies() -> None:
    recovery = copying((1, 1, 2))
    recovery.step(machine.AddFailed("c", "gone"), 0.0)
    recovery.pop_commands()
    recovery.step(machine.EnsembleReplaced(("a", "b", "d"), AckDomains(2, (1, 1, 2))), 0.0)
    assert [stores(recovery, name) for name in "abd"] == [False, False, True]
