"""Workloads: programs that run on a simulated cluster, each with the checkers that judge its history."""
