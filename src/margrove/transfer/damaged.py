"""Files with the ending of a picture that cannot be opened, found before any work."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from PIL import Image

from margrove.data.columns import count, some
from margrove.errors import InputError
from margrove.transfer.pictures import FilePicture, PictureFolder

_SHOWN = 3  # names in a message


def damaged_rows(pictures: PictureFolder, *, is_thorough: bool = False) -> list[int]:
    """Return the rows of files that cannot be opened; ``is_thorough`` decodes every picture and finds truncated ones
    too, otherwise only their headers are read."""
    return [row for row, path in enumerate(pictures) if not _is_sound(path, is_thorough)]


def _is_sound(path: Path, is_thorough: bool) -> bool:
    try:
        if is_thorough:
            FilePicture(path).in_mode("RGB")
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # reported later, by name
                Image.open(path).close()
    except Image.DecompressionBombError:
        return True
    except (InputError, OSError, SyntaxError, ValueError):
        return False
    return True


def refuse_damaged(pictures: PictureFolder, cure: str = "Repair or remove them.") -> None:
    """Raise `InputError` with their names if files cannot be opened."""
    rows = damaged_rows(pictures)
    if rows:
        problem = f"{count(len(rows), 'file')} damaged or not in a picture format: {_names_of(pictures, rows)}"
        raise InputError(problem, file=str(pictures.root), cure=cure)


def without_damaged(pictures: PictureFolder) -> PictureFolder:
    """Return the pictures that can be decoded, with a note on the others."""
    rows = damaged_rows(pictures, is_thorough=True)
    if not rows:
        return pictures
    kept = np.setdiff1d(np.arange(len(pictures)), rows)
    note = f"{len(rows):,} file{'' if len(rows) == 1 else 's'} left out, damaged or not in a picture format: "
    return pictures.take(kept, note + _names_of(pictures, rows))


def _names_of(pictures: PictureFolder, rows: list[int]) -> str:
    return some([str(pictures[row].relative_to(pictures.root)) for row in rows], _SHOWN)
