"""From PostgreSQL's SQL to SQLite's: types of parameters and results, and the text that SQLite runs. Pure."""

from __future__ import annotations

from triplicate.sql.pg.translate.arrays import ELEMENT_OF, decode_array
from triplicate.sql.pg.translate.moments import round_moment, text_of_micros
from triplicate.sql.pg.translate.render import Place
from triplicate.sql.pg.translate.translation import Moment, TableColumns, TableKeys, Translation, named_tables, translate

__all__ = [
    "ELEMENT_OF",
    "Moment",
    "Place",
    "TableColumns",
    "TableKeys",
    "Translation",
    "decode_array",
    "named_tables",
    "round_moment",
    "text_of_micros",
    "translate",
]
