"""Request ids that say when they were issued.

An id with a time in it can be told to be old after it has been forgotten: its time lies before everything that is still kept. An id
without one cannot, so a fingerprint of it stays for good.
"""

from __future__ import annotations

import hashlib
import re

_UUID_7 = re.compile(r"([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.IGNORECASE)
_MILLISECONDS = re.compile(r"([0-9]{13}):.+", re.DOTALL)


def issued_ms(request_id: str) -> int | None:
    """When an id was issued, in ms since the epoch: a UUID of version 7, or 13 digits, a colon and anything. None: it does not say.

    Part of the local file's format: every copy must read the same time from an id.
    """
    found = _MILLISECONDS.fullmatch(request_id)
    if found is not None:
        return int(found[1])
    found = _UUID_7.fullmatch(request_id)
    return None if found is None else int(found[1] + found[2], 16)


def fingerprint(request_id: str) -> int:
    """A signed 64-bit number that stands for an id without a time after it has been forgotten. Part of the local file's format."""
    return int.from_bytes(hashlib.blake2b(request_id.encode(), digest_size=8).digest(), "little", signed=True)
