"""Rewrites CREATE, ALTER and DROP of PostgreSQL to the syntax of SQLite and of `sql.executor.definitions`. Pure."""
