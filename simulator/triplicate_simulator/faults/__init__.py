"""Kinds of faults: each has a function that draws it and one that carries it out."""
