"""Messages, conversations and the server of the PostgreSQL protocol."""
