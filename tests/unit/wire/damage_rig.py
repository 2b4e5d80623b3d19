"""Random damage to bytes."""

from __future__ import annotations

import random


def damaged(rng: random.Random, data: bytes) -> bytes:
    """The data with a few bytes changed, cut out or put in."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(changed) + 1)
        kind = rng.randrange(4)
        if kind == 0:
            changed[place : place + 1] = bytes([rng.randrange(256)])
        elif kind == 1:
            changed[place:place] = rng.randbytes(rng.randint(1, 9))
        elif kind == 2:
            del changed[place : place + rng.randint(1, 9)]
        elif place < len(changed):
            changed[place] ^= 1 << rng.randrange(8)
    return bytes(changed)
