"""A writer acknowledges an entry as soon as any ack quorum has it, although it must be in several fault domains."""

from __future__ import annotations

from collections.abc import Callable

KIND = "repairs"
CHECKERS = ("acknowledged_entries_span_racks",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.ledger import DomainWriteTracker, WriteTracker

    for name in ("acknowledge_next", "_confirmed_prefix", "_has_ack_quorum"):
        patch(DomainWriteTracker, name, getattr(WriteTracker, name))
