"""Statements in SQLite's words: the text that SQLite runs, and the types that the client is told. Pure."""
