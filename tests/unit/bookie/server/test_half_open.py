"""The number of connections that are not admitted is limited: in total, and for each address."""

from __future__ import annotations

from dataclasses import dataclass

from triplicate.bookie.server.half_open import HalfOpen


@dataclass(eq=False)
class Somebody:
    address: str = "a"

    def refuse(self, reason: str) -> None:
        raise AssertionError("the caller refuses")


def test_the_oldest_is_dropped_beyond_the_limit() -> None:
    half_open = HalfOpen(3, 10)
    guests = [Somebody(f"h{number}") for number in range(5)]
    assert [half_open.join(guest) for guest in guests] == [None, None, None, guests[0], guests[1]]
    assert list(half_open) == guests[2:]


def test_the_oldest_of_an_address_is_dropped_beyond_its_limit() -> None:
    half_open = HalfOpen(10, 2)
    others, ours = [Somebody("b") for _ in range(2)], [Somebody() for _ in range(3)]
    assert [half_open.join(guest) for guest in (*others, *ours)] == [None, None, None, None, ours[0]]
    assert len(half_open) == 4


def test_leaving_twice_counts_once_and_makes_room() -> None:
    half_open = HalfOpen(2, 2)
    first, second, third = Somebody(), Somebody(), Somebody()
    half_open.join(first)
    half_open.join(second)
    half_open.leave(first)
    half_open.leave(first)
    assert len(half_open) == 1
    assert half_open.join(third) is None
