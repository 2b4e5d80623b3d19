from __future__ import annotations

import threading
from pathlib import Path

import pytest

import triplicate
from triplicate.errors import HandleClosed
from triplicate.kv import Expiry, KeyRange, Put, StoreBatch, session
from triplicate.log import LogSettings

ONE_COPY = LogSettings(ensemble_size=1, write_quorum=1, ack_quorum=1)


def test_a_store_is_used_without_await(tmp_path: Path) -> None:
    with triplicate.blocking.key_value(tmp_path / "app", "carts") as store:
        assert (store.name, store.is_leader, store.leader, store.address) == ("carts", True, None, None)
        _, position = store.put(b"a", b"1", expiry=Expiry(after_ms=60_000))
        assert (store.get(b"a", session(position)).value, store.compare_and_set(b"a", b"1", b"2")) == (b"1", True)
        store.execute(StoreBatch([Put(b"b%03d" % number, b"x" * 1000) for number in range(200)]))
        assert [key for key, _ in store.items(KeyRange.prefix(b"b"), page_keys=70)] == [b"b%03d" % number for number in range(200)]
        assert (store.delete(b"a", b"b000", b"c")[0], store.count().number) == (2, 199)
    store.close()
    with pytest.raises(HandleClosed):
        store.get(b"a")
    with triplicate.blocking.key_value(tmp_path / "app", "carts", create=False) as store:
        assert store.count().number == 199


def test_a_database_and_a_store_share_a_node() -> None:
    with triplicate.blocking.database("memory:") as database:
        with triplicate.blocking.key_value(database) as store:
            store.put(b"a", b"1")
        with triplicate.blocking.key_value(database, create=False) as store:
            assert store.get(b"a").value == b"1"
        database.execute("create table t(a)")


def test_changes_are_waited_for_with_a_limit_and_a_watch_ends_from_another_thread() -> None:
    with triplicate.blocking.key_value("memory:") as store:
        _, position = store.put(b"a1", b"1")
        store.put(b"b1", b"1")
        store.delete(b"a1")
        with store.watch(b"a", position) as watch:
            assert [change.key for change in next(watch)] == [b"a1"]
            assert watch.next_changes(0.01) == ()
            store.put(b"a2", b"2")
            assert [change.value for change in watch.next_changes(60)] == [b"2"]
            assert watch.position == store.position
            seen: list[bytes] = []
            waits = threading.Thread(target=lambda: seen.extend(change.key for changes in watch for change in changes))
            waits.start()
            store.put(b"a3", b"3")
            while not seen:
                store.count()
        waits.join(60)
        assert (seen, waits.is_alive()) == ([b"a3"], False)


def test_the_stores_of_a_cluster_are_made_listed_and_dropped(tmp_path: Path) -> None:
    uri = f"sqlite://{tmp_path}/app/metadata.db"
    with triplicate.blocking.key_value(tmp_path / "app"), triplicate.blocking.connect(uri) as client:
        assert client.stores().names() == ["main"]
        assert client.stores().info("main").leader == "embedded"
        client.stores().create("other", ONE_COPY)
        assert client.stores().names() == ["main", "other"]
        client.stores().drop("other")
        assert client.stores().names() == ["main"]
