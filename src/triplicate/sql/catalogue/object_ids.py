"""Oids of users' objects, which depend on names alone. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

_FIRST_OWN = 16384
"""The first oid of users' objects. PostgreSQL's own objects have lower oids."""


def object_ids(names: Sequence[str]) -> dict[str, int]:
    """Maps each name to an oid of 31 bits: the hash of the name, or the next free oid if two names collide."""
    oids: dict[str, int] = {}
    used: set[int] = set()
    for name in sorted(names):
        oid = _FIRST_OWN + int.from_bytes(hashlib.blake2b(name.encode(), digest_size=4).digest(), "big") % (2**31 - 2 * _FIRST_OWN)
        while oid in used:
            oid += 1
        used.add(oid)
        oids[name] = oid
    return oids
