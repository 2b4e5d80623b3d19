"""A publish accepts ledgers with another password than the log's, which readers then cannot open."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/log/publishing/test_publication.py::test_ledgers_that_no_reader_of_the_log_could_open_are_not_published[False]",
    "tests/unit/log/publishing/test_publication.py::test_a_writer_does_not_list_ledgers_that_it_could_not_open",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.publishing import publication

    async def unseen(*_: object) -> None:
        return

    patch(publication, "check_password", unseen)
