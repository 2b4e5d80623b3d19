"""Translates statements: the text that SQLite runs, and the types for the client. Pure."""
