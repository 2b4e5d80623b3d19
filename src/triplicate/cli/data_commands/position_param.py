"""Positions in logs on the command line."""

from __future__ import annotations

import datetime
from typing import Any

import click

from triplicate.log import EARLIEST, LATEST, Position


class PositionParam(click.ParamType[Position]):
    """An offset, ``earliest``, ``latest``, or a time with its zone in ISO 8601."""

    name = "position"

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> Position:
        if value in (EARLIEST, LATEST) or isinstance(value, int | datetime.datetime):
            return value  # type: ignore[no-any-return]
        if str(value).isdecimal():
            return int(value)
        try:
            time = datetime.datetime.fromisoformat(str(value))
        except ValueError:
            wanted = f"an offset, {EARLIEST}, {LATEST} or a time such as 2026-11-26T12:00:00Z"
            self.fail(f"{value!r} is no position; give {wanted}", param, context)
        if time.tzinfo is None:
            self.fail(f"the time {value!r} has no zone; add one, for example Z", param, context)
        return time
