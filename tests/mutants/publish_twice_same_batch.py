"""A publisher's last batch is not checked, so a repeated publish adds its records again."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/log/publishing/test_publication.py::test_a_batch_is_published_once"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.publishing import publication

    patch(publication, "is_old_batch", lambda state, batch: False)
