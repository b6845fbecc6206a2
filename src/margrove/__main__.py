"""``margrove`` and ``python -m margrove``: the command line."""

from __future__ import annotations

from margrove.app.screen import interrupts


def main() -> None:
    """Run the command line; nothing is imported before Ctrl-C is handled."""
    interrupts.begin()
    from margrove.app.cli import main as run

    try:
        run()
    finally:
        interrupts.end_work()


if __name__ == "__main__":
    main()
