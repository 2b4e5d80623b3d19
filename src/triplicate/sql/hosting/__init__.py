"""The databases of one node: which there are, and which processes serve them."""
