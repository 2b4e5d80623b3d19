"""From PostgreSQL's SQL to SQLite's: types of parameters and results, and the text that SQLite runs. Pure."""

from __future__ import annotations

from triplicate.sql.pg.translate.render import TargetContext
from triplicate.sql.pg.translate.translation import ColumnsByTable, KeysByTable, SuppliedParameter, Translation, named_tables, translate
from triplicate.sql.pg.values.array_parameters import ELEMENT_OF, decode_array
from triplicate.sql.pg.values.datetimes import round_moment, text_of_micros

__all__ = [
    "ELEMENT_OF",
    "ColumnsByTable",
    "KeysByTable",
    "SuppliedParameter",
    "TargetContext",
    "Translation",
    "decode_array",
    "named_tables",
    "round_moment",
    "text_of_micros",
    "translate",
]
