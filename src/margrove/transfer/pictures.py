"""Pictures as they come: files, folders of them, arrays and PIL images.

A picture is only opened when its pixels are wanted, so that a folder of any size takes the memory of a batch. Its
*digest* is BLAKE2b of the bytes as they came: those of the file, or those of the array with its shape.
"""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from margrove.errors import InputError, shown

DIGEST_BYTES = 16
ENDINGS = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
_SHOWN = 3  # names of what was passed over
_CHANNELS = (1, 3, 4)  # of an array
_TOO_LARGE = "it has more pixels than any picture should"
_DEEP_GREY = ("I", "F")  # modes that begin so have more than 8 bits, and no common white


class Picture(ABC):
    """One picture, wherever it is."""

    name: str

    @abstractmethod
    def digest(self) -> bytes:
        """BLAKE2b of its bytes."""

    @abstractmethod
    def image(self) -> Image.Image:
        """The picture, upright, as PIL knows it."""

    def in_mode(self, mode: str) -> Image.Image:
        """The picture as ``"RGB"`` or ``"L"`` (grey).

        Raises
        ------
        InputError
            If its pixels have more than 8 bits, or cannot be decoded.
        """
        image = self.image()
        if image.mode.startswith(_DEEP_GREY):
            raise InputError(
                f"its pixels are of mode {image.mode!r}, with more than 8 bits",
                file=self.name,
                cure="Save it with 8 bits a channel.",
            )
        try:
            return image if image.mode == mode else image.convert(mode)
        except ValueError as error:
            problem = f"its pixels are of mode {image.mode!r}, which cannot be brought to {mode} ({error})"
            raise InputError(problem, file=self.name, cure="Save it in red, green and blue.") from error


class FilePicture(Picture):
    """A picture in a file."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.name = str(path)

    def digest(self) -> bytes:
        """BLAKE2b of the file: nothing is decoded."""
        try:
            return _blake(self.path.read_bytes())
        except FileNotFoundError as error:
            raise InputError("there is no such file", file=self.name, cure="Check the path.") from error
        except OSError as error:
            raise self._unreadable(error.strerror or str(error)) from error

    def image(self) -> Image.Image:
        """The decoded file, turned as its EXIF says."""
        try:
            # Pillow warns of many pixels and refuses twice as many; to turn its warning into an error would change the
            # filters of all threads.
            with Image.open(self.path) as opened:
                if Image.MAX_IMAGE_PIXELS is not None and opened.width * opened.height > Image.MAX_IMAGE_PIXELS:
                    raise self._unreadable(_TOO_LARGE)
                opened.load()
                return ImageOps.exif_transpose(opened)
        except InputError:
            raise
        except FileNotFoundError as error:
            raise InputError("there is no such file", file=self.name, cure="Check the path.") from error
        except UnidentifiedImageError as error:
            raise self._unreadable("it is no picture that Pillow knows") from error
        except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
            raise self._unreadable(_TOO_LARGE) from error
        except (OSError, SyntaxError, ValueError) as error:
            raise self._unreadable(f"it cannot be decoded ({error})") from error

    def _unreadable(self, problem: str) -> InputError:
        return InputError(problem, file=self.name, cure="Mend the file, or take it away.")


class ArrayPicture(Picture):
    """A picture as an array of shape (height, width) or (height, width, channels): bytes, or floats from 0 to 1."""

    def __init__(self, pixels: NDArray[Any], name: str) -> None:
        if not (pixels.ndim == 2 or (pixels.ndim == 3 and pixels.shape[2] in _CHANNELS)) or 0 in pixels.shape:
            raise InputError(
                f"has the shape {pixels.shape}; (height, width) or (height, width, 3) was expected",
                file=name,
                cure="Put the channels last: X.transpose(0, 2, 3, 1), say.",
            )
        self.pixels, self.name = pixels, name

    def digest(self) -> bytes:
        """BLAKE2b of shape and pixels."""
        pixels = self._bytes()
        return _blake(f"array {pixels.shape};".encode(), np.ascontiguousarray(pixels).data)

    def image(self) -> Image.Image:
        """The array as PIL holds it."""
        pixels = self._bytes()
        return Image.fromarray(pixels[..., 0] if pixels.shape[2:] == (1,) else pixels)

    def _bytes(self) -> NDArray[np.uint8]:
        """Made when they are wanted: a copy of all pictures at once may not fit."""
        pixels = self.pixels
        if pixels.dtype == np.uint8:
            return pixels
        if pixels.dtype.kind in "iu" and pixels.min() >= 0 and pixels.max() <= 255:
            return pixels.astype(np.uint8)
        if pixels.dtype.kind == "f" and pixels.min() >= 0 and pixels.max() <= 1:  # NaN is neither
            return np.asarray(np.rint(pixels * 255), np.uint8)
        raise InputError(
            f"has pixels of type {pixels.dtype} from {pixels.min():g} to {pixels.max():g}",
            file=self.name,
            cure="Give bytes (uint8, 0 to 255) or floats from 0 to 1.",
        )


class PilPicture(Picture):
    """A picture that PIL has already."""

    def __init__(self, image: Image.Image, name: str) -> None:
        self._image, self.name = image, name

    def digest(self) -> bytes:
        """BLAKE2b of the decoded picture, its mode and its size."""
        image = self.image()
        image = image.convert("RGBA") if image.mode == "P" else image
        return _blake(f"{image.mode} {image.size};".encode(), image.tobytes())

    def image(self) -> Image.Image:
        """As it came, but turned as its EXIF says, where it still has that: what its file would give."""
        try:
            return ImageOps.exif_transpose(self._image)
        except (OSError, SyntaxError, ValueError) as error:  # Pillow decodes only now what it has opened before
            problem = f"it cannot be decoded ({error})"
            raise InputError(problem, file=self.name, cure="Mend it, or take it away.") from error


def _blake(*parts: bytes | memoryview) -> bytes:
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for part in parts:
        digest.update(part)
    return digest.digest()


def as_pictures(X: Any) -> list[Picture]:
    """Pictures out of whatever holds them.

    Parameters
    ----------
    X : array of shape (n, height, width[, 1, 3 or 4]), path of a folder, or list of paths, arrays and PIL images
        Arrays, or tensors, are of bytes, or of floats from 0 to 1. A column of a data frame will do for a list.

    Examples
    --------
    >>> import numpy as np
    >>> from margrove.transfer.pictures import as_pictures
    >>> [picture.image().size for picture in as_pictures(np.zeros((2, 8, 6, 3), np.uint8))]
    [(6, 8), (6, 8)]
    """
    if isinstance(X, PictureFolder):
        X = X.paths
    if isinstance(X, Image.Image):
        raise InputError("X is one picture", cure="Give a list: [picture].")
    if hasattr(X, "columns") and len(getattr(X, "shape", ())) == 2:  # a data frame
        names = [str(name) for name in X.columns]
        if len(names) != 1:
            cure = f"Give the column that holds paths or pictures: X[{names[0]!r}], say."
            raise InputError(f"X is a table of {len(names)} columns, and no pictures", cure=cure)
        X = X[X.columns[0]]
    elif hasattr(X, "__array__") and not isinstance(X, np.ndarray | Sequence) and not hasattr(X, "index"):
        X = np.asarray(X)  # a tensor of torch's, say
    if isinstance(X, str | os.PathLike):
        if not Path(X).is_dir():
            raise InputError("is no folder", file=os.fspath(X), cure="Give a folder, or a list of files: [path].")
        X = read_picture_folder(X, needs_classes=False).paths
    if isinstance(X, np.ndarray) and X.dtype.kind in "uifb" and X.ndim not in (3, 4):
        raise InputError(
            f"X is an array of shape {X.shape}; pictures have the shape (n, height, width) or (n, height, width, 3)",
            cure="Reshape it: X.reshape(n, height, width, 3), say.",
        )
    if isinstance(X, np.ndarray) and X.dtype.kind in "uifb" and _is_one_picture(X.shape):
        raise InputError(
            f"X is an array of shape {X.shape}, which reads as one picture in colour",
            cure="Give a batch of pictures: X[np.newaxis]; grey ones as (n, height, width, 1).",
        )
    if not isinstance(X, Iterable) or isinstance(X, dict | set | bytes):
        raise InputError(
            f"X is {shown(X)}; pictures were expected",
            cure="Give a folder, or a list of files, of arrays or of PIL images.",
        )
    pictures = [_picture(each, number) for number, each in enumerate(X)]
    if not pictures:
        raise InputError("X holds no picture", cure="Give one at least.")
    return pictures


def _is_one_picture(shape: tuple[int, ...]) -> bool:
    """Whether (n, height, width) is rather (height, width, channels)."""
    return len(shape) == 3 and shape[2] in _CHANNELS and shape[1] > max(_CHANNELS)


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
    raise InputError(
        f"is {shown(given)}; a path, an array or a PIL image was expected", file=name, cure="Check what X holds."
    )


@dataclass(frozen=True)
class PictureFolder(Sequence[Path]):
    """The pictures of a folder, and the class of each: the name of the folder in it that holds the picture.

    It is a sequence of its paths, so it can be given wherever pictures can.
    """

    root: Path
    paths: tuple[Path, ...]
    labels: NDArray[np.str_]  # (n,); "" for a picture outside all classes
    notes: tuple[str, ...] = ()  # what was passed over

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: Any) -> Any:
        return self.paths[index]

    def __iter__(self) -> Iterator[Path]:
        return iter(self.paths)

    @property
    def classes(self) -> list[str]:
        """The names of the classes, sorted."""
        return sorted(set(self.labels.tolist()))

    def take(self, rows: NDArray[np.intp], *notes: str) -> PictureFolder:
        """Some of the pictures, with what more is to be said of those that are passed over."""
        paths = tuple(self.paths[int(row)] for row in rows)
        return PictureFolder(self.root, paths, self.labels[rows], (*self.notes, *notes))


def read_picture_folder(folder: str | os.PathLike[str], *, needs_classes: bool = True) -> PictureFolder:
    """The pictures under a folder, in the order of their names; no picture is opened yet.

    Parameters
    ----------
    folder : str or path
        ``folder/cat/1.jpg`` is a picture of the class ``cat``; so is ``folder/cat/winter/2.png``. Links to folders are
        followed.
    needs_classes : bool
        Whether pictures must lie in the folders of at least two classes. Otherwise all pictures count.

    Raises
    ------
    InputError
        If there is no such folder, there are too few pictures or classes in it, or a name is no text.

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
        problem = "is no folder" if root.exists() else "there is no such folder"
        raise InputError(problem, file=str(folder), cure="Give the folder that holds a folder for each class.")
    paths, labels, others, n_loose = [], [], [], 0
    for path in sorted(_files_under(root)):
        parts = path.relative_to(root).parts
        if path.suffix.lower() not in ENDINGS:
            others.append(str(path.relative_to(root)))
        elif len(parts) == 1 and needs_classes:
            n_loose += 1
        else:
            _refuse_bytes(path)
            paths.append(path)
            labels.append(parts[0] if len(parts) > 1 else "")
    notes = []
    if others:
        few = ", ".join(others[:_SHOWN]) + (", …" if len(others) > _SHOWN else "")
        notes.append(f"{len(others):,} file{_s(len(others))} passed over: no picture by the ending of the name ({few})")
    if n_loose:
        notes.append(f"{n_loose:,} picture{_s(n_loose)} passed over: in no folder of a class")
    found = sorted(set(labels))
    folders = [each.name for each in sorted(root.iterdir()) if each.is_dir() and not each.name.startswith(".")]
    empty = [name for name in folders if name not in found]
    if empty and needs_classes:
        few = ", ".join(empty[:_SHOWN]) + (", …" if len(empty) > _SHOWN else "")
        notes.append(f"{len(empty):,} folder{_s(len(empty))} without a picture: {few}")
    if needs_classes and len(found) < 2:
        problem = f"pictures of {len(found)} class{'' if len(found) == 1 else 'es'} were found, and two are needed"
        cure = "Put the pictures of each class into a folder of its name, such as pets/cat/1.jpg and pets/dog/1.jpg."
        raise InputError(problem, file=str(folder), cure=cure)
    if not paths:
        raise InputError("there is no picture in it", file=str(folder), cure=f"Those end in {', '.join(ENDINGS)}.")
    return PictureFolder(root, tuple(paths), np.array(labels), tuple(notes))


def _files_under(root: Path, inside: frozenset[str] = frozenset()) -> Iterator[Path]:
    """All files but hidden ones; links to folders are followed, but not into a folder that they lie in."""
    place = os.path.realpath(root)
    if place in inside:
        return
    try:
        entries = list(os.scandir(root))
    except OSError as error:
        cure = "Allow it to be read, or take it away."
        raise InputError(f"the folder cannot be read ({error.strerror})", file=str(root), cure=cure) from error
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            yield from _files_under(Path(entry.path), inside | {place})
        else:
            yield Path(entry.path)


def _refuse_bytes(path: Path) -> None:
    """Raise `InputError` unless a name is text: no page, table or model could hold it."""
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        name = os.fsencode(path).decode(errors="backslashreplace")
        raise InputError("its name is not text in UTF-8", file=name, cure="Rename it.") from error


def _s(n: int) -> str:
    return "" if n == 1 else "s"
