"""The local copy of a key-value store, in RocksDB."""
