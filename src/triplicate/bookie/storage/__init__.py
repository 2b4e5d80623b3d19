"""The storage behind the journal: entry logs, index, garbage collection, compaction."""
