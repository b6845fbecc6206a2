"""The pictures of docs/guide/pictures.md, drawn by the code of that page.

A block of ``python`` is followed by the picture that it draws. The blocks run from top to bottom in one namespace, as
in the tests; what a block drew is what it calls ``ax``, ``axes`` or ``display``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

PAGE = Path(__file__).parent / "guide" / "pictures.md"
# It shows seconds, which are others each time: drawn only where there is none yet.
TIMED = ("gallery-convergence",)

_BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?:\n!\[[^\]]+\]\(\.\./images/(?P<name>gallery-[\w-]+)\.png\))?", re.M | re.S
)


def blocks(text: str) -> list[tuple[str, str | None]]:
    """Each block of code with the name of the picture below it, if there is one."""
    return [(found["code"], found["name"]) for found in _BLOCK.finditer(text)]


def figures(folder: Path) -> Iterator[tuple[str, Any]]:
    """Each picture that is to be drawn into the folder, by its name, as a figure."""
    namespace: dict[str, Any] = {}
    for code, name in blocks(PAGE.read_text("utf-8")):
        if name in TIMED and (folder / f"{name}.png").is_file():
            continue  # no code below uses what this one makes
        with TemporaryDirectory() as scratch, chdir(scratch):  # for files that the code writes
            exec(compile(code, f"{PAGE.name}, {name}", "exec"), namespace)
        if name is not None:
            yield name, _figure_of(namespace)


def _figure_of(namespace: dict[str, Any]) -> Any:
    for name in ("display", "axes", "ax"):
        if name in namespace:
            drawn = namespace.pop(name)
            return drawn.figure_ if name == "display" else (drawn if name == "ax" else np.ravel(drawn)[0]).figure
    raise AssertionError("the code drew nothing that it calls ax, axes or display")
