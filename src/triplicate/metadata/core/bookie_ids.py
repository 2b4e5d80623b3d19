"""The ids that a bookie may have."""

from __future__ import annotations

import re

from triplicate.errors import ArgumentError

_BOOKIE_ID = re.compile(r"[a-zA-Z0-9:-_.\-]+", re.ASCII)


def is_bookie_id(bookie_id: str) -> bool:
    """Whether Apache's clients accept the id. ``:-_`` is a range in their pattern too, so ``;<=>?@[\\]^`` are accepted.

    Source: BookKeeper `BookieId`.
    """
    return _BOOKIE_ID.fullmatch(bookie_id) is not None and bookie_id.lower() != "readonly"


def check_bookie_id(bookie_id: str) -> str:
    """Return the id.

    Raises:
        ArgumentError: a node of this name would break the listing of bookies for every Java client.
    """
    # A lone dot passes Apache's pattern and cannot be a node's name.
    if not is_bookie_id(bookie_id) or bookie_id in (".", ".."):
        allowed = "letters, digits, '.', '-', '_', ':' and the like; no '/', no space, not 'readonly'"
        raise ArgumentError(f"{bookie_id!r} is not a bookie id: {allowed}")
    return bookie_id
