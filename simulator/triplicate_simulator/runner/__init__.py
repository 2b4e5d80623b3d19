"""Seeds: scenarios, runs, replay, shrinking, mutants."""
