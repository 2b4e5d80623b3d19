"""Fault points in real processes: a register of names, and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from triplicate.errors import ArgumentError
from triplicate.runtime import fault_point, fault_points


def plain() -> int:
    return 1


def plain_too() -> int:
    return 1


def named() -> int:
    return 1


async def waits() -> int:
    return 2


class Owner:
    def method(self) -> int:
        return 3


async def generates() -> AsyncIterator[int]:
    yield 1


def test_the_function_is_handed_back_as_it_is() -> None:
    before = plain.__code__, dict(vars(plain))
    assert fault_point("test.handed_back")(plain) is plain
    assert (plain.__code__, dict(vars(plain))) == before
    assert fault_point("test.handed_back_async")(waits) is waits


def test_a_point_is_registered_with_the_place_of_its_function() -> None:
    fault_point("test.method")(Owner.method)
    fault_point("test.handed_back_async")(waits)
    point = fault_points()["test.method"]
    assert (point.name, point.module, point.qualified_name, point.is_async) == ("test.method", __name__, "Owner.method", False)
    assert fault_points()["test.handed_back_async"].is_async


def test_a_name_taken_by_another_function_is_refused_and_the_same_function_again_is_not() -> None:
    fault_point("test.taken")(plain_too)
    fault_point("test.taken")(plain_too)
    with pytest.raises(ArgumentError, match=r"test\.taken is .*plain_too already"):
        fault_point("test.taken")(Owner.method)
    assert fault_points()["test.taken"].qualified_name == "plain_too"


def test_a_second_name_for_one_function_is_refused() -> None:
    fault_point("test.named")(named)
    with pytest.raises(ArgumentError, match=r"named is test\.named already"):
        fault_point("test.named_again")(named)
    assert "test.named_again" not in fault_points()


@pytest.mark.parametrize("name", ["", "client", "Client.write", "client.", "client.before write", "client..x"])
def test_a_malformed_name_is_refused(name: str) -> None:
    with pytest.raises(ArgumentError, match="no name of a fault point"):
        fault_point(name)


def test_what_cannot_be_wrapped_is_refused() -> None:
    def local() -> None: ...

    with pytest.raises(ArgumentError, match="created at each call"):
        fault_point("test.local")(local)
    with pytest.raises(ArgumentError, match="generator"):
        fault_point("test.generator")(generates)
    with pytest.raises(ArgumentError, match="beneath staticmethod"):
        fault_point("test.builtin")(len)
    assert "test.local" not in fault_points()
