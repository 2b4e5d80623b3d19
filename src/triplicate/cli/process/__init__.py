"""What every server process of the command line does."""
