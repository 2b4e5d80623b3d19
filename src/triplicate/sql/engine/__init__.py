"""The replicated database that clients see: leadership, sessions and transactions."""
