"""Databases as they were: copies at a position of the log, backups as files, and what is made of them."""
