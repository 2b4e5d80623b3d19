"""The explicit last-add-confirmed names the last entry that was sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from triplicate.client.adds import LedgerAdds

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.client.explicit_lac import ExplicitLac

    tell = ExplicitLac._tell

    def tell_all(self: ExplicitLac, last_add_confirmed: int) -> None:
        tell(self, cast("LedgerAdds", self._adds).last_add_pushed)

    patch(ExplicitLac, "_tell", tell_all)
