"""``SELECT setval(pg_get_serial_sequence(table, column), max(column)) FROM table``, which Django sends after it has loaded rows. Pure.

The statement makes the next number greater than the existing ones, which it always is here. So the server returns the result of `setval`
and changes nothing. Any other call of `setval` is refused.
"""

from __future__ import annotations

import re

from triplicate.sql.core.lexer import Statement, statement_of

_NAME = r'(?:"(?:[^"]|"")+"|[A-Za-z_]\w*)'
_AT_MAXIMUM = re.compile(
    rf"""\s*select\s+setval\s*\(\s*pg_get_serial_sequence\s*\(\s*'[^']*'\s*,\s*'[^']*'\s*\)\s*,
    \s*(?P<value>coalesce\s*\(\s*max\s*\(\s*(?P<column>{_NAME})\s*\)\s*,\s*1\s*\))\s*,
    \s*max\s*\(\s*(?P=column)\s*\)\s*is\s+not\s+null\s*\)\s*from\s+(?P<table>{_NAME})\s*;?\s*""",
    re.IGNORECASE | re.VERBOSE,
)


def number_above_maximum(statement: Statement) -> Statement:
    """A query of the number that `setval` returns; the unchanged statement if it does not have this form."""
    if "setval" not in statement.sql.lower():
        return statement
    match = _AT_MAXIMUM.fullmatch(statement.sql)
    return statement if match is None else statement_of(f"SELECT {match['value']} AS setval FROM {match['table']}")
