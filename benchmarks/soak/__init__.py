"""A cluster under faults for minutes: nothing acknowledged is lost, copies are restored, and memory stays flat."""
