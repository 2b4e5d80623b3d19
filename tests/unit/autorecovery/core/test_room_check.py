"""Whether enough bookies remain, by number and by machine, is decided from the metadata alone."""

from __future__ import annotations

import random
from dataclasses import replace

from triplicate.autorecovery.core.room_check import RoomCheck
from triplicate.ledger import BookieSite, EnsembleSegment, LedgerMetadata, LedgerState, PlacementRules

ONE_MACHINE = PlacementRules(3)


def ledger(*ensembles: str, closed: bool = True, write_quorum: int = 3) -> LedgerMetadata:
    segments = tuple(EnsembleSegment(10 * number, tuple(ensemble)) for number, ensemble in enumerate(ensembles))
    size = len(ensembles[0])
    metadata = LedgerMetadata(ensemble_size=size, write_quorum=min(size, write_quorum), ack_quorum=1, segments=segments)
    return metadata.closed(10 * len(ensembles) - 1, 1000) if closed else metadata


def check(leaving: str, remaining: str) -> RoomCheck:
    return RoomCheck(leaving, remaining, random.Random(1))


def test_each_leaving_position_needs_another_bookie() -> None:
    assert check("b", "acd").add(1, ledger("abc"), ONE_MACHINE) == []
    (refused,) = check("b", "ac").add(1, ledger("abc"), ONE_MACHINE)
    assert (refused.ledger_id, refused.first_entry_id, refused.kept, refused.needed, refused.there) == (1, 0, ("a", "c"), 1, 0)
    (refused,) = check("bc", "ad").add(1, ledger("abc"), ONE_MACHINE)
    assert (refused.kept, refused.needed, refused.there) == (("a",), 2, 1)
    assert check("bc", "ade").add(1, ledger("abc"), ONE_MACHINE) == []


def test_every_segment_is_judged() -> None:
    segments = ledger("abe", "acd", "bde")
    assert check("be", "acdf").add(7, segments, ONE_MACHINE) == []
    found = check("be", "ad").add(7, segments, ONE_MACHINE)
    assert [(one.first_entry_id, one.needed, one.there) for one in found] == [(0, 2, 1), (20, 2, 1)]


def test_an_open_ledger_needs_an_ensemble_of_writable_bookies() -> None:
    """Its writer could not replace a bookie, or continue in another ledger."""
    assert check("d", "abc").add(1, ledger("abc", closed=False), ONE_MACHINE) == []
    (refused,) = check("d", "ab").add(1, ledger("abc", closed=False), ONE_MACHINE)
    assert (refused.kept, refused.needed, refused.there) == (("a", "b", "c"), 3, 2)
    assert check("d", "ab").add(1, ledger("abc"), ONE_MACHINE) == []
    recovering = replace(ledger("abc", closed=False), state=LedgerState.IN_RECOVERY)
    assert len(check("d", "ab").add(1, recovering, ONE_MACHINE)) == 1


def test_copies_do_not_share_a_machine_if_there_are_others() -> None:
    sites = {name: BookieSite(host) for name, host in zip("abcd", ("h1", "h2", "h3", "h1"), strict=True)}
    rules = PlacementRules(3, sites)
    (refused,) = check("b", "acd").add(1, ledger("abc"), rules)
    assert refused.reason == "the rules of placement forbid the writable bookies that remain: d on h1"
    assert check("a", "bcd").add(1, ledger("abc"), rules) == []


def test_copies_of_bookies_that_stay_may_move_in_a_closed_ledger() -> None:
    # b and d leave with machine h2. Their positions are between h1 and h3, so two of four bookies of both have to alternate.
    sites = {name: BookieSite(host) for name, host in {"a": "h1", "x": "h1", "b": "h2", "d": "h2", "c": "h3", "y": "h3"}.items()}
    rules = PlacementRules(2, sites)
    assert check("bd", "acxy").add(1, ledger("abcd", write_quorum=2), rules) == []
    (refused,) = check("bd", "acxy").add(1, ledger("abcd", write_quorum=2, closed=False), rules)
    assert "forbid" in refused.reason, "the ensemble of an open ledger is its writer's"
