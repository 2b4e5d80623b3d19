"""The key store of a secured ZooKeeper is readable by every user of the machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from triplicate.cli.supervision import zookeeper_security

TESTS = [
    "tests/unit/cli/supervision/test_zookeeper_security.py::test_every_file_with_a_secret_is_private_and_the_configuration_has_none",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(zookeeper_security, "_replace_private", Path.write_bytes)
