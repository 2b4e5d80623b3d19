"""The server side of the PostgreSQL protocol: messages, conversations and the listener."""
