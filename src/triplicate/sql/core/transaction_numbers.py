"""The ids of transactions. Pure."""

from __future__ import annotations


def transaction_id(epoch: int, number: int) -> int:
    """The 64-bit id that ``pg_current_xact_id()`` shows."""
    return epoch << 40 | number
