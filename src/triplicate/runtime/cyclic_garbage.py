"""Tuning of Python's cyclic garbage collector for servers. Source: the documentation of Python's module `gc`."""

from __future__ import annotations

import gc

YOUNG_OBJECTS = 20_000
"""Objects allocated, less those freed, that cause a collection of the young ones. Python's default is 700."""


def collect_garbage_seldom() -> None:
    """Let this process look for cyclic garbage in its new objects only, and seldom.

    Nearly all objects of a server are freed by their reference counts, so a collection mostly walks over objects that live: modules, plans,
    connections. Objects that exist now, such as those of the imported modules, are never walked over again. Cyclic garbage is bounded
    by the threshold.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, *gc.get_threshold()[1:])
