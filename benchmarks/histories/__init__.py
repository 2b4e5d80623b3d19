"""Histories of clients beside killed and stopped processes: made by real processes, and judged."""
