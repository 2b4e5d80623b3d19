"""Pure decisions of auto-recovery: which copies a ledger lacks, and when an open ledger may be fenced."""
