"""A setting's bounds let NaN through, which is neither below the least value nor above the greatest."""

import types
from collections.abc import Callable

from triplicate.config import values

TESTS = [
    "tests/unit/config/test_loader.py::test_a_mistake_in_the_file_is_named_with_its_source",
    "tests/unit/log/test_logs_altered.py::test_what_cannot_be_is_refused_and_nothing_changed",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    # Every comparison with it holds.
    patch(values, "math", types.SimpleNamespace(inf=_Anything()))


class _Anything(float):
    def __gt__(self, other: object) -> bool:
        return True
