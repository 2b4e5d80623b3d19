"""Entries that are acknowledged only in several fault domains."""

from __future__ import annotations

import pytest

from triplicate.ledger import AckDomains, AdvDomainWriteTracker, DomainWriteTracker


def domains_of(letters: str, needed: int = 2) -> AckDomains:
    """One letter for the domain of each position."""
    return AckDomains(needed, tuple(1 << "xyz".index(letter) for letter in letters))


def tracker(domains: str, write_quorum: int = 3, ack_quorum: int = 2, pushed: int = 3, needed: int = 2) -> DomainWriteTracker:
    """On the bookies a, b, c …, one per letter of `domains`."""
    made = DomainWriteTracker("abcdef"[: len(domains)], write_quorum, ack_quorum, domains_of(domains, needed))
    made.push(pushed)
    return made


def adv_tracker(domains: str, *entry_ids: int) -> AdvDomainWriteTracker:
    made = AdvDomainWriteTracker("abc", 3, 2, domains_of(domains))
    for entry_id in entry_ids:
        made.push(entry_id)
    return made


def test_an_ack_quorum_in_one_domain_confirms_nothing() -> None:
    made = tracker("xxy")
    made.acknowledge("a", [0, 1, 2])
    made.acknowledge("b", [0, 1, 2])
    assert (made.advance(), made.waiting_for_domains) == (-1, 3)
    made.acknowledge("c", [0, 1])
    assert (made.advance(), made.waiting_for_domains) == (1, 1)


def test_an_ack_quorum_in_two_domains_is_enough() -> None:
    made = tracker("xxy")
    made.acknowledge("b", [0])
    made.acknowledge("c", [0])
    assert (made.advance(), made.waiting_for_domains) == (0, 0)


def test_domains_may_need_more_bookies_than_the_ack_quorum() -> None:
    made = tracker("xyz", ack_quorum=1, needed=3)
    for bookie_id in "ab":
        made.acknowledge(bookie_id, [0])
        assert made.advance() == -1
    made.acknowledge("c", [0])
    assert made.advance() == 0


def test_many_domains_do_not_replace_the_ack_quorum() -> None:
    made = tracker("xyz", ack_quorum=3)
    made.acknowledge("a", [0])
    made.acknowledge("b", [0])
    assert (made.advance(), made.waiting_for_domains) == (-1, 0)


def test_single_acknowledgements_say_when_confirmation_is_due() -> None:
    made = tracker("xxy")
    assert made.acknowledge_next("a", 0) is False
    assert made.acknowledge_next("b", 0) is False, "an ack quorum in one domain"
    assert made.acknowledge_next("c", 0) is True
    assert made.advance() == 0


def test_every_stripe_spans_its_own_domains() -> None:
    # Entry 0 is on a and b, entry 1 on b and c, entry 2 on c and d, entry 3 on d and a.
    made = tracker("xxyy", write_quorum=2, ack_quorum=1, pushed=4)
    for bookie_id, entry_ids in (("b", [0, 1]), ("c", [1, 2]), ("d", [2, 3]), ("a", [3])):
        made.acknowledge(bookie_id, entry_ids)
    assert (made.advance(), made.waiting_for_domains) == (-1, 4)
    made = tracker("xyxy", write_quorum=2, ack_quorum=1, pushed=4)
    for bookie_id, entry_ids in (("a", [0]), ("b", [0, 1]), ("c", [1, 2])):
        made.acknowledge(bookie_id, entry_ids)
    assert made.advance() == 1
    made.acknowledge("d", [2, 3])
    assert (made.advance(), made.waiting_for_domains) == (2, 1)


def test_answers_out_of_order_count_for_their_domains() -> None:
    made = tracker("xxy")
    made.acknowledge("a", [0, 1, 2])
    made.acknowledge("c", [2, 1])
    assert made.advance() == -1
    made.acknowledge("b", [0])
    assert made.advance() == -1
    made.acknowledge("c", [0])
    assert made.advance() == 2


def test_the_loss_of_the_last_bookie_of_a_domain_endangers_the_ledger() -> None:
    made = tracker("xxy")
    made.suspend("a")
    assert not made.is_endangered
    made.resume(0)
    made.suspend("c")
    assert made.is_endangered
    assert not tracker("xxy", needed=1).is_endangered


def test_a_replaced_bookie_brings_its_own_domain() -> None:
    made = tracker("xxy")
    for bookie_id in "abc":
        made.acknowledge(bookie_id, [0])
    assert made.advance() == 0
    made.suspend("c")
    made.begin_change()
    made.acknowledge("a", [1])
    made.acknowledge("b", [1])
    assert made.replace("abd", domains_of("xxx")) == [2]
    made.end_change()
    made.acknowledge("d", [1])
    assert made.advance() == 0, "three bookies of one domain"
    made.begin_change()
    made.replace("abe", domains_of("xxz"))
    made.end_change()
    made.acknowledge("e", [1])
    assert made.advance() == 1


def test_a_bookie_of_unknown_domain_counts_for_the_quorum_alone() -> None:
    made = tracker("xxy")
    made.begin_change()
    made.replace("abd")
    made.end_change()
    for bookie_id in "abd":
        made.acknowledge(bookie_id, [0])
    assert made.advance() == -1


def test_the_number_of_domains_is_limited_to_those_that_are_left() -> None:
    assert domains_of("xyz", needed=3).limited((2,), 3) == domains_of("xyz", needed=2)
    assert domains_of("xxy").limited((), 3) == domains_of("xxy")
    assert domains_of("xxyy").limited((), 2) == domains_of("xxyy", needed=1), "one stripe has one domain"
    made = tracker("xxy")
    made.acknowledge("a", [0])
    made.acknowledge("b", [0])
    made.limit_domains([2])
    assert made.advance() == 0


def test_every_position_has_a_domain() -> None:
    with pytest.raises(AssertionError, match="every position has a domain"):
        DomainWriteTracker("abc", 3, 2, domains_of("xy"))


def test_chosen_ids_are_acknowledged_in_several_domains() -> None:
    made = adv_tracker("xxy", 1, 0, 5)
    for bookie_id in "ab":
        made.acknowledge(bookie_id, [0, 1, 5])
    assert (made.advance(), made.waiting_for_domains) == (-1, 2)
    made.acknowledge("c", [0, 5])
    assert (made.advance(), made.waiting_for_domains) == (0, 1)
    made.suspend("c")
    assert made.is_endangered
    made.begin_change()
    assert made.waiting_for_domains == 0
    made.replace("abd", domains_of("xxz"))
    made.end_change()
    made.acknowledge("d", [1])
    assert made.advance() == 1
