"""A key file that everybody may read is used."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/log/store/test_key_file.py::test_a_file_that_others_may_read_is_refused_with_the_cure[416]"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.store import key_file

    patch(key_file, "check_private", lambda *_: None)
