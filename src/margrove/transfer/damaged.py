"""Files that end like pictures and are none: found before any work, and all of them at once."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from PIL import Image

from margrove.errors import InputError
from margrove.transfer.pictures import FilePicture, PictureFolder

_SHOWN = 3  # names in a message


def damaged_rows(pictures: PictureFolder, *, is_thorough: bool = False) -> list[int]:
    """The places of files that cannot be opened.

    Parameters
    ----------
    pictures : PictureFolder
    is_thorough : bool
        Decode every picture, which finds those that break off in the middle, too. Otherwise only their heads are read.

    Examples
    --------
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from margrove import read_picture_folder
    >>> from margrove.transfer.damaged import damaged_rows
    >>> Path("few").mkdir()
    >>> Image.new("RGB", (8, 8)).save("few/1.png")
    >>> Path("few/2.png").write_text("no picture")
    10
    >>> damaged_rows(read_picture_folder("few", needs_classes=False))
    [1]
    """
    is_sound = _is_decoded if is_thorough else _has_head
    return [row for row, path in enumerate(pictures) if not is_sound(path)]


def _has_head(path: Path) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # too many pixels are told later, by name
            Image.open(path).close()
    except (OSError, SyntaxError, ValueError):
        return False
    except Image.DecompressionBombError:
        return True
    return True


def _is_decoded(path: Path) -> bool:
    try:
        FilePicture(path).in_mode("RGB")
    except InputError:
        return False
    return True


def refuse_damaged(pictures: PictureFolder, cure: str = "Mend them, or take them away.") -> None:
    """Raise `InputError`, naming them, if files cannot be opened."""
    rows = damaged_rows(pictures)
    if rows:
        files = "1 file is" if len(rows) == 1 else f"{len(rows):,} files are"
        problem = f"{files} no picture that can be opened: {names_of(pictures, rows)}"
        raise InputError(problem, file=str(pictures.root), cure=cure)


def without_damaged(pictures: PictureFolder) -> PictureFolder:
    """The pictures that can be decoded; a note tells of the others."""
    rows = damaged_rows(pictures, is_thorough=True)
    if not rows:
        return pictures
    kept = np.setdiff1d(np.arange(len(pictures)), rows)
    note = f"{len(rows):,} file{'' if len(rows) == 1 else 's'} left out, no pictures that can be opened: "
    return pictures.take(kept, note + names_of(pictures, rows))


def names_of(pictures: PictureFolder, rows: list[int]) -> str:
    """Some of the files, as they are called under the folder."""
    shown = ", ".join(str(pictures[row].relative_to(pictures.root)) for row in rows[:_SHOWN])
    return shown + (f" and {len(rows) - _SHOWN:,} more" if len(rows) > _SHOWN else "")
