"""What lies behind the journal: entry logs, index, garbage collection, compaction."""
