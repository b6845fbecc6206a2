"""A Predictor gives what its model gives, and loads NumPy and the core alone."""

import io
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import margrove as mg
from margrove.errors import InputError, ModelFileError, UnseenCategoryWarning
from margrove.learner import learners, loaded

RANDOM = np.random.default_rng(7)
X = RANDOM.normal(size=(150, 4))
THREE = np.digitize(X[:, 0] + 0.3 * X[:, 1], [-0.5, 0.5]).astype(str)
TWO = X[:, 0] > 0.1
NUMBER = X[:, 0] ** 2 + X[:, 1]
NEW = RANDOM.normal(size=(60, 4))
CODE = [[1, 1, -1], [1, -1, 1], [-1, 1, 1]]

MODELS = [
    (mg.SVC(), THREE),
    (mg.SVC(), TWO),
    (mg.SVC(multiclass="ovr", kernel="poly"), THREE),
    (mg.SVC(multiclass=CODE), THREE),
    (mg.SVC(decision_function_shape="ovo", kernel="laplacian"), THREE),
    (mg.SVC(break_ties=True, kernel="sigmoid"), THREE),
    (mg.SVC(kernel="linear"), THREE),
    (mg.NuSVC(nu=0.2, kernel="linear"), TWO),
    (mg.SVR(), NUMBER),
    (mg.NuSVR(), NUMBER),
    (mg.OneClassSVM(nu=0.1), None),
    (mg.LinearSVC(), THREE),
    (mg.LinearSVC(), TWO),
    (mg.LinearSVR(), NUMBER),
    (mg.BasicLinearClassifier(), THREE),
    (mg.LeastSquaresClassifier(), TWO),
    (mg.Perceptron(variant="averaged"), THREE),
    (mg.KernelPerceptron(), THREE),
    (mg.DecisionTreeClassifier(smoothing=1), THREE),
    (mg.DecisionTreeRegressor(max_depth=4), NUMBER),
    (mg.DecisionStump(), TWO),
    (mg.AdaBoostClassifier(n_estimators=8), THREE),
    (mg.AdaBoostClassifier(n_estimators=8), TWO),
    (mg.AdaBoostRegressor(n_estimators=5), NUMBER),
    (mg.RandomForestClassifier(n_estimators=7), THREE),
    (mg.ExtraTreesRegressor(n_estimators=7), NUMBER),
    (make_pipeline(StandardScaler(), mg.SVC()), THREE),
    (make_pipeline(StandardScaler(with_mean=False), mg.LinearSVC()), TWO),
]
METHODS = ("predict", "decision_function", "predict_proba")
QUIET = pytest.mark.filterwarnings("ignore::margrove.errors.ConvergenceWarning")


def kept(model):
    """Return the Predictor of a file of the model."""
    file = io.BytesIO()
    mg.save(model, file)
    file.seek(0)
    return mg.load_predictor(file)


def check_same(model, predictor, new, given):
    compared = 0
    for name in METHODS:
        if getattr(predictor._rule, name) is not None:
            np.testing.assert_array_equal(getattr(predictor, name)(given), getattr(model, name)(new), strict=True)
            compared += 1
    assert compared
    return compared


@QUIET
@pytest.mark.parametrize(("model", "y"), MODELS, ids=lambda value: " ".join(repr(value).split())[:60])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_predictor_gives_the_same_bits(model, y, dtype):
    rows, new = X.astype(dtype), NEW.astype(dtype)
    model.fit(rows) if y is None else model.fit(rows, y)
    compared = check_same(model, kept(model), new, new)
    has_probabilities = hasattr(model, "predict_proba")
    assert compared == sum(hasattr(model, name) for name in METHODS) or not has_probabilities
    if hasattr(model, "predictor"):
        check_same(model, model.predictor(), new, new)


def test_all_learners_but_these_have_a_predictor():
    without = {learner.name for learner in learners() if learner.predict is None and "margrove." in learner.key}
    served = {learner.name for learner in learners() if learner.predict is not None}
    assert served >= {type(model).__name__ for model, _ in MODELS if hasattr(model, "predictor")}
    assert without <= {
        *("OneVsRestClassifier", "OneVsOneClassifier", "BitStringClassifier", "CalibratedClassifier"),
        *("SoftmaxClassifier", "FineTuned", "ConvFeatures", "ImpuritySelector"),
    }
    for learner in learners():
        if learner.predict is not None:
            assert callable(loaded(learner.predict))


TABLES = [
    mg.DecisionTreeClassifier(),
    mg.RandomForestClassifier(n_estimators=5),
    mg.AdaBoostClassifier(mg.DecisionTreeClassifier(max_depth=2), n_estimators=6),
    make_pipeline(mg.TableEncoder(), mg.SVC(C=10)),
    make_pipeline(mg.TableEncoder(add_indicator=True), mg.LinearSVC()),
]


@pytest.mark.parametrize("model", TABLES, ids=lambda model: type(model).__name__)
def test_tables_are_read_from_columns_and_frames(model):
    penguins = mg.load_penguins()
    model.fit(penguins, penguins.labels())
    predictor, columns = kept(model), {column.name: column.cells() for column in penguins}
    check_same(model, predictor, penguins, columns)
    check_same(model, predictor, penguins, pd.DataFrame(columns))
    rows = list(zip(*(columns[name] for name in predictor.feature_names_in_), strict=True))
    check_same(model, predictor, penguins, rows)


def test_an_unseen_level_is_reported():
    model = mg.DecisionTreeClassifier().fit(pd.DataFrame({"c": ["a", "b", "c"] * 5}), [0, 1, 2] * 5)
    with pytest.warns(UnseenCategoryWarning, match="'c': 'x'"):
        assert model.predictor().predict({"c": ["x", "a", "b", None]})[1:3].tolist() == [0, 1]


def test_booleans_and_levels_that_are_numbers():
    frame = pd.DataFrame({"is": [True, False] * 10, "code": pd.Categorical([3, 7] * 5 + [9, 7] * 5)})
    y = [0, 1] * 5 + [2, 1] * 5
    for model in (mg.DecisionTreeClassifier(), make_pipeline(mg.TableEncoder(), mg.LinearSVC())):
        model.fit(frame, y)
        check_same(model, kept(model), frame, frame)


def test_support_vectors_may_be_sparse():
    sparse = sp.csr_matrix(np.where(np.abs(X) < 0.5, 0, X))
    model = mg.SVC().fit(sparse, THREE)
    new = np.where(np.abs(NEW) < 0.5, 0, NEW)
    predictor = kept(model)
    np.testing.assert_array_equal(predictor.predict(new), model.predict(sp.csr_matrix(new)))
    np.testing.assert_allclose(predictor.decision_function(new), model.decision_function(sp.csr_matrix(new)))


LIGHT = """
import json, sys
before = {"sklearn", "scipy", "pyarrow", "matplotlib", "plotly", "narwhals", "safetensors", "threadpoolctl", "pandas"}
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in before:
            raise ImportError(name)
sys.meta_path.insert(0, Blocked())
import numpy as np
from margrove import load_predictor
path, rows = sys.argv[1:]
predictor = load_predictor(path)
given = np.load(rows)
print(json.dumps([predictor.predict(given).tolist(), predictor.decision_function(given).tolist()]))
"""


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
def test_a_process_without_scipy_differs_by_rounding_only(kernel, tmp_path):
    rows = RANDOM.normal(size=(300, 130))
    y = (rows[:, 0] + RANDOM.normal(size=300) > 0).astype(int)
    model = mg.SVC(kernel=kernel, C=5).fit(rows, y)
    mg.save(model, tmp_path / "m.margrove")
    new = RANDOM.normal(size=(70, 130))
    np.save(tmp_path / "new.npy", new)
    command = [sys.executable, "-c", LIGHT, str(tmp_path / "m.margrove"), str(tmp_path / "new.npy")]
    predicted, values = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert predicted == model.predict(new).tolist()
    expected = model.decision_function(new)
    scale = np.abs(model.dual_coef_).sum() * max(1.0, np.abs(expected).max())
    assert np.abs(np.array(values) - expected).max() <= 1e-14 * scale


@pytest.mark.parametrize(
    ("model", "y", "words"),
    [
        (mg.Perceptron(variant="voted"), TWO, "voted"),
        (mg.OneVsRestClassifier(mg.SVC()), THREE, "OneVsRestClassifier"),
        (make_pipeline(mg.TableEncoder(), mg.OneVsOneClassifier(mg.SVC())), THREE, "OneVsOneClassifier"),
    ],
)
@QUIET
def test_other_models_are_refused_by_name(model, y, words):
    with pytest.raises(ModelFileError, match=rf"{words}.*Use margrove.load"):
        kept(model.fit(X, y))


def test_columns_that_tables_read_by_rules_are_refused():
    frame = pd.DataFrame({"day": pd.date_range("2024-01-01", periods=20), "x": np.arange(20.0)})
    model = mg.DecisionTreeClassifier().fit(frame, [0, 1] * 10)
    with pytest.raises(ModelFileError, match="'day' is dates or written with a unit"):
        model.predictor()
    text = pd.DataFrame({"body": ["good tea", "bad pot", "good pot", "bad tea"] * 5})
    piped = make_pipeline(mg.TableEncoder(text="body"), mg.LinearSVC()).fit(text, [0, 1, 0, 1] * 5)
    with pytest.raises(ModelFileError, match="'body' is free text"):
        kept(piped)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (NEW[:, :3], r"shape \(60, 3\); \(rows, 4\) was expected"),
        (NEW[0], "shape"),
        (np.full((2, 4), np.nan), "NaN or infinity"),
        ([["a", 1, 2, 3]], "not a number"),
        ({"x": [1.0]}, "without column names"),
    ],
)
def test_bad_rows_are_refused(given, words):
    predictor = mg.LinearSVC().fit(X, TWO).predictor()
    with pytest.raises(InputError, match=words):
        predictor.predict(given)


def test_bad_columns_are_refused():
    frame = pd.DataFrame(X, columns=list("abcd"))
    predictor = mg.LinearSVC().fit(frame, TWO).predictor()
    with pytest.raises(InputError, match=r"no column 'd'\. The model's columns are a, b, c, d"):
        predictor.predict({"a": [1.0], "b": [1.0], "c": [1.0]})
    with pytest.raises(InputError, match="lists of one length"):
        predictor.predict({"a": [1.0], "b": [1.0, 2.0], "c": [1.0], "d": [1.0]})
    with pytest.raises(InputError, match="lists of one length"):
        predictor.predict({"a": 1.0, "b": 1.0, "c": 1.0, "d": 1.0})


def test_a_method_that_the_model_lacks_is_an_attribute_error():
    predictor = mg.DecisionTreeRegressor().fit(X, NUMBER).predictor()
    with pytest.raises(AttributeError, match="no predict_proba"):
        predictor.predict_proba(NEW)


def test_a_damaged_file_is_refused():
    file = io.BytesIO()
    mg.save(mg.LinearSVC().fit(X, TWO), file)
    raw = bytearray(file.getvalue())
    raw[-3] ^= 1
    with pytest.raises(ModelFileError, match="SHA-256"):
        mg.load_predictor(io.BytesIO(raw))


@pytest.mark.parametrize("name", ["coef_", "intercept_"])
def test_arrays_that_do_not_fit_together_are_refused(name):
    from margrove.store.arrays import Arrays
    from margrove.store.codec import take_apart
    from margrove.store.container import FORMAT, pack

    arrays = Arrays()
    record = take_apart(mg.LinearSVC().fit(X, THREE), arrays)
    arrays.tensors[name] = np.ones((7, 2))
    raw = pack({"format": FORMAT, "margrove": "0", "model": record}, arrays.tensors)
    with pytest.raises(ModelFileError, match="do not fit together"):
        mg.load_predictor(io.BytesIO(raw))
