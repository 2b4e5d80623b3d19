"""One setting: its default, unit, bounds, meaning, and BookKeeper's name for it.

Settings live in frozen dataclasses, one per process or room, whose fields are made by `setting`. The loader, the command line's
flags, the environment variables and the reference page are all derived from these fields, so none of them can drift.
"""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True, slots=True)
class SettingInfo:
    """What is known about a setting beside its name, type and default."""

    help: str
    unit: str
    low: float | None
    high: float | None
    choices: tuple[str, ...]
    bookkeeper: str | None


def setting(
    default: Any,
    help: str,
    *,
    unit: str = "",
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] = (),
    bookkeeper: str | None = None,
) -> Any:
    """A dataclass field that carries a `SettingInfo` under the key ``setting``.

    Args:
        default: the value where nothing is said; its type is the field's type.
        help: one sentence: what it does and when to change it.
        unit: for example ``bytes``, ``seconds``, ``entries``.
        low: least value allowed. high: greatest value allowed.
        choices: for text that must be one of these.
        bookkeeper: the key of Apache BookKeeper's configuration that means the same.
    """
    info = SettingInfo(help, unit, low, high, choices, bookkeeper)
    return dataclasses.field(default=default, metadata={"setting": info})
