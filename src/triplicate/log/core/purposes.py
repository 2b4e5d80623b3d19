"""The purpose of a log decides which programs may change it. Every program may read it."""

from __future__ import annotations

from triplicate.config.log_settings import LogSettings
from triplicate.errors import ArgumentError, LogReserved
from triplicate.log.core.head import USER, Head, Purpose, PurposeKind

_INSTEAD = {
    PurposeKind.DATABASE: "`triplicate sql {name}` changes it, `triplicate database drop {name}` deletes it",
    PurposeKind.KEY_VALUE: "its records are changed through the store of that name, `triplicate kv drop {name}` deletes it",
    PurposeKind.PIPELINE: "it is written by the pipeline of that name, and deleted with it",
}


def check_purpose(log: str, head: Head, acting_for: Purpose) -> None:
    """Check that a program may change a log.

    Args:
        acting_for: the purpose for which the program acts. It must be the log's, except that every program may change a user's log.

    Raises:
        LogReserved: the message names the log's purpose and the commands to use instead.
    """
    purpose = head.purpose
    if purpose in (USER, acting_for):
        return
    raise LogReserved(
        f"log {log!r} belongs to {purpose} and is changed by nothing else: {_INSTEAD[purpose.kind].format(name=purpose.name)}"
    )


def deletion_advice(log: str, purpose: Purpose) -> str:
    """How the ledgers of a log are deleted by those that may."""
    if purpose.kind is PurposeKind.USER:
        return f"`triplicate log truncate {log} OFFSET` deletes its oldest records, `triplicate log delete {log}` all of them"
    return _INSTEAD[purpose.kind].format(name=purpose.name)


def check_retention(log: str, settings: LogSettings, purpose: Purpose) -> None:
    """Check that retention does not remove records from a log that its owner still needs.

    Raises:
        ArgumentError: retention by age or size is configured for the log of a database or a key-value store, which is truncated behind its
            snapshots.
    """
    if purpose.kind in (PurposeKind.DATABASE, PurposeKind.KEY_VALUE) and (settings.retain_age_s > 0 or settings.retain_size_bytes > 0):
        raise ArgumentError(
            f"log {log!r} belongs to {purpose} and allows no retain_age_s or retain_size_bytes, which would remove records that no "
            "snapshot holds yet. Its leader truncates it behind snapshots: see node.snapshot_log_bytes and node.snapshot_keep_log_s"
        )
