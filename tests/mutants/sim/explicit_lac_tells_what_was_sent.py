"""The explicit last-add-confirmed names the last entry that was sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from triplicate.client.write.add_pipeline import AddPipeline

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.client.write.explicit_lac import ExplicitLacUpdater

    tell = ExplicitLacUpdater._tell

    def tell_all(self: ExplicitLacUpdater, last_add_confirmed: int) -> None:
        tell(self, cast("AddPipeline", self._adds).last_add_pushed)

    patch(ExplicitLacUpdater, "_tell", tell_all)
