"""The formats of backups, and the search for a position. Pure."""
