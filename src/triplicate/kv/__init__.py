"""The replicated key-value store: RocksDB as the state, one log as its input."""
