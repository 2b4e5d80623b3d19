"""CREATE, ALTER and DROP as PostgreSQL's clients write them, in the words of SQLite and of `sql.executor.definitions`. Pure."""
