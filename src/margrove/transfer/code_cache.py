"""Codes kept on disk, so that a second run need not compute them.

Each *question* (weights, cut, preparation: all that decides a code but the picture) has a subfolder of the cache with
safetensors files of two arrays:

========  ==========================================================================
keys      (n, 16) bytes: BLAKE2b of each picture's bytes
codes     (n, maps) float32
========  ==========================================================================

A file is named after its content, written atomically and never changed: several processes may share a folder, and
codes computed before a Ctrl-C are kept.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

from margrove.advice import Advice, Parameter, Value
from margrove.errors import MargroveWarning, ParameterError, level_of_caller, shown
from margrove.run.atomic import replace_file
from margrove.run.checkpoint import fingerprint
from margrove.transfer.networks import Floats
from margrove.transfer.pictures import DIGEST_BYTES

ROWS_PER_FILE = 256  # few files for thousands of pictures, and little is lost if the process is killed


def settle_cache(given: Any) -> Path | None:
    """Return the folder of the parameter ``cache``, made if necessary, or None."""
    if given is None:
        return None
    if not isinstance(given, str | os.PathLike):
        words = f" is {shown(given)}; it must be a folder or "
        raise ParameterError(Advice(Parameter("cache"), words, Value(None), "."))
    folder = Path(given)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        words = f" is {os.fspath(given)!r}; the folder cannot be created ({error.strerror or error})."
        raise ParameterError(Advice(Parameter("cache"), words)) from error
    return folder


class CodeCache:
    """The codes of one question, which is the fingerprint of all that decides a code but the picture."""

    def __init__(self, folder: Path, question: str, n_maps: int) -> None:
        self._folder, self._n_maps = folder / question, n_maps
        self._waiting: dict[bytes, Floats] = {}
        self._has_failed = False
        self._known: dict[bytes, tuple[Path, int]] = {}
        for path in sorted(self._folder.glob("*.safetensors")):
            self._known |= {key: (path, row) for row, key in enumerate(self._keys_of(path))}

    def fill(self, keys: Sequence[bytes], into: Floats) -> NDArray[np.bool_]:
        """Write the codes that are here into an array, each file opened once; return for which pictures they are."""
        is_here = np.zeros(len(keys), bool)
        rows_of: dict[Path, list[tuple[int, int]]] = {}
        for place, key in enumerate(keys):
            if key in self._known:
                path, row = self._known[key]
                rows_of.setdefault(path, []).append((place, row))
        for path, pairs in rows_of.items():
            places, rows = np.array(pairs).T
            try:
                with safetensors.safe_open(path, framework="numpy") as file:
                    into[places] = file.get_tensor("codes")[rows]
            except FileNotFoundError:  # removed by another process: these are computed again
                continue
            is_here[places] = True
        return is_here

    def keep(self, keys: Sequence[bytes], codes: Floats) -> None:
        """Add codes; they are written in files of `ROWS_PER_FILE` rows, the rest by `flush`."""
        self._waiting |= dict(zip(keys, codes, strict=True))
        if len(self._waiting) >= ROWS_PER_FILE:
            self.flush()

    def flush(self) -> None:
        """Write the codes that are not yet on disk."""
        if not self._waiting:
            return
        keys = np.frombuffer(b"".join(self._waiting), np.uint8).reshape(-1, DIGEST_BYTES)
        codes = np.stack(list(self._waiting.values()))
        path = self._folder / f"{fingerprint(keys, codes)}.safetensors"
        self._waiting = {}
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            replace_file(path, safetensors.numpy.save({"keys": keys, "codes": codes}))
        except OSError as error:  # the codes themselves are computed, and need no copy
            if not self._has_failed:
                message = (
                    f"{path}: the cache cannot be written ({error.strerror or error}); codes are computed without it. "
                    "Free some space, choose another folder (cache=…), or turn the cache off (cache=None)."
                )
                warnings.warn(message, MargroveWarning, stacklevel=level_of_caller())
            self._has_failed = True

    def _keys_of(self, path: Path) -> list[bytes]:
        """Return the keys of a file; none, with a warning, of a damaged one: its codes are computed again."""
        problem = "its content has changed"
        try:
            with safetensors.safe_open(path, framework="numpy") as file:
                keys, codes = file.get_tensor("keys"), file.get_tensor("codes")
            is_shaped = keys.shape[1:] == (DIGEST_BYTES,) and codes.shape == (*keys.shape[:1], self._n_maps)
            # The name is the digest of the content: a flipped bit is found.
            if is_shaped and keys.dtype == np.uint8 and path.stem == fingerprint(keys, codes):
                return [row.tobytes() for row in keys]
        except (safetensors.SafetensorError, OSError) as error:
            problem = str(error)
        message = f"{path}: this file of the cache is damaged ({problem}); its codes are computed again."
        warnings.warn(message, MargroveWarning, stacklevel=level_of_caller())
        if os.access(self._folder, os.W_OK):
            path.unlink(missing_ok=True)
        return []
