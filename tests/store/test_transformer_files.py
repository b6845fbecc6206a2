"""scikit-learn's transformers in files: pipelines that people write come back to the last bit; forged ones do not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)
from tests.store.forgeries import drop_tensor, entry, put, put_parameter, put_tensor, refuse

from margrove import SVC, LinearSVC, TableEncoder, certify, save
from margrove.errors import MargroveWarning, ModelFileError
from margrove.store import describe

RNG = np.random.default_rng(3)
NUMBERS = RNG.normal(size=(40, 4)) * [1, 10, 0.1, 1000]
Y = (NUMBERS[:, 0] > 0).astype(int)
GAPS = np.where(RNG.random(NUMBERS.shape) < 0.2, np.nan, NUMBERS)
FRAME = pd.DataFrame(
    {
        "island": RNG.choice(["Biscoe", "Dream", "Torgersen", "Ü"], 40, p=[0.4, 0.3, 0.25, 0.05]),
        "size": RNG.normal(size=40),
        "legs": RNG.integers(2, 5, 40),
        "mass": np.where(RNG.random(40) < 0.2, np.nan, RNG.normal(4000, 100, 40)),
        "sex": pd.Series(RNG.choice(np.array(["f", "m", None]), 40), dtype=object),
    }
)
WORDS, MIXED = FRAME[["island", "legs"]], FRAME[["island", "sex"]]


def same(before, after):
    """Assert that two outputs are equal to the last bit, of the same type, and called the same."""
    assert type(before) is type(after)
    if sp.issparse(before):
        before, after = before.tocsr(), after.tocsr()
        assert (before.data.tobytes(), before.indices.tolist()) == (after.data.tobytes(), after.indices.tolist())
        assert before.shape == after.shape
    elif isinstance(before, np.ndarray):
        assert (before.dtype, before.shape) == (after.dtype, after.shape)
        if before.dtype == object:
            assert repr(before.tolist()) == repr(after.tolist())
        else:
            assert before.tobytes() == after.tobytes()
    else:
        assert before.equals(after)


CASES = {
    "standard": (StandardScaler(), NUMBERS),
    "standard, gaps": (StandardScaler(), GAPS),
    "standard, sparse": (StandardScaler(with_mean=False), sp.csr_matrix(NUMBERS)),
    "standard, idle": (StandardScaler(with_mean=False, with_std=False), NUMBERS),
    "standard, float32": (StandardScaler(), NUMBERS.astype(np.float32)),
    "standard, frame": (StandardScaler(), FRAME[["size", "legs"]]),
    "standard, constant": (StandardScaler(), np.ones((4, 2))),
    "min max": (MinMaxScaler(feature_range=(-1, 2), clip=True), GAPS),
    "max abs": (MaxAbsScaler(), sp.csc_matrix(NUMBERS)),
    "robust": (RobustScaler(with_centering=False), NUMBERS),
    "one hot": (OneHotEncoder(), WORDS),
    "one hot, dense": (OneHotEncoder(sparse_output=False, dtype=np.float32, drop="first"), MIXED),
    "one hot, binary": (OneHotEncoder(drop="if_binary", handle_unknown="ignore"), WORDS),
    "one hot, infrequent": (OneHotEncoder(min_frequency=5, handle_unknown="infrequent_if_exist"), WORDS),
    "one hot, few": (OneHotEncoder(max_categories=2, drop="first"), MIXED),
    "one hot, given": (OneHotEncoder(categories=[["Ü", "Dream", "Biscoe", "Torgersen"], [2, 3, 4]]), WORDS),
    "one hot, numbers": (OneHotEncoder(), np.round(GAPS)),
    "one hot, text array": (OneHotEncoder(), np.array([["a"], ["b"], ["ab"]])),
    "ordinal": (OrdinalEncoder(), MIXED),
    "ordinal, missing": (OrdinalEncoder(encoded_missing_value=-5, dtype=np.float32), MIXED),
    "ordinal, unknown": (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, max_categories=2), MIXED),
    "ordinal, gaps": (OrdinalEncoder(max_categories=3), np.round(GAPS[:, [0, 2]])),
    "imputer": (SimpleImputer(), GAPS),
    "imputer, empty": (SimpleImputer(), np.column_stack([GAPS, np.full(40, np.nan)])),
    "imputer, kept": (SimpleImputer(keep_empty_features=True, strategy="median"), np.full((3, 2), np.nan)),
    "imputer, text": (SimpleImputer(strategy="most_frequent", missing_values=None), MIXED),
    "imputer, constant": (SimpleImputer(strategy="constant", fill_value="none", missing_values=None), MIXED),
    "imputer, indicator": (SimpleImputer(add_indicator=True), GAPS),
    "imputer, sparse": (SimpleImputer(missing_values=-1), sp.csc_matrix(np.round(NUMBERS[:, :2]))),
    "pca": (PCA(n_components=2, random_state=0), NUMBERS),
    "pca, whitened": (PCA(n_components=0.9, whiten=True, svd_solver="full"), NUMBERS.astype(np.float32)),
    "pca, sparse": (PCA(n_components=2, svd_solver="covariance_eigh"), sp.csr_matrix(NUMBERS)),
    "variance": (VarianceThreshold(1.0), NUMBERS),
    "columns": (
        make_column_transformer((OneHotEncoder(), ["island"]), (StandardScaler(), ["size", "legs"])),
        FRAME,
    ),
    "columns, nested": (
        ColumnTransformer(
            [
                ("text", make_pipeline(SimpleImputer(strategy="constant", fill_value="?", missing_values=None),
                                       OneHotEncoder(sparse_output=False)), make_column_selector("s[ei]x")),
                ("number", make_pipeline(SimpleImputer(add_indicator=True), "passthrough", StandardScaler()), ["mass"]),
                ("as they are", "passthrough", ["legs"]),
                ("none", StandardScaler(), []),
                ("gone", "drop", ["island"]),
            ],
            remainder=MinMaxScaler(),
            transformer_weights={"as they are": 0.5},
        ),
        FRAME,
    ),
    "columns, rest": (ColumnTransformer([("one", PCA(1), slice(0, 2))], remainder="passthrough"), NUMBERS),
    "columns, mask": (ColumnTransformer([("one", StandardScaler(), np.array([True, False, True, False]))]), NUMBERS),
    "columns, sparse": (ColumnTransformer([("one", OneHotEncoder(), [0, -1])], sparse_threshold=1.0), np.round(GAPS)),
    "columns, one": (ColumnTransformer([("one", TableEncoder(), ["island", "mass"])], n_jobs=1), FRAME),
    "columns, names": (
        ColumnTransformer([("a", "passthrough", ["size"])], verbose_feature_names_out=False, remainder="passthrough"),
        FRAME[["legs", "size"]],
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Skipping features without any observed values")
@pytest.mark.parametrize("name", CASES)
def test_a_transformer_comes_back_to_the_last_bit(name, content, loaded):
    transformer, X = CASES[name]
    transformer.fit(X, Y[: X.shape[0]])
    again = loaded(content(transformer))
    same(transformer.transform(X), again.transform(X))
    assert again.get_feature_names_out().tolist() == transformer.get_feature_names_out().tolist()
    assert again.n_features_in_ == transformer.n_features_in_
    assert content(again) == content(transformer)
    lacking = {k for k, v in vars(transformer).items() if v is not None and k.endswith("_")} - vars(again).keys()
    assert lacking == set()


@pytest.mark.parametrize("kind", ["pandas", "polars"])
@pytest.mark.parametrize("name", ["standard, frame", "ordinal", "one hot, dense", "columns, names", "columns, nested"])
def test_frames_come_out_of_a_loaded_transformer_as_before(name, kind, content, loaded):
    transformer, X = CASES[name]
    transformer = sklearn.clone(transformer).set_output(transform=kind).fit(X, Y)
    again = loaded(content(transformer))
    assert isinstance(again.transform(X), pd.DataFrame if kind == "pandas" else pl.DataFrame)
    same(transformer.transform(X), again.transform(X))


def test_columns_are_found_by_name_wherever_they_are(content, loaded):
    model = make_column_transformer((StandardScaler(), ["mass", "size"])).fit(FRAME)
    again = loaded(content(model))
    moved = FRAME[FRAME.columns[::-1]].assign(more=1)
    same(again.transform(moved), model.transform(moved))
    with pytest.raises(ValueError, match="columns are missing"):
        again.transform(FRAME.drop(columns="mass"))


def test_pipelines_that_people_write_predict_the_same_and_are_certified(content, loaded):
    scaled = make_pipeline(StandardScaler(), PCA(3), SVC()).fit(NUMBERS, Y)
    again = loaded(content(scaled))
    assert again.decision_function(NUMBERS).tobytes() == scaled.decision_function(NUMBERS).tobytes()
    assert certify(again, NUMBERS, Y).holds
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    columns = make_column_transformer(
        (numbers, make_column_selector(dtype_include=float)),
        (OneHotEncoder(handle_unknown="ignore"), ["island"]),
    )
    table = Pipeline([("columns", columns), ("model", LinearSVC())]).fit(FRAME, Y)
    again = loaded(content(table))
    assert again.decision_function(FRAME).tobytes() == table.decision_function(FRAME).tobytes()
    new = FRAME.assign(island="nowhere")
    assert again.predict(new).tolist() == table.predict(new).tolist()
    assert again["columns"].transformers[0][1].steps[0][1].strategy == "median"  # can be fitted again
    assert again.fit(FRAME, Y).score(FRAME, Y) == table.score(FRAME, Y)


def test_a_file_names_the_version_of_scikit_learn(tmp_path):
    save(make_pipeline(StandardScaler(), SVC()).fit(NUMBERS, Y), tmp_path / "m")
    assert describe(tmp_path / "m")["model"]["steps"][0][1]["sklearn"] == sklearn.__version__


def test_a_parameter_of_another_version_has_its_default(content, forged, loaded):
    """Older files lack parameters that were added later."""
    data = content(StandardScaler().fit(NUMBERS))
    again = loaded(forged(data, lambda header, tensors: header["model"]["parameters"].pop("copy")))
    assert again.copy is True


def test_a_parameter_that_this_version_lacks_is_ignored_if_it_is_off(content, forged, loaded):
    data = content(StandardScaler().fit(NUMBERS))
    assert loaded(forged(data, put_parameter(newer=False))).mean_.shape == (4,)
    refuse(forged(data, put_parameter(newer=True)), "has 'newer', which is unknown")


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (make_pipeline(FunctionTransformer(np.log1p), SVC()), "FunctionTransformer is not a class that it supports"),
        (make_pipeline(FunctionTransformer(), SVC()), r"scikit-learn's scalers, .* pipelines of these"),
        (ColumnTransformer([("f", FunctionTransformer(), [0])]), "FunctionTransformer is not a class that it supports"),
        (ColumnTransformer([("s", StandardScaler(), [0])], verbose_feature_names_out=str.format), "is the function"),
        (OneHotEncoder(feature_name_combiner=lambda name, value: name), "feature_name_combiner is the function"),
        (SimpleImputer(strategy=np.nanmin), "strategy is the function"),
        (make_pipeline(type("Mine", (StandardScaler,), {})(), SVC()), "Mine is not a class that it supports"),
    ],
)  # fmt: skip
def test_what_would_need_code_is_refused_by_name(model, words, tmp_path):
    with pytest.raises(ModelFileError, match=words):
        save(model.fit(np.abs(NUMBERS) / [1, 10, 0.1, 1000], Y), tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_a_generator_is_saved_as_none_with_a_warning(tmp_path):
    with pytest.warns(MargroveWarning, match="PCA: random_state is a generator"):
        save(PCA(2, random_state=np.random.RandomState(0)).fit(NUMBERS), tmp_path / "m")


def first_category(value):
    return lambda header, tensors: header["model"]["categories"].__setitem__(0, value)


def step(number, place, value):
    return lambda header, tensors: header["model"]["columns"][number].__setitem__(place, value)


FORGERIES = [
    ("standard", put_tensor("mean_", lambda a: a[:2]), "mean_ has shape"),
    ("standard", put_tensor("mean_", lambda a: a.astype(np.int64)), "mean_ is of type int64"),
    ("standard", lambda h, t: (t.pop("scale_"), h["model"]["arrays"].pop("scale_")), "scale_ is missing"),
    ("standard", drop_tensor("mean_"), "'mean_' is missing"),
    ("standard", put_parameter(with_mean="os.system"), "does not fit together"),
    ("standard", put_parameter(func="print"), "has 'func', which is unknown"),
    ("standard", put(n_samples_seen="many"), "n_samples_seen_ is 'many'"),
    ("standard", put(n_samples_seen={"$array": ["<i8", [1]]}), "n_samples_seen_ is"),
    ("standard", put(sklearn="os.system('x')"), "the version of scikit-learn"),
    ("standard", put(output="code"), "does not state its output type"),
    ("standard", put(n_features_in=2**40), "n_features_in is"),
    ("standard", put(**{"class": "FunctionTransformer"}), "'FunctionTransformer', which is not a class"),
    ("standard", put(**{"class": "sklearn.preprocessing:StandardScaler"}), "which is not a class"),
    ("standard", put(more=1), "has 'more', which is unknown"),
    ("standard", put_parameter(copy={"$call": "os.system"}), "not a value that a model file may contain"),
    ("min max", put_parameter(feature_range={"$tuple": ["a", "b"]}), "feature_range is no range"),
    ("pca", put_tensor("components_", lambda a: a[:, :2]), "components_ has shape"),
    ("pca", put_tensor("components_", entry((0, 0), np.nan)), "components_ holds numbers that are not finite"),
    ("pca", put_tensor("explained_variance_", entry(0, -1.0)), "explained_variance_ goes down to -1"),
    ("pca", lambda h, t: h["model"]["scalars"].update(n_components_=3), "n_components_ is not that of components_"),
    ("pca", lambda h, t: h["model"]["scalars"].update(_fit_svd_solver="x"), "_fit_svd_solver is 'x'"),
    ("variance", put_tensor("variances_", lambda a: a * 0), "variances_ chooses no column"),
    ("one hot", first_category({"dtype": "object", "values": []}), "distinct ones were expected"),
    ("one hot", first_category({"dtype": "object", "values": ["a", "a"]}), "distinct ones were expected"),
    ("one hot", first_category({"dtype": "object", "values": [["a"]]}), "a list of numbers and text"),
    ("one hot", first_category({"dtype": "int8", "values": [1, 300]}), "not all of type int8"),
    ("one hot", first_category({"dtype": "datetime64[s]", "values": [1]}), "the name of a type of numbers"),
    ("one hot", first_category("all"), "a JSON object was expected"),
    ("one hot", lambda h, t: h["model"]["categories"].pop(), "a list for each of 2 columns"),
    ("one hot", put_parameter(dtype="os"), "dtype is 'os'"),
    ("one hot", put_parameter(drop=["nothing", 2]), "does not fit together"),
    ("one hot", put_parameter(drop="second"), "The 'drop' parameter of OneHotEncoder must be"),
    ("one hot", put_parameter(min_frequency=3), "infrequent categories are missing"),
    ("one hot, infrequent", put(infrequent=[[[9], [0, 1, 2, 3]], None]), "a category is 9"),
    ("one hot, infrequent", put(infrequent=[[[1], [0, 1]], None]), "not among 4"),
    ("one hot, infrequent", put(infrequent=[None]), "a list for each column"),
    ("one hot, infrequent", put(infrequent=[[[1], [0, 2, 1, 3]], None]), "not among 4"),
    ("one hot, infrequent", put(infrequent=[[[], [0, 1, 2, 3]], None]), "not among 4"),
    ("one hot, infrequent", put(infrequent=["all", None]), "not among 4"),
    ("ordinal, gaps", put(infrequent=[[[6], [0, 1, 2, 3, 4, 5, 6]], None]), "a category is 6"),
    ("ordinal, gaps", put(missing=[[7, 0]]), "those of NaN were expected"),
    ("ordinal, gaps", put(missing=[[0, 9], [1, 1]]), "those of NaN were expected"),
    ("ordinal, gaps", put(missing=[]), "those of NaN were expected"),
    ("ordinal", put(missing="all"), "those of NaN were expected"),
    ("imputer", lambda h, t: h["model"]["statistics"].update(fitted="V8"), "the type of the fitted cells is 'V8'"),
    ("imputer", lambda h, t: h["model"]["statistics"]["values"]["values"].pop(), "statistics_ has 3 values"),
    ("imputer, indicator", put(indicator=None), "does not fit add_indicator"),
    ("imputer, indicator", put(indicator=[0, 9]), "a column of the indicator is 9"),
    ("imputer, indicator", put(indicator=[0, 0]), "the indicator has a column twice"),
    ("columns", step(0, 1, "os.system"), "which is not a class"),
    ("columns", step(0, 2, [9]), "a column of transformer 0 of ColumnTransformer is 9"),
    ("columns", step(0, 2, ["size"]), "input_features is not equal to feature_names_in_"),
    ("columns", step(0, 2, ["nothing"]), "a column of transformer 0 of ColumnTransformer is 'nothing'"),
    ("columns", step(0, 2, {"$slice": 1}), "a column of transformer 0 of ColumnTransformer is {"),
    ("columns", step(1, 2, [1]), "does not transform 1 columns"),
    ("columns", step(1, 0, "onehotencoder"), "same name"),
    ("columns", step(1, 0, "a__b"), "does not fit together"),
    ("columns", put(columns="all"), "name, record and columns were expected"),
    ("columns", put(is_sparse=1), "is_sparse is not true or false"),
    ("columns", put_parameter(n_jobs=10**9), "n_jobs is 1000000000"),
    ("columns", put_parameter(sparse_threshold="x"), "does not fit together"),
    ("columns", put_tensor("columns.1.mean_", lambda a: a[:1]), "mean_ has shape"),
]


@pytest.mark.parametrize(("name", "change", "words"), FORGERIES, ids=[f"{n}: {w[:40]}" for n, _, w in FORGERIES])
def test_a_forged_transformer_is_refused(name, change, words, content, forged):
    transformer, X = CASES[name]
    data = content(transformer.fit(X, Y[: X.shape[0]]))
    refuse(forged(data, change), words)


def test_a_scaler_of_other_columns_than_the_next_step_wants_is_refused(content, forged):
    data = content(make_pipeline(PCA(2), LinearSVC()).fit(NUMBERS, Y))
    other = content(make_pipeline(PCA(3), LinearSVC()).fit(NUMBERS, Y))
    wanted = {}
    forged(other, lambda header, tensors: wanted.update(header=header, tensors=tensors))

    def swap(header, tensors):
        header["model"]["steps"][0] = wanted["header"]["model"]["steps"][0]
        tensors.update({name: array for name, array in wanted["tensors"].items() if name.startswith("steps.0.")})

    refuse(forged(data, swap), "expects 2 columns, but gets 3")
