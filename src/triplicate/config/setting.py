"""One setting: its default, unit, bounds, meaning, and BookKeeper's name for it.

Settings are fields of frozen dataclasses, one per process or room, made by `setting`. The loader, the command line's
flags, the environment variables and the reference page are derived from these fields, so they cannot disagree.
"""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True, slots=True)
class SettingInfo:
    """The description of a setting beside its name, type and default."""

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
        default: the default value. Its type is the field's type.
        help: what the setting does and when to change it.
        unit: for example ``bytes``, ``seconds``, ``entries``.
        low: least value allowed. high: greatest value allowed.
        choices: for text that must be one of these.
        bookkeeper: the equivalent key of Apache BookKeeper's configuration.
    """
    info = SettingInfo(help, unit, low, high, choices, bookkeeper)
    return dataclasses.field(default=default, metadata={"setting": info})
