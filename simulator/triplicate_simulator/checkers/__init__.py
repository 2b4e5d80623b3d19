"""Checkers of histories: what clients saw, judged without knowledge of the code. Each is tested with good and bad histories."""
