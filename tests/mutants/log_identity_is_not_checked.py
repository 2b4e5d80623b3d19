"""A transaction checks that a log is there, and not which one: a late change of a deleted log is applied to the next one of its name."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/log/store/test_head_store_identity.py::test_a_late_transaction_does_nothing_to_the_next_log"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.store.head_store import HeadStore
    from triplicate.metadata import CheckVersion, own_paths

    identity = HeadStore.identity

    async def of_any(self: HeadStore, name: str, log_id: str, *, afresh: bool = False) -> CheckVersion:
        await identity(self, name, log_id, afresh=afresh)
        return CheckVersion(own_paths.identities_path(self.path(name)))

    patch(HeadStore, "identity", of_any)
