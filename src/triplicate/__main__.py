"""``python -m triplicate``: the command ``triplicate``."""

from __future__ import annotations

from triplicate.cli import main

if __name__ == "__main__":
    main.main()
