"""The replicated state machine of a key-value store, and its leader."""
