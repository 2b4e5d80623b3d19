"""Errors of commands, in the words that clients of Redis know."""

from __future__ import annotations


class CommandError(Exception):
    """A command is refused. The text begins with its code."""


NOT_AN_INTEGER = "ERR value is not an integer or out of range"
OVERFLOW = "ERR increment or decrement would overflow"
NOT_A_FLOAT = "ERR value is not a valid float"
SYNTAX = "ERR syntax error"
