"""Changing the settings of a log that exists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace

from triplicate.config.log_settings import LogSettings
from triplicate.config.setting import SettingInfo
from triplicate.errors import ArgumentError
from triplicate.log.core.head import Head, LogSegment, Page
from triplicate.log.core.head_changes import Change, rewrite
from triplicate.log.core.quorums import full_quorums, reduced_quorums


def altered_settings(settings: LogSettings, changes: Mapping[str, int | float | str]) -> LogSettings:
    """Some settings with others changed.

    Raises:
        ArgumentError: an unknown name, a value of another type, or out of its bounds.
    """
    known = {field.name: field for field in fields(LogSettings)}
    checked: dict[str, int | float | str] = {}
    for name, value in changes.items():
        if name not in known:
            raise ArgumentError(f"a log has no setting {name!r}: choose one of {', '.join(known)}")
        kind = type(known[name].default)
        if kind is float and type(value) is int:
            value = float(value)
        if type(value) is not kind:
            raise ArgumentError(f"{name} is {value!r}, and must be of type {kind.__name__}")
        _check_bounds(name, value, known[name].metadata["setting"])
        checked[name] = value
    return replace(settings, **checked)  # type: ignore[arg-type]


def _check_bounds(name: str, value: int | float | str, info: SettingInfo) -> None:
    if isinstance(value, str):
        if info.choices and value not in info.choices:
            raise ArgumentError(f"{name} is {value!r}: choose one of {', '.join(info.choices)}")
        return
    if not (info.low is None or value >= info.low) or not (info.high is None or value <= info.high):
        raise ArgumentError(f"{name} is {value}, and must be from {info.low:g} to {info.high:g} {info.unit}")


def alter_settings(head: Head, settings: LogSettings, pages: Mapping[int, Page], token: str) -> Change:
    """A log gets other settings. Segments with fewer copies than these ask for are marked as reduced, others lose that mark.

    Args:
        pages: all pages, if the quorums change.
    """

    def mark(segment: LogSegment) -> LogSegment:
        copies = segment.reduced if segment.reduced is not None else full_quorums(head.settings)
        return replace(segment, reduced=reduced_quorums(settings, copies))

    changed = replace(head, settings=settings, token=token)
    if full_quorums(settings) == full_quorums(head.settings):
        return Change(changed)
    if head.open is not None:
        changed = replace(changed, open=mark(head.open))
    return rewrite(changed, pages, mark, lambda reference: True)
