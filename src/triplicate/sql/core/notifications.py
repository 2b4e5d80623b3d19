"""Notifications of NOTIFY: their limits, and their place in the log. Pure.

A transaction's notifications are settings of its record, so they are sent if it commits, on every node that follows, and in the order of
the log. The name of the setting is ``notify:<channel>``, and its value is the payload.
Source: PostgreSQL 15 documentation, "NOTIFY".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from triplicate.errors import SqlError
from triplicate.sql.core.records import Operation, SettingChange

NOTIFY_KIND = "notify"
"""The kind of the settings."""
CHANGES_CHANNEL = "triplicate_changes"
"""The channel on which a node notifies its sessions of commits. Nothing of it is in the log."""
PAYLOAD_BYTES_MAX = 7999
CHANNEL_BYTES_MAX = 63


class Notification(NamedTuple):
    """One notification, and the command that sends it."""

    channel: str
    payload: str


def checked_channel(name: str) -> str:
    """The name of a channel. Raises SqlError 22023: it is empty or too long."""
    if not name:
        raise SqlError("22023", "channel name cannot be empty")
    if len(name.encode()) > CHANNEL_BYTES_MAX:
        raise SqlError("22023", "channel name too long")
    return name


def checked_notification(channel: str, payload: str) -> Notification:
    """A notification that may be sent.

    Raises:
        SqlError: 22023, the channel's name is empty or too long, or the payload is too long; 42939, the channel is the node's own.
    """
    if len(payload.encode()) > PAYLOAD_BYTES_MAX:
        raise SqlError("22023", "payload string too long")
    if checked_channel(channel) == CHANGES_CHANNEL:
        raise SqlError("42939", f'channel name "{CHANGES_CHANNEL}" is reserved', hint="The database sends its commits there.")
    return Notification(channel, payload)


def notification_setting(notification: Notification) -> SettingChange:
    """The setting that a transaction's record has for a notification."""
    return SettingChange(f"{NOTIFY_KIND}:{notification.channel}", notification.payload)


def notifications_of(operations: Iterable[Operation]) -> list[Notification]:
    """The notifications of one transaction, each once, in the order of their first sending."""
    found: dict[Notification, None] = {}
    for operation in operations:
        if isinstance(operation, SettingChange) and operation.name.startswith(f"{NOTIFY_KIND}:"):
            found[Notification(operation.name.partition(":")[2], str(operation.value))] = None
    return list(found)
