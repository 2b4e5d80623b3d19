"""Known addresses are bounded in number, and no address belongs to two bookies."""

from __future__ import annotations

from triplicate.metadata import BookieServiceInfo, bookie_service
from triplicate.metadata.core.known_addresses import KnownAddresses


def test_of_too_many_bookies_the_one_read_longest_ago_is_forgotten() -> None:
    known = KnownAddresses(most=3)
    for number in range(3):
        known.remember(f"b{number}", bookie_service("h", number))
    known.remember("b0", bookie_service("h", 0))
    known.remember("b3", bookie_service("h", 3))
    assert [known.get(f"b{number}") is not None for number in range(4)] == [True, False, True, True]
    assert len(known) == len(known._holders) == 3


def test_a_bookie_has_the_address_that_was_read_last_and_nobody_else_has_it() -> None:
    known = KnownAddresses()
    known.remember("a", bookie_service("h", 1))
    known.remember("a", bookie_service("h", 2))
    known.remember("b", bookie_service("h", 1))
    assert known.get("a") == bookie_service("h", 2)
    known.remember("b", bookie_service("h", 2))
    assert known.get("a") is None
    known.remember("b", BookieServiceInfo(()))
    assert known.get("b") is None
    known.forget("b")
    assert len(known) == len(known._holders) == 0


def test_a_machine_is_known_although_the_address_is_forgotten() -> None:
    """Placement counts machines that are away, so that copies do not share the one that is left."""
    known = KnownAddresses(most=2)
    known.remember("a", bookie_service("h", 1))
    known.forget("a")
    assert known.get("a") is None
    assert known.all() == {"a": bookie_service("h", 1)}
    known.remember("b", bookie_service("i", 1))
    known.remember("c", bookie_service("j", 1))
    assert list(known.all()) == ["b", "c"]
