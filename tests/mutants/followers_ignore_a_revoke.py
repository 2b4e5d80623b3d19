"""A follower keeps the rights that it had when it began to follow."""

from __future__ import annotations

from collections.abc import Callable, Sequence

TESTS = ["tests/unit/sql/engine/test_session_rights.py::test_a_follower_checks_by_its_own_copy_and_follows_a_revoke"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.engine.local_copy import AppliedState, LocalCopy
    from triplicate.sql.storage.applier import LogBatch

    original = LocalCopy.apply

    def apply_batches(self: LocalCopy, batches: Sequence[LogBatch]) -> AppliedState:
        before = self.access
        applied = original(self, batches)
        if before.grants:  # The first grant arrives.
            self.access = before
        return applied._replace(access=self.access)

    patch(LocalCopy, "apply", apply_batches)
