"""What Ctrl-C does before, during and after the work of a command.

Before it, one line and the exit code 130 at once: an exception in the midst of an import would end in a traceback of
whatever library was being imported. During it, a KeyboardInterrupt, which fits and searches answer by keeping what they
have. After it nothing: Python only shuts down.
"""

from __future__ import annotations

import os
import signal

LINE = "margrove: interrupted; nothing was written"
_is_entered = False  # whether this process is the command line's own


def begin() -> None:
    """The process has begun. A process that is started with Ctrl-C ignored, such as a background one, goes on so."""
    global _is_entered
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)
        _is_entered = True


def begin_work() -> None:
    """The work begins."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def end_work() -> None:
    """The work is done, or interrupted: another Ctrl-C does not disturb the end."""
    if _is_entered:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _leave(*_: object) -> None:
    os.write(2, f"{LINE}\n".encode())
    os._exit(130)
