"""Checking the settings of a log, and changing those of one that exists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace

from triplicate.config.log_settings import LogSettings
from triplicate.config.values import convert
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
        if type(value) is not kind and (kind, type(value)) != (float, int):
            raise ArgumentError(f"{name} is {value!r}, and must be of type {kind.__name__}")
        try:
            checked[name] = convert(value, kind, known[name].metadata["setting"])
        except ValueError as error:
            raise ArgumentError(f"{name} is {value!r}: {error}") from None
    return replace(settings, **checked)  # type: ignore[arg-type]


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
