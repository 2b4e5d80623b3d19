"""The cache of what was learned under one version of the schema."""

from __future__ import annotations

import pytest

from triplicate.sql.core.schema_cache import SchemaCache


def test_another_version_empties_the_cache_and_what_comes_late_is_not_remembered() -> None:
    cache: SchemaCache[int] = SchemaCache(10, 100)
    cache.move_to(1)
    cache.remember("a", 1, 1)
    assert cache.get("a") == 1
    cache.move_to(2)
    assert "a" not in cache
    cache.remember("a", 1, 1)
    assert "a" not in cache
    with pytest.raises(KeyError):
        cache.get("a")


def test_the_least_recently_used_entry_goes_first_and_long_keys_are_left_out() -> None:
    cache: SchemaCache[int] = SchemaCache(2, 3)
    cache.move_to(1)
    for key in ("a", "b"):
        cache.remember(key, ord(key), 1)
    assert cache.get("a") == ord("a")
    cache.remember("c", 0, 1)
    cache.remember("long", 0, 1)
    assert ("a" in cache, "b" in cache, "c" in cache, "long" in cache) == (True, False, True, False)
    assert (len(cache), sum(map(len, cache._entries))) == (2, 2)
