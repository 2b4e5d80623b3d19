"""Every role sees where the operator keeps the backups."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/sql/hosting/test_live_sources.py::test_backups_are_shown_and_their_places_to_superusers_only"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.core.live_rows import LiveRequest

    patch(LiveRequest, "is_superuser", True)
