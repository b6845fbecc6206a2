"""Replace a file in one step, so that it is never incomplete."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path


def replace_file(path: Path, content: bytes | bytearray, mode: int | None = None) -> None:
    """Write a temporary file beside ``path``, then rename it. ``mode`` is that of the old file."""
    temporary = path.with_name(f".margrove-{secrets.token_hex(8)}.tmp")
    # O_EXCL: never into a file or through a link that somebody else put there. 0o666: the umask decides, as for open().
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        handle = os.open(temporary, flags, 0o666)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())  # before the rename, or a power cut could leave the new name on an empty file
        # Only where they differ: some network drives know no permissions and refuse to be given any.
        if mode is not None and os.stat(temporary).st_mode != mode:
            os.chmod(temporary, stat.S_IMODE(mode))
        os.replace(temporary, path)
    except FileExistsError:  # somebody else's
        raise
    except BaseException:  # Ctrl-C too: no litter
        with suppress(OSError):  # it was not made, or it has its name already
            os.unlink(temporary)
        raise
