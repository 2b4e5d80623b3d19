"""A put without conditions takes the key it replaces for one without a deadline, which then expires the new value."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.kv.core import decisions

TESTS = [
    "tests/property/test_decisions.py::test_a_plain_put_is_decided_as_in_a_batch_with_others",
]
_decided_put = decisions._decided_put


def forgetful(put: object, stored: object, *others: object) -> object:
    return _decided_put(put, None if stored is None else stored._replace(deadline_ms=0), *others)  # type: ignore[arg-type, attr-defined]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(decisions, "_decided_put", forgetful)
