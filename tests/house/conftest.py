"""The rules read the syntax trees of all files, 1.4 million nodes that stay until the end."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="package", autouse=True)
def no_garbage_collection() -> Iterator[None]:
    """The collector would visit every node again and again: it takes two thirds of the time of reading them."""
    gc.disable()
    yield
    gc.enable()
