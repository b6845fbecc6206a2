"""Refuse files that need more memory than is free."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

from margrove.advice import Advice, InPython
from margrove.errors import InputError

SMALL = 1 << 27  # bytes; below 128 MiB the free memory is not checked
CELL = 20  # bytes per cell while text is parsed, measured: pyarrow's float64, our float64 and overhead


def check_memory(needed: int, file: str) -> None:
    """Raise `InputError` if reading a file takes more bytes than are free."""
    if needed <= SMALL or needed <= (free := free_memory()):
        return
    raise InputError(
        f"reading it takes about {needed / 1e9:.1f} GB of memory, but {free / 1e9:.1f} GB are free",
        file=file,
        cure=Advice("Read a part of it", InPython(", or read it in chunks with read_chunks"), "."),
    )


def free_memory() -> int:
    """Return the bytes that this process can still take: the least of what the machine, its control group and the
    limit of its address space leave. A limit that the system does not report is ignored."""
    left = [sys.maxsize]
    unknown = suppress(ImportError, AttributeError, OSError, ValueError)
    with unknown:
        left.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with unknown:
        left.append(1024 * _number("/proc/meminfo", "MemAvailable:"))
    with unknown:  # "4:memory:/job" in version 1 of control groups, "0::/job" in version 2; a container sees "/"
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, job = line.split(":", 2)
            limit, used = ("limit_in_bytes", "usage_in_bytes") if controllers else ("max", "current")
            for folder in {f"/sys/fs/cgroup/{controllers}", f"/sys/fs/cgroup/{controllers}{job}"}:
                with unknown:  # the cache of files is given back when memory is needed
                    cache = _number(f"{folder}/memory.stat", "inactive_file")
                    left.append(_number(f"{folder}/memory.{limit}") - _number(f"{folder}/memory.{used}") + cache)
    with unknown:
        import resource

        limit_of_process, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit_of_process != resource.RLIM_INFINITY:
            left.append(limit_of_process - resource.getpagesize() * _number("/proc/self/statm"))
    return max(0, min(left))


def _number(path: str, after: str | None = None) -> int:
    """Return the number that follows a word in a file, or begins it."""
    words = Path(path).read_text().split()
    return int(words[0 if after is None else words.index(after) + 1])
