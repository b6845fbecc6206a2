"""Feature maps as columns of a tree: the maps that it tests, and the pictures to which they respond most."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from margrove.data import Table
from margrove.errors import InputError, check_whole, shown
from margrove.transfer.features import ConvFeatures
from margrove.transfer.networks import Floats
from margrove.transfer.pictures import as_pictures

_MAP = re.compile(r"map_(\d+)")


@dataclass(frozen=True)
class Response:
    """The strongest responses of one map."""

    number: int
    rows: NDArray[np.intp]  # pictures, the strongest response first
    codes: Floats  # (len(rows),), the pooled response
    heat: Floats  # (len(rows), height, width), the response

    @property
    def name(self) -> str:
        """The name of its column."""
        return f"map_{self.number}"


def map_number(given: Any) -> int:
    """Return the number of a map, given by its number or by its name, ``"map_17"``."""
    if isinstance(given, str) and (match := _MAP.fullmatch(given)):
        return int(match.group(1))
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        return int(given)
    raise InputError(f"which holds {shown(given)}; a map is a number, or a name such as 'map_17'")


def used_maps(tree: Any) -> list[int]:
    """Return the maps that a tree on named maps tests, the most important first; the tree may end a Pipeline."""
    tree = tree[-1] if hasattr(tree, "steps") else tree
    check_is_fitted(tree)
    if not hasattr(tree, "nodes_"):
        raise InputError(f"{type(tree).__name__} is not a tree", cure="Use a DecisionTreeClassifier.")
    shares = zip([column.name for column in tree.nodes_.columns], tree.feature_importances_.tolist(), strict=True)
    asked = sorted(((share, name) for name, share in shares if share > 0), key=lambda pair: -pair[0])
    found = [_MAP.fullmatch(name) for _, name in asked]
    if not all(found):
        raise InputError("the tree tests columns that are not maps", cure="Fit it on ConvFeatures(named=True).")
    return [int(match.group(1)) for match in found if match is not None]


def strongest(features: ConvFeatures, X: Any, which: Sequence[int], *, n_pictures: int = 4) -> list[Response]:
    """Return the pictures with the strongest response of each of some maps, given by their numbers."""
    check_whole("n_pictures", n_pictures, least=1)
    given = as_pictures(X)
    made = features.transform(given)
    codes = np.asarray(made.block if isinstance(made, Table) else made)
    found = []
    for number in which:
        if not 0 <= number < codes.shape[1]:
            raise InputError(f"there is no map {number}; they are numbered from 0 to {codes.shape[1] - 1:,}")
        rows = np.argsort(-codes[:, number], kind="stable")[:n_pictures]
        heat = features.maps([given[i] for i in rows], [number])[:, 0]
        found.append(Response(int(number), rows, codes[rows, number], heat))
    return found
