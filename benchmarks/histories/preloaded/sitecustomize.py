"""Python imports this module at the start of each process whose PYTHONPATH has this folder: database nodes note their windows of groups."""

import os
import sys

folder = os.environ.get("HISTORIES_WINDOWS")
if folder and "node" in sys.orig_argv:
    from benchmarks.histories.windows import note_windows

    note_windows(folder)
