"""What is saved comes back the same."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils.validation import check_is_fitted

from margrove import (
    SVC,
    BasicLinearClassifier,
    KernelPerceptron,
    NuSVC,
    Perceptron,
    TableEncoder,
    certify,
    load,
    save,
)
from margrove.errors import DataWarning, MargroveWarning
from margrove.status import Status
from margrove.store import describe, long_lists
from margrove.store.plain import from_json, labels_from_json, labels_to_json, to_json


def assert_same(one, other):
    """Every attribute: same type, same values to the last bit."""
    assert type(one) is type(other)
    known = vars(one).keys() - {"_is_clone"}  # the behaviour of a fit after Ctrl-C is not part of the model
    assert known == vars(other).keys() - {"_is_clone"}
    pairs = [(name, vars(one)[name], vars(other)[name]) for name in known - {"_known_weights"}]
    cached = (vars(model).get("_known_weights", ()) for model in (one, other))
    pairs += [("_known_weights", *pair) for pair in zip(*cached, strict=True)]
    for name, value, twin in pairs:
        if sp.issparse(value):
            assert type(value) is type(twin)
            assert (value.shape, value.dtype) == (twin.shape, twin.dtype)
            for part in ("data", "indices", "indptr"):
                assert getattr(value, part).tobytes() == getattr(twin, part).tobytes()
        elif isinstance(value, np.ndarray):
            assert (value.dtype, value.shape) == (twin.dtype, twin.shape), name
            assert value.tolist() == twin.tolist(), name
            assert twin.flags.writeable or name == "_known_weights"
        else:
            assert type(value) is type(twin), name
            assert value == twin or value != value, name


def answers(model, X):
    """What a model says of rows: decisions where it has them, values otherwise."""
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


@pytest.mark.parametrize("classes", [2, 3])
def test_every_learner_comes_back_to_the_last_bit(learner_and_points, classes, fit, content, loaded):
    model, make = learner_and_points
    X, y = make(classes)
    fit(model, X, y)
    again = loaded(content(model))
    assert_same(model, again)
    assert isinstance(again.status_, Status)
    assert answers(model, X).tobytes() == answers(again, X).tobytes()
    assert (model.predict(X) == again.predict(X)).all()
    assert model.certificate_ == again.certificate_
    assert str(certify(model, X, y)) == str(certify(again, X, y))
    check_is_fitted(again)
    assert clone(again).get_params() == model.get_params()


def test_the_same_model_gives_the_same_bytes(learner_and_points, fit, content, loaded):
    model, make = learner_and_points
    fit(model, *make(3))
    once = content(model)
    assert content(model) == once
    assert content(loaded(once)) == once


LABELS = [
    ["no", "yes"],
    ["", "ä", "日本語", "z" * 50],
    [False, True],
    [-1, 1],
    [0.0, 1.0, 2.0],
    np.array([1, 2, 200], dtype=np.uint8),
    np.array([-5, 2**62], dtype=np.int64),
    np.array([0.5, 1.0], dtype=np.float32).astype(np.int8),
    np.array([0, 1], dtype=np.float32),
    np.array(["a", "b"], dtype="<U9"),
    np.array(["a", "b\udc80"], dtype=object),
    np.array([np.str_("a"), np.str_("b")], dtype=object),
    np.array([1, 300], dtype=">i4"),
]


@pytest.mark.parametrize("labels", LABELS, ids=lambda labels: f"{np.asarray(labels).dtype}-{labels[0]!r}")
def test_labels_keep_values_and_dtype(labels, content, loaded):
    labels = np.asarray(labels)
    y = np.repeat(labels, 3)
    X = np.arange(len(y), dtype=np.float64)[:, None]
    model = BasicLinearClassifier().fit(X, y)
    again = loaded(content(model))
    assert again.classes_.dtype == model.classes_.dtype
    assert again.classes_.tolist() == model.classes_.tolist()
    assert (again.predict(X) == model.predict(X)).all()


@given(st.lists(st.text(max_size=8), min_size=1, max_size=6, unique=True))
@settings(max_examples=50, deadline=None)
def test_labels_of_any_text_come_back(texts):
    labels = np.unique(np.array(texts))
    again = labels_from_json(json.loads(json.dumps(labels_to_json(labels))))
    assert again.dtype == labels.dtype
    assert again.tolist() == labels.tolist()


plain_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.integers() | st.text(max_size=3) | st.booleans(), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(plain_values)
@settings(max_examples=150, deadline=None)
def test_values_come_back_through_json(value):
    again = from_json(json.loads(json.dumps(to_json(value, "a value"), allow_nan=False)))
    assert repr(again) == repr(value)  # repr: 1 is not True, 0.0 is not -0.0, nan is nan


def test_parameters_that_json_lacks_come_back(fit, content, loaded):
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])
    model = fit(Perceptron(class_weight={0: 1.0, 1: 2}, time_limit=float("inf"), eta0=np.float32(0.1)), X, y)
    again = loaded(content(model))
    assert again.get_params() == model.get_params()
    assert list(again.class_weight) == [0, 1]


def test_a_generator_is_saved_as_none_with_a_warning(fit, loaded):
    X, y = np.array([[0.0], [1.0]]), np.array([0, 1])
    model = fit(Perceptron(random_state=np.random.RandomState(0)), X, y)
    stream = io.BytesIO()
    with pytest.warns(MargroveWarning, match="random_state is a generator") as caught:
        save(model, stream)
    assert caught[0].filename == __file__
    assert loaded(stream.getvalue()).random_state is None


def test_single_precision_and_sparse_support_vectors_stay_so(fit, content, loaded):
    X = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
    y = np.arange(30) % 2
    assert loaded(content(fit(KernelPerceptron(), X, y))).support_vectors_.dtype == np.float32
    sparse = loaded(content(fit(KernelPerceptron(), sp.csr_matrix(X), y))).support_vectors_
    assert sparse.dtype == np.float32
    assert isinstance(sparse, sp.csr_matrix)


CODE = np.array([[1, 1, 0], [-1, 1, 1], [0, -1, -1]])
CODES = {
    "int64": CODE,
    "int8": CODE.astype(np.int8),
    "float64": CODE.astype(np.float64),
    "lists": CODE.tolist(),
    "tuples": tuple(map(tuple, CODE.tolist())),
}


@pytest.mark.parametrize("kind", CODES)
@pytest.mark.parametrize("learner", [SVC, NuSVC])
def test_a_code_matrix_survives(kind, learner, content, loaded):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 3
    model = learner(multiclass=CODES[kind]).fit(X, y)
    once = content(model)
    again = loaded(once)
    np.testing.assert_array_equal(again.multiclass, model.multiclass)
    assert type(again.multiclass) is type(model.multiclass)
    assert getattr(again.multiclass, "dtype", None) == getattr(model.multiclass, "dtype", None)
    assert content(again) == once
    assert again.machine_decision(X).tobytes() == model.machine_decision(X).tobytes()
    assert str(certify(again, X, y)) == str(certify(model, X, y))


def test_a_code_of_two_labels_survives(content, loaded):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), np.where(np.arange(30) % 2, "yes", "no")
    model = SVC(multiclass=np.array([[1, -1], [-1, 1]])).fit(X, y)
    again = loaded(content(model))
    assert_same(model, again)
    assert again.decision_function(X).tobytes() == model.decision_function(X).tobytes()


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_loaded_support_vector_machine_gives_the_same_kinds_and_margins(make, classes, content, loaded):
    rng = np.random.default_rng(0)
    X, y = make(rng.normal(size=(40, 3))), np.arange(40) % classes
    model = SVC(kernel="linear").fit(X, y)
    again = loaded(content(model))
    assert again.kkt_.tolist() == model.kkt_.tolist()
    for name in ("coef_", "margin_", "loo_bound_", "xi_alpha_bound_", "fit_status_", "shape_fit_"):
        one, other = (
            sp.csr_matrix(each).toarray() if sp.issparse(each) else each
            for each in (getattr(again, name), getattr(model, name))
        )
        assert np.array_equal(one, other), name
    assert again.machine_decision(X).tobytes() == model.machine_decision(X).tobytes()


def test_a_margin_without_end_survives(content, loaded):
    """Equal rows of both classes: w = 0, and no machine has a margin to speak of."""
    model = SVC().fit(np.ones((4, 2)), [0, 1, 0, 1])
    assert loaded(content(model)).margin_.tolist() == [np.inf]


def test_a_support_vector_machine_after_an_encoder_comes_back(table, content, loaded):
    frame, y = table
    model = make_pipeline(TableEncoder(), SVC(C=float("inf"), sigma=0.1)).fit(frame, y)
    again = loaded(content(model))
    assert again.decision_function(frame).tobytes() == model.decision_function(frame).tobytes()
    assert again[-1].get_params() == model[-1].get_params()
    assert certify(again, frame, y).holds


def test_the_claims_of_many_machines_are_stored_in_a_tensor(content, loaded):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(80), 2)
    X = rng.normal(size=(160, 2))
    model = SVC(C=0.1).fit(X, y)
    long = content(model)
    header = describe(io.BytesIO(long))
    assert len(header["model"]["certificate"]["machines"]) == 80 * 79 // 2
    assert int.from_bytes(long[:8], "little") < long_lists.LONG
    assert_same(model, loaded(long))


def test_partial_fit_goes_on_as_if_nothing_had_happened(content, loaded):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 3, size=60)
    model = Perceptron(random_state=0).partial_fit(X[:30], y[:30], classes=[0, 1, 2])
    again = loaded(content(model))
    assert not hasattr(again, "alpha_")
    assert_same(model.partial_fit(X[30:], y[30:]), again.partial_fit(X[30:], y[30:]))


def test_arrays_of_an_earlier_fit_are_not_saved(fit, voted, content, loaded):
    X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0, 0, 1])
    again = loaded(content(fit(voted.set_params(variant="last"), X, y)))
    assert not hasattr(again, "prototypes_")
    assert hasattr(again, "alpha_")


def test_a_loaded_model_that_is_disturbed_fails_its_certificate(content, loaded):
    X, y = np.array([[0.0, 0.0], [1.0, 0.0], [4.0, 4.0], [5.0, 4.0]]), np.array([0, 0, 1, 1])
    model = loaded(content(BasicLinearClassifier().fit(X, y)))
    assert certify(model, X, y).holds
    model.coef_[0, 0] += 0.1
    assert not certify(model, X, y).holds


def test_an_encoder_comes_back(table, content, loaded):
    frame, _ = table
    frame = frame.assign(constant=1)
    with pytest.warns(DataWarning, match="constant"):
        encoder = TableEncoder(add_indicator=True).fit(frame)
    again = loaded(content(encoder))
    for learned in ("columns_", "dropped_", "target_", "n_features_in_"):
        assert getattr(again, learned) == getattr(encoder, learned)
    assert again.transform(frame).tobytes() == encoder.transform(frame).tobytes()
    assert (again.feature_names_in_ == encoder.feature_names_in_).all()
    assert (again.get_feature_names_out() == encoder.get_feature_names_out()).all()


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix], ids=["array", "sparse"])
def test_an_encoder_of_arrays_comes_back(make, content, loaded):
    X = make(np.array([[0.0, 2.0], [1.0, 0.0], [5.0, 1.0]]))
    encoder = TableEncoder().fit(X)
    again = loaded(content(encoder))
    assert not hasattr(again, "feature_names_in_")
    assert abs(again.transform(X) - encoder.transform(X)).max() == 0


def test_a_pipeline_comes_back(pipeline, table, content, loaded):
    again = loaded(content(pipeline))
    frame, y = table
    assert again.decision_function(frame).tobytes() == pipeline.decision_function(frame).tobytes()
    shuffled = frame[frame.columns[::-1]]
    assert (again.predict(shuffled) == pipeline.predict(frame)).all()
    assert str(certify(again, frame, y)) == str(certify(pipeline, frame, y))
    assert [name for name, _ in again.steps] == ["tableencoder", "perceptron"]
    assert content(again) == content(pipeline)
    check_is_fitted(again)
    assert str(clone(again)) == str(clone(pipeline))


def test_pipelines_within_pipelines_and_idle_steps_come_back(table, fit, content, loaded):
    frame, y = table
    inner = Pipeline([("idle", "passthrough"), ("encode", TableEncoder()), ("none", None)])
    model = fit(Pipeline([("first", inner), ("last", BasicLinearClassifier())], verbose=False), frame, y)
    again = loaded(content(model))
    assert again.decision_function(frame).tobytes() == model.decision_function(frame).tobytes()
    assert again.named_steps["first"].named_steps["none"] is None


def test_a_pipelines_cache_is_not_saved(tmp_path, fit, loaded):
    X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0, 1, 1])
    model = fit(Pipeline([("only", BasicLinearClassifier())], memory=str(tmp_path)), X, y)
    stream = io.BytesIO()
    with pytest.warns(MargroveWarning, match="memory is a cache"):
        save(model, stream)
    assert loaded(stream.getvalue()).memory is None


def test_names_of_columns_pass_from_encoder_to_learner(table, content, loaded):
    frame, y = table
    model = make_pipeline(TableEncoder(), BasicLinearClassifier()).set_output(transform="pandas").fit(frame, y)
    again = loaded(content(model))
    assert list(again[-1].feature_names_in_) == list(model[0].get_feature_names_out())
    assert again.decision_function(frame).tobytes() == model.decision_function(frame).tobytes()


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_keep_their_names(library, content, loaded):
    frame = pytest.importorskip(library).DataFrame({"a": [0.0, 1.0, 5.0], "b": [1.0, 0.0, 9.0]})
    model = BasicLinearClassifier().fit(frame, np.array(["x", "x", "y"]))
    again = loaded(content(model))
    assert list(again.feature_names_in_) == ["a", "b"]
    assert (again.predict(frame) == model.predict(frame)).all()


def test_long_lists_are_stored_in_tensors(monkeypatch, pipeline, table, content, loaded):
    monkeypatch.setattr(long_lists, "LONG", 10)
    long = content(pipeline)
    frame, _ = table
    header = describe(io.BytesIO(long))
    assert header["model"]["steps"][0][1]["columns"] == pipeline[0].columns_
    assert b"steps.0.columns" in long
    assert loaded(long).decision_function(frame).tobytes() == pipeline.decision_function(frame).tobytes()


def test_columns_beyond_the_limit_of_a_header_can_be_saved(content, loaded):
    d = 180_000
    X = sp.csr_matrix((np.ones(4), (np.arange(4), [0, 1, d - 2, d - 1])), shape=(4, d))
    encoder = TableEncoder(drop_constant=False).fit(X)
    long = content(make_pipeline(encoder))
    assert len(long) > 1 << 24
    assert loaded(long)[0].n_features_in_ == d


def test_paths_of_every_kind_are_taken(tmp_path, perceptron, content):
    for path in (str(tmp_path / "a.margrove"), tmp_path / "ü b.margrove"):
        save(perceptron, path)
        assert_same(load(path), perceptron)
        with open(path, "rb") as file:
            assert file.read() == content(perceptron)
            file.seek(0)
            assert_same(load(file), perceptron)
            assert not file.closed


def test_the_header_can_be_had_without_the_model(pipeline, content):
    header = describe(io.BytesIO(content(pipeline)))
    assert header["format"] == 1
    assert header["model"]["class"] == "Pipeline"
    learner = header["model"]["steps"][1][1]
    assert learner["parameters"]["variant"] == "averaged"
    assert learner["certificate"] == pipeline[-1].certificate_.to_dict()
    assert header["tensors"]["steps.1.coef_"] == {"dtype": "float64", "shape": list(pipeline[-1].coef_.shape)}
    json.dumps(header, allow_nan=False)
