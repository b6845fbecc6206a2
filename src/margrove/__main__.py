"""``python -m margrove``: the command line."""

from __future__ import annotations

from margrove.surface.cli import main

if __name__ == "__main__":
    main()
