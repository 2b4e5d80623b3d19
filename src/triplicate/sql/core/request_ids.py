"""Request ids and the times in them.

An id with a time in it is recognised as old after its results were deleted: its time lies before all stored results. An id without a
time is not, so its fingerprint is stored for good.
"""

from __future__ import annotations

import hashlib
import re

from triplicate.errors import SqlError

CHARACTERS_MAX = 200
_UUID_7 = re.compile(r"([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.IGNORECASE)
_MILLISECONDS = re.compile(r"([0-9]{13}):.+", re.DOTALL)


def issued_ms(request_id: str) -> int | None:
    """The time in an id, in ms since the epoch: of a UUID of version 7, or of 13 digits that a colon follows. None for other ids.

    Part of the local file's format: every copy must read the same time from an id.
    """
    found = _MILLISECONDS.fullmatch(request_id)
    if found is not None:
        return int(found[1])
    found = _UUID_7.fullmatch(request_id)
    return None if found is None else int(found[1] + found[2], 16)


def fingerprint(request_id: str) -> int:
    """A signed 64-bit hash that is stored for an id without a time once its results are deleted. Part of the local file's format."""
    return int.from_bytes(hashlib.blake2b(request_id.encode(), digest_size=8).digest(), "little", signed=True)


def own_request_id(request_id: str, role: str | None) -> str:
    """The id by which a request is stored. Its results are for the role that made it: the same id of another role is another request.

    Args:
        role: None for the administrator.

    Raises:
        SqlError: 22023, the id is empty or too long.
    """
    if not 0 < len(request_id) <= CHARACTERS_MAX:
        raise SqlError("22023", f"a request id has 1 to {CHARACTERS_MAX} characters")
    if role is None:
        return request_id
    issued = issued_ms(request_id)
    return f"@{role}:{request_id}" if issued is None else f"{issued:013d}:@{role}:{request_id}"
