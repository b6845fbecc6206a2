"""Encode a column of free text: its words are counted and weighted by scikit-learn's vectorisers.

tfidf      x  ↦  t / ‖t‖,   t_w = (how often w is in x) · idf_w,   idf_w = 1 + ln((1 + n)/(1 + n_w))
hashing    x  ↦  t / ‖t‖,   t_j = Σ ± (how often w is in x), over the words w whose hash is j

n rows have taught it, n_w of them with the word w. A word is two or more letters or digits, in lower case. Under
``tfidf`` the words of training are known by name, those in fewer than `min_df` rows and the rarest beyond
`max_features` are not; ``hashing`` knows none, takes any, and keeps nothing in the model. A cell without a known word,
a missing one among them, is zero throughout.

What is learned is a plain dict, as in `encoding`:

``{"name", "index", "kind": "text", "features": "tfidf" | "hashing", "n_columns", "words", "idf"}``

``words`` are sorted; under ``hashing`` there are none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from margrove.advice import Advice, InPython, Parameter
from margrove.data.columns import MISSING, Column, named
from margrove.data.table import Table
from margrove.errors import InputError, ParameterError, did_you_mean

if TYPE_CHECKING:
    import scipy.sparse
    from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer

TEXT_FEATURES = ("tfidf", "hashing")
LEAVE_OUT = Advice(InPython("Leave it out of text", "Leave out its ", Parameter("text")))
# 1 MiB of weights for each machine. Of the 130,000 words in 11,314 letters to newsgroups 56,000 are in two or more.
MOST_WORDS = 2**17
LARGEST_WIDTH = 2**24  # beyond, one machine's weights take 128 MiB


def text_names(text: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the parameter ``text`` as names of columns. Raise `ParameterError` if it is something else, or names a
    column twice."""
    if text is None:
        return ()
    if isinstance(text, str):
        return (text,)
    if not isinstance(text, list | tuple) or not all(isinstance(name, str) for name in text):
        raise ParameterError(f"text is {text!r}; it must be the name of a column, or a list of names.")
    for name in text:
        if text.count(name) > 1:
            raise ParameterError(f"text names the column {name!r} twice. Name it once.")
    return tuple(text)


def check_text_columns(table: Table, names: Sequence[str]) -> None:
    """Refuse names that the table does not have, and columns that hold no text."""
    for name in names:
        refuse = partial(InputError, file=table.source, column=name)
        if table.target is not None and table.target.name == name:
            problem = "is the target, which cannot also be a feature"
            raise refuse(problem, cure=Advice(LEAVE_OUT, "."))
        if name not in table:
            problem = f"there is no column {name!r} to read text from"
            meant = did_you_mean(name, table.names)
            raise InputError(problem, file=table.source, cure=f"{meant}The columns are {named(table.names)}.")
        column = None if table.sparse is not None else table[name]
        if column is not None and column.n_missing == len(column):
            raise refuse("is empty, so it has no words", cure="Leave it out.")
        if column is None or column.kind != "category":
            kind = "truth values" if column is not None and column.kind == "boolean" else "numbers"
            raise refuse(f"holds {kind}, not text", cure=Advice(LEAVE_OUT, "; the column is used anyway."))


def describe_text(
    column: Column, index: int, features: str, min_df: int, max_features: int, *, source: str
) -> dict[str, Any]:
    """Return what is learned of a column of text. Raise `InputError` if no word is left."""
    if features == "hashing":
        return text_description(column.name, index, features, max_features)
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = _texts(column)
    vectoriser = TfidfVectorizer(min_df=min_df, max_features=max_features)
    try:
        vectoriser.fit(texts)
    except ValueError as error:  # no words at all, or none in so many rows
        raise InputError(
            f"no word of two or more letters occurs in at least {min_df} of {len(texts)} rows",
            file=source,
            column=column.name,
            cure=Advice(LEAVE_OUT, *([InPython(", or lower min_df")] if min_df > 1 else []), "."),
        ) from error
    words = vectoriser.get_feature_names_out().tolist()
    return text_description(column.name, index, features, len(words), words, vectoriser.idf_.tolist())


def text_description(
    name: str, index: int, features: str, width: int, words: Sequence[str] = (), idf: Sequence[float] = ()
) -> dict[str, Any]:
    """Return the description of a column of text."""
    vocabulary = {"n_columns": width, "words": list(words), "idf": list(idf)}
    return {"name": name, "index": index, "kind": "text", "features": features, **vocabulary}


def encode_text(column: Column, description: Mapping[str, Any], dtype: DTypeLike) -> scipy.sparse.csr_matrix:
    """Return an encoded column of text as a CSR matrix of shape (n, n_columns)."""
    # Each distinct text once; a table of some rows may know the levels of many more.
    occurs, places = np.unique(column.values, return_inverse=True)
    distinct = Column(column.name, "category", occurs, column.levels)
    return _vectoriser(description).transform(_texts(distinct)).astype(dtype, copy=False)[places]


def word_of(description: Mapping[str, Any], j: int) -> str:
    """Return the word of the encoded column j, or the number of its hash."""
    return str(description["words"][j]) if description["features"] == "tfidf" else f"#{j}"


def _texts(column: Column) -> list[str]:
    return ["" if code == MISSING else str(column.levels[code]) for code in column.values.tolist()]


def _vectoriser(description: Mapping[str, Any]) -> HashingVectorizer | TfidfVectorizer:
    """Return a vectoriser as it was after its fit."""
    from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer

    if description["features"] == "hashing":
        return HashingVectorizer(n_features=description["n_columns"])
    vectoriser = TfidfVectorizer(vocabulary=description["words"])
    vectoriser.idf_ = np.array(description["idf"])
    return vectoriser
