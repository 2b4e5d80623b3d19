"""Functions that the tests of the stages wrap."""

from __future__ import annotations

from collections.abc import Iterator


def double(value: int) -> int:
    return 2 * value


imported_double = double


def use(value: int) -> int:
    return imported_double(value)


def numbers() -> Iterator[int]:
    yield 1
