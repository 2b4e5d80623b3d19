"""Reading: ranges, batches, long polls, tails."""
