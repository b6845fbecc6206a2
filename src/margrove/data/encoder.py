"""`TableEncoder`: a scikit-learn transformer from columns of any kind to numbers."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from margrove.advice import Advice, InPython, Setting
from margrove.data.alignment import as_trained, check_names, tell_unseen, with_trained_parts
from margrove.data.columns import Column, named
from margrove.data.encoding import (
    Description,
    Origin,
    describe_category,
    describe_numeric,
    describe_sparse,
    encode,
    encoded_name,
    origins,
    scale_sparse,
    width,
)
from margrove.data.formats import Format
from margrove.data.inspection import is_constant, is_free_text, is_identifier
from margrove.data.lazy import is_files, kind_of_collection, predicted_lazily
from margrove.data.rows import Matrix
from margrove.data.sample import read_features
from margrove.data.table import Table, note_target
from margrove.data.text import (
    LARGEST_WIDTH,
    MOST_WORDS,
    TEXT_FEATURES,
    check_text_columns,
    describe_text,
    text_names,
)
from margrove.errors import DataWarning, InputError, ParameterError, check_choice, check_flag
from margrove.estimator import check_parameters, checked, estimator, fitted

# "auto" makes the output sparse from this width on, when at most this share of it can be other than zero:
# below, dense arithmetic is quicker and the memory saved is small.
SPARSE_WIDTH = 256
SPARSE_SHARE = 0.1


def _check_count(name: str, number: object, most: int | None = None) -> None:
    if isinstance(number, bool) or not isinstance(number, Integral) or not 1 <= int(number) <= (most or sys.maxsize):
        wanted = "≥ 1" if most is None else f"from 1 to {most:,}"
        raise ParameterError(f"{name} is {number!r}; it must be a whole number {wanted}.")


@estimator
class TableEncoder(TransformerMixin, BaseEstimator):
    """Numbers from a table: impute, standardise, one column per category.

    Numeric columns are imputed and standardised, booleans become 0 and 1, categories one column for each
    level, named ``island=Biscoe``, and one for missing cells, ``island=missing``, where training had any. A
    category that training did not know is zero in all of them. A column that is named in `text` becomes one column
    for each of its words, named ``body: word``.

    A frame or `Table` is matched by the names of its columns, in any order; an array by position. A sparse
    table stays sparse: each column is divided by its root mean square and not centred.

    Parameters
    ----------
    impute : {"median", "mean", "zero"}, default="median"
        What fills a missing number; booleans likewise.
    standardise : bool, default=True
        Make the mean of each numeric column 0 and its deviation 1.
    unseen : {"warn", "error", "ignore"}, default="warn"
        What to do about categories that training did not know.
    add_indicator : bool, default=False
        Follow each number that was missing in training by a column that says where it is missing.
    drop_identifiers : bool, default=True
        Leave out categories whose cells all differ.
    drop_constant : bool, default=True
        Leave out columns whose cells are all the same.
    sparse_output : bool or "auto", default="auto"
        Give a CSR matrix. "auto": where the input is sparse, or where there are 256 output columns or more
        and text among them, or at most a tenth of the cells can be other than zero.
    text : str or list of str, optional
        Columns of free text. A missing cell is a text without a word.
    text_features : {"tfidf", "hashing"}, default="tfidf"
        "tfidf" counts words, the rarer the heavier, and keeps their names. "hashing" spreads whatever words there are
        over `max_features` columns by number: nothing is kept.
    min_df : int, default=2
        Of "tfidf": leave out words that are in fewer rows than that.
    max_features : int, default=131072
        The most words of each text column, the most frequent ones; of "hashing" how many columns there are.

    Attributes
    ----------
    columns_ : list of dict
        What was learned of each column that is kept, as plain JSON: see `margrove.data.encoding`.
    dropped_ : list of dict
        The columns left out: name, index and why ("identifier" or "constant").
    target_ : str or None
        The name of the target within the `Table` it was fitted on: a column that a later table may have, unused.
    target_format_ : margrove.data.formats.Format
        How a target of numbers is written; only where that is not plain.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only where the training table had names.
    deviations_ : list of float
        The standard deviation of each output column over the training rows, to four digits: what makes weights
        comparable. Only after `remember_deviations`, which the command line calls; model files keep it.

    Examples
    --------
    >>> from margrove.data import TableEncoder, load_penguins
    >>> penguins = load_penguins()
    >>> encoder = TableEncoder().fit(penguins)
    >>> [str(name) for name in encoder.get_feature_names_out()[:4]]
    ['island=Biscoe', 'island=Dream', 'island=Torgersen', 'bill_length_mm']
    >>> encoder.transform(penguins).shape
    (344, 11)
    >>> reviews = {"stars": [5.0, 1.0, 4.0], "body": ["Good tea, good pot", "Bad pot", "Really good!"]}
    >>> import pandas as pd
    >>> encoder = TableEncoder(text="body").fit(pd.DataFrame(reviews))
    >>> [str(name) for name in encoder.get_feature_names_out()]
    ['stars', 'body: good', 'body: pot']
    """

    impute: str = checked(check_choice, allowed=("median", "mean", "zero"), default="median")
    standardise: bool = checked(check_flag, default=True)
    unseen: str = checked(check_choice, allowed=("warn", "error", "ignore"), default="warn")
    add_indicator: bool = checked(check_flag, default=False)
    drop_identifiers: bool = checked(check_flag, default=True)
    drop_constant: bool = checked(check_flag, default=True)
    sparse_output: bool | str = checked(check_choice, allowed=(True, False, "auto"), default="auto")
    text: str | Sequence[str] | None = checked(lambda _, text: text_names(text), default=None)
    text_features: str = checked(check_choice, allowed=TEXT_FEATURES, default="tfidf")
    min_df: int = checked(_check_count, default=2)
    max_features: int = checked(_check_count, most=LARGEST_WIDTH, default=MOST_WORDS)

    columns_: list[Description] = fitted()
    dropped_: list[dict[str, Any]] = fitted()
    target_: str | None = fitted()
    target_format_: Format = fitted()  # only of a target that is not written plainly
    n_features_in_: int = fitted()
    feature_names_in_: NDArray[Any] = fitted()
    deviations_: list[float] = fitted()

    def fit(self, X: Any, y: object = None) -> Self:
        """Learn levels, fills, means and scales of a table, data frame, array or sparse matrix; ``y`` is ignored.

        X may be a Dask array or data frame, or a list of files or a pattern (``"data/*.csv"``), of which y is the name
        of the target: then the encoding is learned on the workers of the current Dask client, and is the same.
        """
        check_parameters(self)
        self.__dict__.pop("deviations_", None)  # those of an earlier fit
        if is_files(X) or kind_of_collection(X) is not None:
            return self._fit_partitions(X, y)
        table = read_features(self, X)
        check_text_columns(table, text_names(self.text))
        if table.sparse is not None:
            how = (self.impute, self.standardise, self.drop_constant)
            self.columns_, self.dropped_ = describe_sparse(table, *how)
        else:
            self.columns_, self.dropped_ = self._learn_dense(table)
        note_target(self, table)
        self._check_dropped(table.source, table.n_rows, texts_among(table, self.dropped_))
        return self

    def _fit_partitions(self, X: Any, y: object) -> Self:
        """Learn each column where all of it has been brought together."""
        from margrove.data.dask_partitions import connected, last_of, partitions_of
        from margrove.data.regrouped import regrouped

        with connected(None) as client:
            parts = partitions_of(client, X, y if isinstance(y, str) else None, None, needs_target=False)
            n, groups = regrouped(self, parts, clone(self), text_names(self.text))
            keys = [group.submit(_learned, clone(self), group.start) for group in groups]
            found = last_of(parts.tasks.results(keys))
        if isinstance(y, str):
            self.target_ = y
        self.columns_ = [column for kept, _, _ in found for column in kept]
        self.dropped_ = [column for _, dropped, _ in found for column in dropped]
        self._check_dropped("partitions", n, [name for _, _, texts in found for name in texts])
        return self

    def transform(self, X: Any) -> Matrix:
        """Return the table as numbers, an array or CSR matrix: float32 where every number of it is, else float64.

        Of a Dask collection it is a dask array, and of files a set of files, which workers will read and encode.
        """
        check_is_fitted(self)
        if is_files(X):
            from margrove.data.file_set import FileSet

            return replace(FileSet.of(X), encoder=self)
        if kind_of_collection(X) is not None:
            return self._transform_lazily(X)
        everything = sorted((*self.columns_, *self.dropped_), key=lambda column: column["index"])
        table = read_features(self, X, names=[column["name"] for column in everything])
        table = with_trained_parts(table, self.columns_)
        wanted = [description["name"] for description in self.columns_]
        check_names(table, wanted, known=[*(column["name"] for column in self.dropped_), self.target_ or ""])
        if table.sparse is not None:
            return scale_sparse(table, self.columns_)
        if table.block is not None and self._is_plain():
            return self._scale_block(table, wanted)
        columns = [as_trained(table, description) for description in self.columns_]
        tell_unseen(table, columns, self.unseen, "each is treated as none of the known categories")
        return self._encode(columns, table.n_rows)

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> NDArray[Any]:
        """Return the names of the output's columns; ``input_features`` are those of a table without names."""
        check_is_fitted(self)
        names = {column["index"]: column["name"] for column in (*self.columns_, *self.dropped_)}
        if input_features is not None:
            given = [str(name) for name in input_features]
            if len(given) != self.n_features_in_:
                raise ParameterError("input_features should have length equal to number of features.")
            if hasattr(self, "feature_names_in_") and given != list(self.feature_names_in_):
                raise ParameterError("input_features is not equal to feature_names_in_")
            names = dict(enumerate(given))
        out = []
        for column in self.columns_:
            renamed = {**column, "name": names[column["index"]]}
            out += [encoded_name(origin, column.get("levels", ())) for origin in origins([renamed])]
        return np.array(out, dtype=object)

    def output_origins(self) -> list[Origin]:
        """Return for each output column its input column, its level, and whether it means "missing"."""
        check_is_fitted(self)
        return origins(self.columns_)

    def remember_deviations(self, encoded: Matrix) -> Self:
        """Set ``deviations_``; ``encoded`` is the output of `transform` for the training rows."""
        variances = StandardScaler(with_mean=False).fit(encoded).var_
        self.deviations_ = [float(f"{deviation:.4g}") for deviation in np.sqrt(variances).tolist()]
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _learn_dense(self, table: Table) -> tuple[list[Description], list[dict[str, Any]]]:
        kept, dropped, texts = [], [], text_names(self.text)
        for index, column in enumerate(table):
            is_text = column.name in texts
            if self.drop_constant and is_constant(column):
                dropped.append({"name": column.name, "index": index, "why": "constant"})
            elif self.drop_identifiers and not is_text and is_identifier(column):
                dropped.append({"name": column.name, "index": index, "why": "identifier"})
            elif is_text:
                words = (self.text_features, self.min_df, self.max_features)
                kept.append(describe_text(column, index, *words, source=table.source))
            elif column.kind == "category":
                kept.append(describe_category(column, index))
            else:
                numbers = (self.impute, self.standardise, self.add_indicator)
                kept.append(describe_numeric(column, index, *numbers))
        return kept, dropped

    def _check_dropped(self, source: str, n: int, texts: Sequence[str]) -> None:
        """Warn of columns that are left out, of which ``texts`` are free text. Raise `InputError` if none is left."""
        if not self.columns_:
            problem = f"no column is left to learn from (n_samples = {n}): each is constant or an identifier"
            keep = InPython(", or keep them: drop_constant=False, drop_identifiers=False")
            raise InputError(problem, file=source, cure=Advice("Add rows or columns", keep, "."))
        reasons = {"constant": "are constant", "identifier": "are identifiers (nearly every cell is different)"}
        for why, words in reasons.items():
            names = [column["name"] for column in self.dropped_ if column["why"] == why]
            hint = ("; the words of a text are used with ", Setting("text", texts[0])) if texts else ()
            if names:
                hint = hint if why == "identifier" else ()
                message = Advice(f"{source}: columns that {words} are left out: {named(names)}", *hint, ".")
                warnings.warn(message, DataWarning, stacklevel=3)

    def _transform_lazily(self, X: Any) -> Any:
        """Return the encoded partitions of a collection, of which nothing is computed yet."""
        numeric = {column["name"] for column in self.columns_ if column["kind"] == "numeric"}
        is_frame = hasattr(X, "columns")
        dtypes = [kind for name, kind in X.dtypes.items() if str(name) in numeric] if is_frame else [X.dtype]
        is_single = len(dtypes) > 0 and all(kind == np.float32 for kind in dtypes)
        dtype, size = np.dtype(np.float32 if is_single else np.float64), sum(map(width, self.columns_))
        meta = scipy.sparse.csr_matrix((0, size), dtype=dtype) if self._gives_sparse(size) else None
        return predicted_lazily(self, "transform", X, dtype, size, meta=meta)

    def _is_plain(self) -> bool:
        """Return whether the encoding is arithmetic alone, from numbers to as many numbers."""
        return self.sparse_output is not True and all(
            column["kind"] == "numeric" and not column["indicator"] for column in self.columns_
        )

    def _scale_block(self, table: Table, wanted: list[str]) -> NDArray[Any]:
        """(X − mean) / scale over a whole block at once."""
        block = table.select(wanted).block
        assert block is not None
        mean, scale, fill = (np.array([column[key] for column in self.columns_]) for key in ("mean", "scale", "fill"))
        out = np.empty(block.shape, dtype=block.dtype)
        # In float64 whatever comes in: a mean rounded to float32 would shift a column whose spread is small.
        np.subtract(block, mean, out=out, dtype=np.float64, casting="same_kind")
        np.divide(out, scale, out=out, dtype=np.float64, casting="same_kind")
        rows, columns = np.nonzero(np.isnan(out))
        out[rows, columns] = ((fill - mean) / scale)[columns]
        return out

    def _encode(self, columns: list[Column], n: int) -> Matrix:
        numeric = [column.values.dtype for column in columns if column.kind == "numeric"]
        dtype = np.result_type(*numeric) if numeric else np.dtype(np.float64)
        widths = [width(description) for description in self.columns_]
        encoded = (encode(*each, dtype) for each in zip(columns, self.columns_, strict=True))
        if self._gives_sparse(sum(widths)):
            return scipy.sparse.hstack([scipy.sparse.csr_matrix(part) for part in encoded], format="csr")
        out = np.zeros((n, sum(widths)), dtype=dtype)
        for part, end, size in zip(encoded, np.cumsum(widths), widths, strict=True):
            if scipy.sparse.issparse(part):
                cells = part.tocoo()
                out[cells.row, end - size + cells.col] = cells.data
            else:
                out[:, end - size : end] = part
        return out

    def _gives_sparse(self, total_width: int) -> bool:
        if self.sparse_output != "auto":
            return bool(self.sparse_output)
        wanted = getattr(self, "_sklearn_output_config", {}).get("transform") or get_config()["transform_output"]
        if wanted != "default":  # a frame was asked for, and frames are not sparse
            return False
        if any(column["kind"] == "text" for column in self.columns_):  # a row has few of the words
            return total_width >= SPARSE_WIDTH
        # At most one cell of each input column is not zero (two with an indicator, which is rare).
        return total_width >= SPARSE_WIDTH and len(self.columns_) <= SPARSE_SHARE * total_width


def texts_among(table: Table, dropped: Sequence[Description]) -> list[str]:
    """Return the names of the identifiers among the columns left out that are free text."""
    return [each["name"] for each in dropped if each["why"] == "identifier" and is_free_text(table[each["name"]])]


def _learned(
    pieces: list[Table | None], encoder: TableEncoder, start: int
) -> tuple[list[Description], list[Description], list[str]]:
    """Return what is learned of some columns of all rows, those left out, and which of these are free text. ``start``
    is the number of the first one."""
    from margrove.data.regrouped import whole_columns

    table = whole_columns(pieces)
    check_text_columns(table, [name for name in text_names(encoder.text) if name in table])
    kept, dropped = encoder._learn_dense(table)
    for description in (*kept, *dropped):
        description["index"] += start
    return kept, dropped, texts_among(table, dropped)
