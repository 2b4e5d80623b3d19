"""The audit log: one line of JSON for each event that concerns access. Its lines go to the logger ``triplicate.audit``."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime

AUDIT_LOGGER = "triplicate.audit"
AUDIT_TEXT_MAX = 500
"""Characters of one value that are written. A client chooses some of them, such as the name of a role."""

_LOG = logging.getLogger(AUDIT_LOGGER)


def audit(event: str, wall_us: int, facts: Mapping[str, object]) -> None:
    """Write one event to the audit log.

    Args:
        event: its name, such as ``login refused``.
        wall_us: its time by `Clock.wall_us`.
        facts: strings, numbers and None. They never contain a password, a verifier or a nonce; the caller sees to it.
    """
    if _LOG.isEnabledFor(logging.INFO):
        _LOG.info("%s", audit_line(event, wall_us, facts))


def audit_line(event: str, wall_us: int, facts: Mapping[str, object]) -> str:
    """The line of an event: JSON in ASCII, so that no value can begin another line. `time` is UTC in ISO 8601."""
    time = datetime.fromtimestamp(wall_us / 1e6, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    fields: dict[str, object] = {"time": time, "event": event}
    for name, value in facts.items():
        fields[name] = value[:AUDIT_TEXT_MAX] if isinstance(value, str) else value
    return json.dumps(fields, separators=(",", ":"))
