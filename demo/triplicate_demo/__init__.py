"""The demonstration: real data passes through every layer while servers are killed."""
