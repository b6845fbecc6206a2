"""TableEncoder: the numbers a margin sees, by name, and nothing kept but plain JSON."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from margrove.data import TableEncoder, as_table, load_penguins, read_table
from margrove.data.encoding import Origin
from margrove.errors import DataWarning, InputError, ParameterError, UnseenCategoryWarning


@parametrize_with_checks([TableEncoder(), TableEncoder(standardise=False, drop_constant=False)])
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


@pytest.fixture
def frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "mass": [1.0, np.nan, 3.0, 8.0],
            "tame": [True, False, None, True],
            "home": ["sea", "ice", None, "sea"],
            "year": [7, 8, 9, 9],
        }
    )


def test_each_kind_becomes_its_numbers(frame):
    encoder = TableEncoder(standardise=False).fit(frame)
    names = ["mass", "tame", "home=ice", "home=sea", "home=missing", "year"]
    assert encoder.get_feature_names_out().tolist() == names
    assert encoder.transform(frame).tolist() == [
        [1, 1, 0, 1, 0, 7],
        [3, 0, 1, 0, 0, 8],  # the median fills
        [3, 1, 0, 0, 1, 9],
        [8, 1, 0, 1, 0, 9],
    ]


@pytest.mark.parametrize("impute", ["median", "mean"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("as_columns", [False, True])
def test_numbers_agree_with_scikit_learn(impute, dtype, as_columns):
    rng = np.random.default_rng(5)
    X = (rng.normal(size=(60, 4)) * [1, 1e-3, 1e5, 3] + [0, 5, 1e5, -2]).astype(dtype)
    X[rng.random(X.shape) < 0.2] = np.nan
    wanted = make_pipeline(SimpleImputer(strategy=impute), StandardScaler()).fit_transform(X.astype(np.float64))
    table = pd.DataFrame(X).assign(text=list("ab" * 30)) if as_columns else X
    found = TableEncoder(impute=impute).fit_transform(table)[:, :4]
    assert found.dtype == dtype
    np.testing.assert_allclose(found, wanted, atol=1e-5 if dtype == np.float32 else 1e-12)


def test_zero_fills_with_zero():
    X = np.array([[1.0], [np.nan], [3.0]])
    assert TableEncoder(impute="zero", standardise=False).fit_transform(X).ravel().tolist() == [1, 0, 3]


def test_float32_with_a_large_mean_keeps_its_spread():
    X = np.float32(1e6) + np.arange(100, dtype=np.float32)[:, None] % 7
    Z = TableEncoder().fit_transform(X)
    assert abs(Z.mean()) < 1e-6
    assert abs(Z.std() - 1) < 1e-6


@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_extreme_numbers_neither_overflow_nor_vanish(size):
    Z = TableEncoder().fit_transform(np.array([[1.0], [2.0], [3.0]]) * size)
    np.testing.assert_allclose(Z.ravel(), [-(1.5**0.5), 0, 1.5**0.5])
    matrix = scipy.sparse.csr_matrix(np.array([[size], [0.0], [2 * size]]))
    np.testing.assert_allclose(
        TableEncoder().fit_transform(matrix).toarray().ravel(), np.array([1, 0, 2]) / (5 / 3) ** 0.5
    )


def test_indicators_follow_numbers_that_were_missing(frame):
    encoder = TableEncoder(add_indicator=True, standardise=False).fit(frame)
    names = encoder.get_feature_names_out().tolist()
    assert names[:4] == ["mass", "mass=missing", "tame", "tame=missing"]
    assert "year=missing" not in names
    assert encoder.transform(frame)[:, 1].tolist() == [0, 1, 0, 0]
    block = np.array([[1.0, 2.0], [np.nan, 3.0]])
    assert TableEncoder(add_indicator=True).fit(block).get_feature_names_out().tolist() == [
        "x0",
        "x0=missing",
        "x1",
    ]


def test_origins_lead_back_to_the_table(frame):
    encoder = TableEncoder().fit(frame)
    origins = encoder.output_origins()
    assert origins[0] == Origin("mass", None, False)
    assert origins[3] == Origin("home", "sea", False)
    assert origins[4] == Origin("home", None, True)
    assert len(origins) == len(encoder.get_feature_names_out())


def test_a_level_called_missing_is_not_the_missing_cell():
    encoder = TableEncoder().fit(pd.DataFrame({"c": ["missing", None, "x"]}))
    assert encoder.get_feature_names_out().tolist() == ["c=missing", "c=x", "c=(missing)"]


def test_columns_are_matched_by_name_in_any_order(frame):
    encoder = TableEncoder().fit(frame)
    wanted = encoder.transform(frame)
    np.testing.assert_array_equal(encoder.transform(frame[["year", "home", "mass", "tame"]]), wanted)
    np.testing.assert_array_equal(encoder.transform(pl.from_pandas(frame)), wanted)
    np.testing.assert_array_equal(encoder.transform(as_table(frame)), wanted)


def test_missing_columns_are_named(frame):
    encoder = TableEncoder().fit(frame)
    with pytest.raises(InputError, match=r"2 of the 4 training columns are missing: 'mass', 'home'"):
        encoder.transform(frame[["tame", "year"]])


def test_a_missing_column_is_sought_among_those_of_the_file():
    days = np.arange("2024-01-01", "2024-03-01", dtype="datetime64[D]")
    frame = pd.DataFrame({"day": days, "mass": np.arange(60.0)})
    encoder = TableEncoder().fit(as_table(frame).with_date_parts())
    with pytest.raises(InputError, match=r"Did you mean 'Mass'\? The table's columns are 'day', 'Mass'\.$"):
        encoder.transform(frame.rename(columns={"mass": "Mass"}))


def test_extra_columns_are_ignored_with_a_warning(frame):
    encoder = TableEncoder().fit(frame)
    with pytest.warns(DataWarning, match="columns that the model does not use are ignored: 'colour'"):
        Z = encoder.transform(frame.assign(colour="red"))
    np.testing.assert_array_equal(Z, encoder.transform(frame))


def test_unseen_categories_are_all_zero_and_warned_of_once(frame):
    encoder = TableEncoder().fit(frame)
    new = frame.assign(home=["sea", "moon", "moon", "mars"])
    with pytest.warns(UnseenCategoryWarning) as told:
        Z = encoder.transform(new)
    assert [str(word.message) for word in told] == [
        "3 cells of categories unseen in training: home='mars' (1), home='moon' (2); "
        "each is treated as none of the known categories."
    ]
    assert Z[1:, 2:5].tolist() == np.zeros((3, 3)).tolist()


def test_unseen_categories_may_be_an_error_or_ignored(frame):
    new = frame.assign(home="moon")
    with pytest.raises(InputError, match="column 'home': 4 cells of categories unseen in training: home='moon'"):
        TableEncoder(unseen="error").fit(frame).transform(new)
    assert TableEncoder(unseen="ignore").fit(frame).transform(new)[:, 2:5].sum() == 0


def test_a_missing_category_that_training_never_saw_is_all_zero():
    encoder = TableEncoder().fit(pd.DataFrame({"c": ["a", "b"]}))
    assert encoder.transform(pd.DataFrame({"c": [None, "a"]})).tolist() == [[0, 0], [1, 0]]


def test_constants_and_identifiers_are_dropped_with_a_warning():
    frame = pd.DataFrame({"id": [f"p{k}" for k in range(12)], "one": 1.0, "none": [None] * 12, "x": range(12)})
    with pytest.warns(DataWarning) as told:
        encoder = TableEncoder().fit(frame)
    assert [str(word.message) for word in told] == [
        "pandas table: columns that are constant are left out: 'one', 'none'.",
        "pandas table: columns that are identifiers (nearly every cell is different) are left out: 'id'.",
    ]
    assert encoder.dropped_ == [
        {"name": "id", "index": 0, "why": "identifier"},
        {"name": "one", "index": 1, "why": "constant"},
        {"name": "none", "index": 2, "why": "constant"},
    ]
    assert encoder.transform(frame[["x"]]).shape == (12, 1)  # what was dropped need not be there
    kept = TableEncoder(drop_constant=False, drop_identifiers=False).fit_transform(frame)
    assert kept.shape == (12, 12 + 3)
    assert np.isfinite(kept).all()


def test_nothing_left_is_an_error():
    with pytest.raises(InputError, match="no column is left to learn from"):
        TableEncoder().fit(np.ones((3, 2)))
    with pytest.raises(InputError, match=r"has 0 row\(s\) and 1 column"):
        TableEncoder().fit(pd.DataFrame({"a": []}))


def test_kinds_are_those_of_training(frame):
    encoder = TableEncoder(standardise=False).fit(frame)
    same = frame.assign(
        mass=pd.Categorical(["1", None, "3", "8"]),
        tame=["TRUE", "false", None, "True"],
        year=["7", "8", "9", "9"],
    )
    np.testing.assert_array_equal(encoder.transform(same), encoder.transform(frame))
    numbers = frame.assign(tame=[1.0, 0.0, np.nan, 1.0])
    np.testing.assert_array_equal(encoder.transform(numbers), encoder.transform(frame))
    flags = encoder.transform(frame.assign(year=[True, False, None, True]))
    assert flags[:, 5].tolist() == [1, 0, 8.5, 1]


def test_categories_of_numbers_match_numbers():
    encoder = TableEncoder().fit(pd.DataFrame({"c": pd.Categorical([3, 1, 3])}))
    assert encoder.get_feature_names_out().tolist() == ["c=1", "c=3"]
    assert encoder.transform(pd.DataFrame({"c": [1.0, 3.0]})).tolist() == [[1, 0], [0, 1]]


def test_categories_of_text_match_what_a_file_reads_as_numbers_or_truth():
    encoder = TableEncoder().fit(pd.DataFrame({"c": ["1", "2", "x"], "d": ["True", "False", "maybe"]}))
    Z = encoder.transform(pd.DataFrame({"c": [2, 1], "d": [False, True]}))
    assert Z.tolist() == [[0, 1, 0, 1, 0, 0], [1, 0, 0, 0, 1, 0]]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"mass": ["1", "heavy", "3", "4"]},
            "column 'mass': 'heavy' in row 1 is not a number, as the column was in",
        ),
        ({"tame": ["yes", "no", "no", "no"]}, "column 'tame': 'yes' in row 0 is not true or false"),
        ({"tame": [0, 1, 2, 1]}, r"column 'tame': '2.0' in row 2 is not true or false"),
    ],
)
def test_a_cell_of_another_kind_is_named(frame, change, words):
    encoder = TableEncoder().fit(frame)
    with pytest.raises(InputError, match=words):
        encoder.transform(frame.assign(**change))


def test_arrays_are_matched_by_position_after_names(frame):
    encoder = TableEncoder().fit(frame[["mass", "year"]])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        Z = encoder.transform(frame[["mass", "year"]].to_numpy())
    np.testing.assert_array_equal(Z, encoder.transform(frame[["mass", "year"]]))


def test_sparse_stays_sparse_and_is_scaled_by_its_root_mean_square():
    X = scipy.sparse.random(50, 8, 0.3, format="csr", random_state=1, dtype=np.float32)
    Z = TableEncoder().fit_transform(X)
    assert scipy.sparse.issparse(Z)
    assert Z.dtype == np.float32
    assert Z.nnz == X.nnz
    np.testing.assert_allclose(np.sqrt(Z.multiply(Z).mean(axis=0)), 1, rtol=1e-5)
    assert not np.shares_memory(Z.indices, X.indices)


def test_sparse_missing_cells_are_imputed():
    X = scipy.sparse.csr_matrix(np.array([[np.nan, 1.0], [4.0, 0.0], [2.0, 0.0]]))
    encoder = TableEncoder(standardise=False).fit(X)
    assert encoder.transform(X).toarray().tolist() == [[3, 1], [4, 0], [2, 0]]


def test_sparse_and_dense_tables_do_not_mix_silently():
    dense = np.random.default_rng(0).random((5, 3))
    with pytest.raises(InputError, match="the table is sparse, but the training table was dense"):
        TableEncoder().fit(dense).transform(scipy.sparse.csr_matrix(dense))
    encoder = TableEncoder().fit(scipy.sparse.csr_matrix(dense))
    np.testing.assert_allclose(encoder.transform(dense), encoder.transform(scipy.sparse.csr_matrix(dense)).toarray())


def test_libsvm_features_a_file_does_not_name_are_zero(write):
    table = read_table(write("1 1:1 2:5\n0 2:1 4:2\n1 4:3\n"))
    with pytest.warns(DataWarning, match="constant are left out: 'feature_3'"):
        encoder = TableEncoder(standardise=False).fit(table)
    with pytest.warns(DataWarning, match="ignored: 'feature_5'"):
        Z = encoder.transform(read_table(write("1 2:7 5:1\n")))
    names = encoder.get_feature_names_out().tolist()
    assert names == ["feature_1", "feature_2", "feature_4"]
    assert Z.toarray().tolist() == [[0, 7, 0]]


@pytest.fixture
def wide() -> pd.DataFrame:
    rng = np.random.default_rng(2)
    cells = {f"c{k}": rng.integers(0, 100, 500).astype(str) for k in range(4)}
    return pd.DataFrame({**cells, "x": rng.random(500)})


def test_a_wide_output_that_is_mostly_zero_is_sparse(wide):
    Z = TableEncoder(unseen="ignore").fit_transform(wide)
    dense = TableEncoder(unseen="ignore", sparse_output=False).fit_transform(wide)
    assert scipy.sparse.issparse(Z)
    assert isinstance(dense, np.ndarray)
    np.testing.assert_array_equal(Z.toarray(), dense)
    # What training decided does not depend on how many rows are asked for.
    assert scipy.sparse.issparse(TableEncoder().fit(wide).transform(wide[:1]))


def test_sparse_output_can_be_requested(frame):
    Z = TableEncoder(sparse_output=True).fit_transform(frame)
    np.testing.assert_array_equal(Z.toarray(), TableEncoder().fit_transform(frame))
    assert scipy.sparse.issparse(TableEncoder(sparse_output=True).fit_transform(np.eye(3)))


def test_the_shape_of_the_state_is_as_documented(frame):
    columns = TableEncoder(add_indicator=True).fit(frame).columns_
    assert columns[0].keys() == {"name", "index", "kind", "fill", "mean", "scale", "indicator"}
    assert columns[1] == {
        "name": "tame",
        "index": 1,
        "kind": "boolean",
        "fill": 1.0,
        "mean": 0.0,
        "scale": 1.0,
        "indicator": True,
    }
    assert columns[2] == {
        "name": "home",
        "index": 2,
        "kind": "category",
        "levels": ["ice", "sea"],
        "missing_seen": True,
    }


def test_transform_changes_nothing(frame):
    encoder = TableEncoder(unseen="ignore").fit(frame)
    before = pickle.dumps(encoder)
    encoder.transform(frame.assign(home="moon"))
    assert pickle.dumps(encoder) == before


def test_set_output_gives_named_frames(frame):
    encoder = TableEncoder().set_output(transform="pandas")
    assert encoder.fit_transform(frame).columns.tolist() == encoder.get_feature_names_out().tolist()
    assert TableEncoder().set_output(transform="polars").fit_transform(frame).shape == (4, 6)


@pytest.mark.parametrize("parameter", ["impute", "unseen", "sparse_output"])
def test_bad_parameters_are_refused(parameter, frame):
    with pytest.raises(ParameterError, match=f"{parameter} is 'bad'; it must be one of"):
        clone(TableEncoder()).set_params(**{parameter: "bad"}).fit(frame)


def test_a_table_is_encoded_the_same_from_every_library(frame):
    wanted = TableEncoder().fit_transform(frame)
    for other in (pl.from_pandas(frame), pl.from_pandas(frame).to_arrow(), frame.convert_dtypes()):
        np.testing.assert_array_equal(TableEncoder().fit_transform(other), wanted)


def test_the_penguins_give_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert TableEncoder().fit_transform(load_penguins()).shape == (344, 11)


@pytest.mark.parametrize("cell", ["inf", "-Infinity", "1_000", "1e999"])
def test_infinite_numbers_and_numbers_with_underscores_are_refused(cell):
    encoder = TableEncoder().fit(pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0]}))
    with pytest.raises(InputError, match=f"'{cell}' in row 0 is not a number"):
        encoder.transform(pd.DataFrame({"a": [cell, "1"]}))
