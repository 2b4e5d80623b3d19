"""PostgreSQL's system catalogue, as far as client libraries query it by default, derived from SQLite's schema.

Modules in reading order: `type_names` (the types), `schema_facts` (the content of SQLite's schema), `relations` (the rows of each
catalogue table), `virtual_tables` and `catalogue_functions` (tables and functions of a connection). Nothing is stored: the tables are
virtual and read-only, and exist on every connection that runs clients' statements. Views and triggers may not use them, so that plain
SQLite can read the schema.
"""

from triplicate.sql.catalogue.catalogue_functions import register_functions
from triplicate.sql.catalogue.virtual_tables import register_tables

__all__ = ["register_functions", "register_tables"]
