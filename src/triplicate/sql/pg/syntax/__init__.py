"""Parses queries and changes by PostgreSQL's grammar into trees, whose nodes have their positions in the text. Pure."""
