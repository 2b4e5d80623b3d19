"""A living writer that lacks the key of a rotation ends at its next roll, in place of going on with the key that it has."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/log/test_logs_encrypted.py::test_a_living_writer_without_the_new_key_goes_on_with_the_one_it_has"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.core.encryption import LedgerEncryptor
    from triplicate.log.writing.segment_transitions import SegmentTransitions

    def strict(self: SegmentTransitions, ledger_id: int) -> LedgerEncryptor | None:
        return self._encryption.of_writer(self.name, self.log_id, self._key_id, ledger_id)

    patch(SegmentTransitions, "_encryptor_of", strict)
