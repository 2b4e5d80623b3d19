"""The tree in memory, in SQLite and in ZooKeeper."""
