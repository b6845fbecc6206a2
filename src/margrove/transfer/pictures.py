"""Pictures from files, folders, arrays and PIL images.

A picture is opened when its pixels are needed, so a folder of any size takes the memory of a batch. Its *digest* is
BLAKE2b of the bytes of the file, or of the array and its shape.
"""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from margrove.errors import InputError, shown

DIGEST_BYTES = 16
ENDINGS = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
_SHOWN = 3  # names in a note
_CHANNELS = (1, 3, 4)  # of an array
_TOO_LARGE = (Image.DecompressionBombWarning, Image.DecompressionBombError)
_DEEP_GREY = ("I", "F")  # modes that begin so have more than 8 bits, and no common white


class Picture(ABC):
    """One picture."""

    name: str

    @abstractmethod
    def digest(self) -> bytes:
        """Return BLAKE2b of its bytes."""

    @abstractmethod
    def image(self) -> Image.Image:
        """Return the picture, upright, as a PIL image."""

    def in_mode(self, mode: str) -> Image.Image:
        """Return the picture as ``"RGB"`` or ``"L"`` (grey)."""
        image = self.image()
        if image.mode.startswith(_DEEP_GREY):
            problem = f"its pixels have mode {image.mode!r}, with more than 8 bits per channel"
            raise InputError(problem, file=self.name, cure="Save it with 8 bits per channel.")
        try:
            return image if image.mode == mode else image.convert(mode)
        except ValueError as error:
            problem = f"its pixels have mode {image.mode!r}, which cannot be converted to {mode} ({error})"
            raise InputError(problem, file=self.name, cure="Save it in RGB.") from error


class FilePicture(Picture):
    """A picture in a file."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.name = str(path)

    def digest(self) -> bytes:
        """Return BLAKE2b of the file: nothing is decoded."""
        with self._reading(is_decoding=False):
            return _blake(self.path.read_bytes())

    def image(self) -> Image.Image:
        """Return the decoded file, turned by its EXIF orientation."""
        # Pillow warns of many pixels and refuses twice as many; to turn its warning into an error would change the
        # filters of all threads.
        with self._reading(), Image.open(self.path) as opened:
            if Image.MAX_IMAGE_PIXELS is not None and opened.width * opened.height > Image.MAX_IMAGE_PIXELS:
                raise Image.DecompressionBombError
            opened.load()
            return ImageOps.exif_transpose(opened)

    @contextmanager
    def _reading(self, *, is_decoding: bool = True) -> Iterator[None]:
        """Raise errors of files and of Pillow as `InputError`."""
        try:
            yield
        except FileNotFoundError as error:
            raise InputError("there is no such file", file=self.name, cure="Check the path.") from error
        except (OSError, SyntaxError, ValueError, *_TOO_LARGE) as error:
            problem = f"it cannot be decoded ({error})"
            if isinstance(error, _TOO_LARGE):
                problem = "it has more pixels than Pillow allows"
            elif isinstance(error, UnidentifiedImageError):
                problem = "Pillow does not recognise it as a picture"
            elif not is_decoding:
                problem = getattr(error, "strerror", None) or str(error)
            raise InputError(problem, file=self.name, cure="Repair or remove the file.") from error


class ArrayPicture(Picture):
    """A picture as an array of shape (height, width) or (height, width, channels): bytes, or floats from 0 to 1."""

    def __init__(self, pixels: NDArray[Any], name: str) -> None:
        if not (pixels.ndim == 2 or (pixels.ndim == 3 and pixels.shape[2] in _CHANNELS)) or 0 in pixels.shape:
            problem = f"has the shape {pixels.shape}; (height, width) or (height, width, 3) was expected"
            raise InputError(problem, file=name, cure="Put the channels last, for example by X.transpose(0, 2, 3, 1).")
        self.pixels, self.name = pixels, name

    def digest(self) -> bytes:
        pixels = self._bytes()
        return _blake(f"array {pixels.shape};".encode(), np.ascontiguousarray(pixels).data)

    def image(self) -> Image.Image:
        pixels = self._bytes()
        return Image.fromarray(pixels[..., 0] if pixels.shape[2:] == (1,) else pixels)

    def _bytes(self) -> NDArray[np.uint8]:
        """Return the pixels as bytes, made when needed: a copy of all pictures at once may not fit."""
        pixels = self.pixels
        if pixels.dtype == np.uint8:
            return pixels
        if pixels.dtype.kind in "iu" and pixels.min() >= 0 and pixels.max() <= 255:
            return pixels.astype(np.uint8)
        if pixels.dtype.kind == "f" and pixels.min() >= 0 and pixels.max() <= 1:  # NaN is neither
            return np.asarray(np.rint(pixels * 255), np.uint8)
        problem = f"has pixels of type {pixels.dtype} from {pixels.min():g} to {pixels.max():g}"
        raise InputError(problem, file=self.name, cure="Use bytes (uint8, 0 to 255) or floats from 0 to 1.")


class PilPicture(Picture):
    """A PIL image."""

    def __init__(self, image: Image.Image, name: str) -> None:
        self._image, self.name = image, name

    def digest(self) -> bytes:
        image = self.image()
        image = image.convert("RGBA") if image.mode == "P" else image
        return _blake(f"{image.mode} {image.size};".encode(), image.tobytes())

    def image(self) -> Image.Image:
        """Return the picture turned by its EXIF orientation, if it still has one: the same as from its file."""
        try:
            return ImageOps.exif_transpose(self._image)
        except (OSError, SyntaxError, ValueError) as error:  # Pillow decodes an opened file only now
            problem = f"it cannot be decoded ({error})"
            raise InputError(problem, file=self.name, cure="Repair or remove it.") from error


def _blake(*parts: bytes | memoryview) -> bytes:
    return hashlib.blake2b(b"".join(parts), digest_size=DIGEST_BYTES).digest()


def as_pictures(X: Any) -> list[Picture]:
    """Return pictures from an array of shape (n, height, width[, 1, 3 or 4]), the path of a folder, or a list of paths,
    arrays and PIL images. Arrays and tensors hold bytes, or floats from 0 to 1. A column of a data frame is a list."""
    if isinstance(X, PictureFolder):
        X = X.paths
    if isinstance(X, Image.Image):
        raise InputError("X is one picture", cure="Pass a list: [picture].")
    if hasattr(X, "columns") and len(getattr(X, "shape", ())) == 2:  # a data frame
        names = [str(name) for name in X.columns]
        if len(names) != 1:
            cure = f"Pass the column of paths or pictures, such as X[{names[0]!r}]."
            raise InputError(f"X is a table of {len(names)} columns, not pictures", cure=cure)
        X = X[X.columns[0]]
    elif hasattr(X, "__array__") and not isinstance(X, np.ndarray | Sequence) and not hasattr(X, "index"):
        X = np.asarray(X)  # a tensor of torch's, say
    if isinstance(X, str | os.PathLike):
        if not Path(X).is_dir():
            raise InputError("is not a folder", file=os.fspath(X), cure="Pass a folder, or a list of files: [path].")
        X = read_picture_folder(X, needs_classes=False).paths
    if isinstance(X, np.ndarray) and X.dtype.kind in "uifb":
        problem = f"X is an array of shape {X.shape}"
        if X.ndim not in (3, 4):
            problem += "; pictures have the shape (n, height, width) or (n, height, width, 3)"
            raise InputError(problem, cure="Reshape it, for example by X.reshape(n, height, width, 3).")
        if X.ndim == 3 and X.shape[2] in _CHANNELS and X.shape[1] > max(_CHANNELS):  # (height, width, channels)
            cure = "Pass a batch of pictures: X[np.newaxis]; grey ones as (n, height, width, 1)."
            raise InputError(f"{problem}, which looks like a single colour picture", cure=cure)
    if not isinstance(X, Iterable) or isinstance(X, dict | set | bytes):
        cure = "Pass a folder, or a list of files, arrays or PIL images."
        raise InputError(f"X is {shown(X)}; pictures were expected", cure=cure)
    pictures = [_picture(each, number) for number, each in enumerate(X)]
    if not pictures:
        raise InputError("X holds no picture", cure="Pass at least one.")
    return pictures


def _picture(given: Any, number: int) -> Picture:
    name = f"picture {number}"
    if isinstance(given, Picture):
        return given
    if isinstance(given, str | os.PathLike):
        return FilePicture(given)
    if isinstance(given, Image.Image):
        return PilPicture(given, name)
    if isinstance(given, np.ndarray) or hasattr(given, "__array__"):
        return ArrayPicture(np.asarray(given), name)
    problem = f"is {shown(given)}; a path, an array or a PIL image was expected"
    raise InputError(problem, file=name, cure="Check the elements of X.")


@dataclass(frozen=True)
class PictureFolder(Sequence[Path]):
    """The pictures of a folder, and the class of each: the name of the subfolder that holds it.

    It is a sequence of its paths, and can be used wherever pictures can.
    """

    root: Path
    paths: tuple[Path, ...]
    labels: NDArray[np.str_]  # (n,); "" for a picture outside all classes
    notes: tuple[str, ...] = ()  # on files that are skipped

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: Any) -> Any:
        return self.paths[index]

    @property
    def classes(self) -> list[str]:
        """The names of the classes, sorted."""
        return sorted(set(self.labels.tolist()))

    def take(self, rows: NDArray[np.intp], *notes: str) -> PictureFolder:
        """Return some of the pictures, with further notes."""
        paths = tuple(self.paths[int(row)] for row in rows)
        return PictureFolder(self.root, paths, self.labels[rows], (*self.notes, *notes))


def read_picture_folder(folder: str | os.PathLike[str], *, needs_classes: bool = True) -> PictureFolder:
    """Return the pictures under a folder, in the order of their names. No picture is opened yet.

    Parameters
    ----------
    folder : str or path
        ``folder/cat/1.jpg`` is a picture of the class ``cat``; so is ``folder/cat/winter/2.png``. Links to folders are
        followed.
    needs_classes : bool
        Require pictures in the folders of at least two classes. Otherwise all pictures count.

    Examples
    --------
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from margrove.transfer.pictures import read_picture_folder
    >>> for name in ("pets/cat/1.png", "pets/dog/1.png", "pets/dog/2.png"):
    ...     Path(name).parent.mkdir(parents=True, exist_ok=True)
    ...     Image.new("RGB", (8, 8)).save(name)
    >>> read_picture_folder("pets").labels.tolist()
    ['cat', 'dog', 'dog']
    """
    root = Path(folder)
    if not root.is_dir():
        problem = "is not a folder" if root.exists() else "there is no such folder"
        raise InputError(problem, file=str(folder), cure="Use a folder that has a subfolder for each class.")
    paths, labels, others, loose = [], [], [], []
    for path in sorted(_files_under(root)):
        parts = path.relative_to(root).parts
        if path.suffix.lower() not in ENDINGS:
            others.append(str(path.relative_to(root)))
        elif len(parts) == 1 and needs_classes:
            loose.append(path.name)
        else:
            try:
                str(path).encode()
            except UnicodeEncodeError as error:  # no page, table or model could contain its name
                name = os.fsencode(path).decode(errors="backslashreplace")
                raise InputError("its name is not text in UTF-8", file=name, cure="Rename it.") from error
            paths.append(path)
            labels.append(parts[0] if len(parts) > 1 else "")
    notes = []
    if others:
        notes.append(f"{_count(others, 'file')} skipped: not a picture by the ending of the name ({_few(others)})")
    if loose:
        notes.append(f"{_count(loose, 'picture')} skipped: not in the folder of a class")
    found = sorted(set(labels))
    folders = [each.name for each in sorted(root.iterdir()) if each.is_dir() and not each.name.startswith(".")]
    empty = [name for name in folders if name not in found]
    if empty and needs_classes:
        notes.append(f"{_count(empty, 'folder')} without a picture: {_few(empty)}")
    if needs_classes and len(found) < 2:
        problem = f"pictures of {len(found)} class{'' if len(found) == 1 else 'es'} were found; two are needed"
        cure = "Put the pictures of each class into a folder with its name, such as pets/cat/1.jpg and pets/dog/1.jpg."
        raise InputError(problem, file=str(folder), cure=cure)
    if not paths:
        raise InputError("it contains no pictures", file=str(folder), cure=f"They end in {', '.join(ENDINGS)}.")
    return PictureFolder(root, tuple(paths), np.array(labels), tuple(notes))


def _files_under(root: Path, inside: frozenset[str] = frozenset()) -> Iterator[Path]:
    """Yield all files but hidden ones; links to folders are followed, unless they lead to a folder around them."""
    place = os.path.realpath(root)
    if place in inside:
        return
    try:
        entries = list(os.scandir(root))
    except OSError as error:
        cure = "Make it readable, or remove it."
        raise InputError(f"the folder cannot be read ({error.strerror})", file=str(root), cure=cure) from error
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            yield from _files_under(Path(entry.path), inside | {place})
        else:
            yield Path(entry.path)


def _count(names: Sequence[str], noun: str) -> str:
    return f"{len(names):,} {noun}{'' if len(names) == 1 else 's'}"


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
