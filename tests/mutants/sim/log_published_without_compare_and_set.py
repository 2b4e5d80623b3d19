"""A publish overwrites any version of the head, so segments published in between leave the list."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

KIND = "logs"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.publishing import publication
    from triplicate.log.store.head_store import HeadStore
    from triplicate.metadata import ANY_VERSION

    original = publication.publish

    async def publish(client: Any, store: HeadStore, *args: Any, **options: Any) -> Any:
        careless = copy.copy(store)
        careless.expected_version = lambda stored: ANY_VERSION  # type: ignore[method-assign]
        return await original(client, careless, *args, **options)

    patch(publication, "publish", publish)
