"""Fixtures for pytest, loaded by ``pytest_plugins = ["triplicate.testing.plugin"]`` in a ``conftest.py``.

There is no entry point `pytest11`. With one, pytest would rewrite the assertions of the whole package in every run.

`triplicate_cluster` is one cluster for the whole run, with one bookie and ports for clients of PostgreSQL and Redis on 127.0.0.1.
`triplicate_log`, `triplicate_database` and `triplicate_key_value` are a new log, database and key-value store in it for each test. A test
that breaks its cluster, or that is async, makes a `triplicate.testing.MemoryCluster` of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from triplicate.testing.shared_cluster import DatabaseOfTest, KeyValueOfTest, LogOfTest, SharedCluster


@pytest.fixture(scope="session")
def triplicate_cluster() -> Iterator[SharedCluster]:
    """A cluster in this process, see `triplicate.testing.SharedCluster`."""
    # Imported here: a run of pytest without such a test does not pay for it.
    from triplicate.testing.shared_cluster import SharedCluster

    with SharedCluster(port=0) as cluster:
        yield cluster


@pytest.fixture
def triplicate_log(triplicate_cluster: SharedCluster) -> Iterator[LogOfTest]:
    """An empty log, deleted after the test."""
    log = triplicate_cluster.new_log()
    yield log
    log.delete()


@pytest.fixture
def triplicate_database(triplicate_cluster: SharedCluster) -> Iterator[DatabaseOfTest]:
    """An empty database, dropped after the test. `dsn()` is for PostgreSQL's clients, `connect()` for DB-API."""
    database = triplicate_cluster.new_database()
    yield database
    database.drop()


@pytest.fixture
def triplicate_key_value(triplicate_cluster: SharedCluster) -> Iterator[KeyValueOfTest]:
    """An empty key-value store, dropped after the test. `url()` is for clients of Redis."""
    store = triplicate_cluster.new_key_value()
    yield store
    store.drop()
