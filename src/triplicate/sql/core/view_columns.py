"""The types of a view's columns, which a comment in the stored CREATE VIEW keeps. Pure.

SQLite knows the declared type of a column only where it is a column of a table. The comment has the others, one for each column of the
view, and ``-`` for a column whose type SQLite knows:

    CREATE VIEW v("id", "due") AS /* types 1 | - | date */ SELECT …

The number is the version of the form. In version 1 ``?`` is an unknown type, and numeric(1000,s) a numeric with s digits after the point
whose precision is not declared.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_VERSION = 1
_NAME = r'(?:"(?:[^"]|"")*"|[^\s"(]+)'
_COMMENT = re.compile(
    rf"\s*CREATE\s+VIEW\s+(?:IF\s+NOT\s+EXISTS\s+)?{_NAME}\s*\((?:\"(?:[^\"]|\"\")*\"|[^\"()])*\)\s*AS\s+"
    r"/\* types ([0-9]+)((?: \| [\w?-][\w ,()]*)*) \*/",
    re.IGNORECASE,
)
_SUFFIX = " COMPUTED"
"""The end of the declared type of a view's column that is computed. Its numerics may have more digits than a column stores."""
PLAIN = "-"
UNKNOWN = "?"
PRECISION_MAX = 1000
_UNDECLARED = re.compile(rf"numeric\({PRECISION_MAX},\d+\)")


def types_comment(declared: Sequence[str]) -> str:
    """The comment for these types of columns, which stands behind AS."""
    return f"/* types {_VERSION} | {' | '.join(declared)} */"


def has_types(sql: str) -> bool:
    """Whether a CREATE VIEW has the comment, in any version: its query is in SQLite's words."""
    return _COMMENT.match(sql) is not None


def view_columns(sql: str, columns: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The columns of a view with the types of the comment. Those that are computed end with a mark, see `split_computed`.

    Args:
        sql: its CREATE VIEW. columns: name and declared type of each, as SQLite has them.
    """
    found = _COMMENT.match(sql)
    kept = found[2].split(" | ")[1:] if found is not None and int(found[1]) == _VERSION else []
    if len(kept) != len(columns):
        return list(columns)
    return [
        (name, declared if one == PLAIN else ("" if one == UNKNOWN else one) + _SUFFIX)
        for (name, declared), one in zip(columns, kept, strict=True)
    ]


def split_computed(declared: str) -> tuple[str, bool]:
    """(declared type without the mark, whether the column is computed by a view)"""
    return declared.removesuffix(_SUFFIX), declared.endswith(_SUFFIX)


def shown_type(declared: str) -> str:
    """The declared type of a view's column for the catalogue."""
    declared = split_computed(declared)[0]
    return "numeric" if _UNDECLARED.fullmatch(declared) else declared
