"""Adds in bulk need no right."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/bookie/server/test_frame_processor_rights.py::test_adds_in_bulk_are_refused_one_by_one_and_in_order"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.server.frame_processor import FrameProcessor
    from triplicate.security import Rights

    limit = FrameProcessor.limit

    def careless(self: FrameProcessor, rights: Rights) -> None:
        limit(self, Rights(rights.may_read, may_write=True))

    patch(FrameProcessor, "limit", careless)
