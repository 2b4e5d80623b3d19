"""The folder of an embedded database is not locked."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/embedded/test_embedded_folder.py::test_a_second_user_of_a_folder_is_refused_and_learns_of_the_first",
    "tests/unit/embedded/test_embedded_database.py::test_a_folder_keeps_its_database_and_admits_one_user",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.embedded.embedded_folder import EmbeddedFolder

    patch(EmbeddedFolder, "_lock", lambda self: None)
