"""Checkpoints: the state of a long fit, written to a file at intervals, so that another process can resume it.

The file is a safetensors file: arrays by name, and in its metadata, under ``margrove.checkpoint``, a JSON text of

===========  ==============================================================================
format       1
fingerprint  BLAKE2b of the problem: the points, the kernel, the parameters
digest       BLAKE2b of the arrays, to detect damage
===========  ==============================================================================

A resumed fit only starts from it: the result is checked like any other.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any, TypeAlias, overload

import numpy as np
import safetensors
import safetensors.numpy
import scipy.sparse as sp
from numpy.typing import NDArray

from margrove.advice import Advice, Value
from margrove.errors import (
    InputError,
    MargroveWarning,
    ParameterError,
    check_flag,
    check_number,
    level_of_caller,
    shown,
)
from margrove.run.atomic import replace_file

Arrays: TypeAlias = dict[str, NDArray[Any]]

FORMAT = 1
_KEY = "margrove.checkpoint"
_DIGEST_BYTES = 16
_BLOCK_CELLS = 1 << 20  # entries of an array that are laid out at once to be hashed


@dataclass(frozen=True)
class Checkpoint:
    """The file in which a long fit keeps its state, and how often.

    Parameters
    ----------
    path : str or path
        The file. It is written beside its place and put there in one step, so there is always a whole one.
    interval : float
        Seconds between two writes: what is lost at most when the process is killed. 0 writes as often as there is an
        occasion, about 20 times a second.
    replace : bool
        Whether the file of another fit (other data, other parameters) is replaced. By default it is refused.

    Examples
    --------
    >>> from margrove import SVC, Checkpoint
    >>> model = SVC(checkpoint=Checkpoint("long.checkpoint", interval=60)).fit([[0.0], [1.0]], [0, 1])
    >>> model.status_  # so the file is gone
    <Status.CONVERGED: 'converged'>
    """

    path: str | os.PathLike[str]
    interval: float = 30.0
    replace: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.path, str | os.PathLike) or not isinstance(os.fspath(self.path), str):
            raise ParameterError(f"the path of a checkpoint is {shown(self.path)}; it must be the path of a file.")
        check_number("interval", self.interval, least=0, cure="It is in seconds.")
        check_flag("replace", self.replace)

    def beside(self, ending: str) -> Checkpoint:
        """Return the checkpoint of a later part of the same fit: the path with an ending; it replaces any file."""
        return Checkpoint(os.fspath(self.path) + ending, self.interval, replace=True)

    def check_place(self) -> None:
        """Raise `ParameterError` unless the file can be written."""
        path = Path(self.path)
        folder, start = path.parent, f"checkpoint is {os.fspath(self.path)!r}"
        if not os.fspath(self.path) or path.is_dir():
            raise ParameterError(f"{start}; that is a directory. Add the name of a file.")
        if not folder.is_dir():
            raise ParameterError(f"{start}; there is no directory {os.fspath(folder)!r}. Create it first.")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise ParameterError(f"{start}; the directory {os.fspath(folder)!r} is not writable. Choose another.")

    def remove(self) -> None:
        """Delete the file after the fit."""
        Path(self.path).unlink(missing_ok=True)


CheckpointLike: TypeAlias = str | os.PathLike[str] | Checkpoint


@overload
def settle_checkpoint(given: CheckpointLike) -> Checkpoint: ...
@overload
def settle_checkpoint(given: CheckpointLike | None) -> Checkpoint | None: ...
def settle_checkpoint(given: object) -> Checkpoint | None:
    """Return the parameter ``checkpoint`` of an estimator, a path, a `Checkpoint` or None, as a `Checkpoint`."""
    if given is None:
        return None
    if not isinstance(given, Checkpoint | str | os.PathLike):
        words = f"checkpoint is {shown(given)}; it must be the path of a file, a Checkpoint, or "
        raise ParameterError(Advice(words, Value(None), "."))
    checkpoint = given if isinstance(given, Checkpoint) else Checkpoint(given)
    checkpoint.check_place()
    return checkpoint


class Record:
    """The checkpoint file of one fit, identified by its `fingerprint`."""

    def __init__(self, checkpoint: Checkpoint, fingerprint: str) -> None:
        self._checkpoint, self._fingerprint = checkpoint, fingerprint
        self._path = Path(os.path.realpath(checkpoint.path))  # a link keeps pointing where it did
        self._written = time.monotonic()
        self._has_failed = False

    @property
    def is_due(self) -> bool:
        """True if the interval is over."""
        return time.monotonic() - self._written >= self._checkpoint.interval

    def read(self) -> Arrays | None:
        """Return the arrays of an earlier process, None if there are none for this fit."""
        try:
            about, arrays = _read(self._path)
        except FileNotFoundError:
            return None
        except OSError as error:
            problem = f"the checkpoint cannot be read: {error.strerror or error}"
            raise InputError(problem, file=self._name, cure="Check the file.") from error
        except (safetensors.SafetensorError, ValueError, TypeError, KeyError, RecursionError) as error:
            raise self.damaged() from error
        if about.get("format") != FORMAT:
            raise InputError(
                f"the checkpoint has format {shown(about.get('format'))}; this version reads {FORMAT}",
                file=self._name,
                cure="Continue with the version that wrote it, or delete the file to start again.",
            )
        if about["digest"] != fingerprint(arrays):
            raise self.damaged()
        if about["fingerprint"] == self._fingerprint:
            return arrays
        if self._checkpoint.replace:
            return None
        raise InputError(
            "the checkpoint belongs to other data or other parameters",
            file=self._name,
            cure="Use the same data and parameters, choose another path, or delete the file to start again.",
        )

    def damaged(self) -> InputError:
        """Return the error about a damaged file."""
        return InputError(
            "the checkpoint is damaged, or was not written by Margrove",
            file=self._name,
            cure="Delete the file to start again, or choose another path.",
        )

    def write(self, arrays: Arrays) -> None:
        """Replace the file by these arrays. If that fails, the fit goes on, with one warning."""
        about = {"format": FORMAT, "fingerprint": self._fingerprint, "digest": fingerprint(arrays)}
        content = safetensors.numpy.save(arrays, {_KEY: json.dumps(about)})
        try:
            replace_file(self._path, content)
        except OSError as error:
            if not self._has_failed:
                message = f"{self._name}: the checkpoint cannot be written ({error.strerror}); the fit continues."
                warnings.warn(message, MargroveWarning, stacklevel=level_of_caller())
            self._has_failed = True
        self._written = time.monotonic()

    def remove(self) -> None:
        """Delete the file after the fit."""
        self._checkpoint.remove()

    @property
    def _name(self) -> str:
        return os.fspath(self._checkpoint.path)


def fingerprint(*parts: Any) -> str:
    """Return BLAKE2b of numbers, words, arrays (dense or sparse) and lists and mappings of such, in hexadecimal."""
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    _take_in(digest, parts)
    return digest.hexdigest()


def _take_in(digest: Any, part: Any) -> None:
    """Hash each part after its type and length, so that no two lists of parts give the same bytes."""
    if sp.issparse(part):
        # Of the same matrix SciPy may keep positions in 32 or in 64 bits.
        positions = [part.indices.astype(np.int64), part.indptr.astype(np.int64)]
        _take_in(digest, ["sparse", *part.shape, part.data, *positions])
    elif isinstance(part, np.ndarray) and part.dtype.hasobject:
        _take_in(digest, part.tolist())
    elif isinstance(part, np.ndarray):
        digest.update(f"array {part.dtype.str} {part.shape};".encode())
        rows = np.atleast_1d(part)
        step = max(1, _BLOCK_CELLS // max(1, rows[:1].size))
        for start in range(0, len(rows), step):
            digest.update(np.ascontiguousarray(rows[start : start + step]))
    elif isinstance(part, Mapping):
        _take_in(digest, [item for name in sorted(part) for item in (name, part[name])])
    elif isinstance(part, Sequence) and not isinstance(part, str):
        digest.update(f"list {len(part)};".encode())
        for each in part:
            _take_in(digest, each)
    else:
        # A γ that is computed from the points may differ in its last digits from machine to machine.
        text = f"{float(part):.12g}" if isinstance(part, Real) else str(part)
        digest.update(f"word {len(text)} {text};".encode())


def _read(path: Path) -> tuple[dict[str, Any], Arrays]:
    with safetensors.safe_open(path, framework="numpy") as file:
        about = json.loads((file.metadata() or {})[_KEY])
        arrays = {name: np.array(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118 it is no mapping
    if not isinstance(about, dict) or not {"format", "fingerprint", "digest"} <= about.keys():
        raise ValueError("the metadata has been changed")
    return about, arrays
