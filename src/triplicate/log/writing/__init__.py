"""The writer of a log: entries, segments, rolls."""
