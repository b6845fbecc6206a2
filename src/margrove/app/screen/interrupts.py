"""Handle Ctrl-C. During imports: print one line and exit with 130, because an exception would end in a library's
traceback. During work: KeyboardInterrupt. During shutdown: ignore it."""

from __future__ import annotations

import os
import signal

LINE = "margrove: interrupted; nothing was written"
_is_entered = False  # whether this process is the command line's own


def begin() -> None:
    """Install the handler for the import phase, unless the process was started with Ctrl-C ignored."""
    global _is_entered
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)
        _is_entered = True


def begin_work() -> None:
    """Restore KeyboardInterrupt."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def end_work() -> None:
    """Ignore further Ctrl-C while the process ends."""
    if _is_entered:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _leave(*_: object) -> None:
    os.write(2, f"{LINE}\n".encode())
    os._exit(130)
