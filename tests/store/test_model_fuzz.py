"""Damage of any kind, at random: refused every time, with the one exception and no other."""

from __future__ import annotations

import io
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from margrove import (
    SVC,
    BasicLinearClassifier,
    DecisionStump,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    KernelPerceptron,
    LinearSVC,
    LinearSVR,
    NuSVR,
    OneClassSVM,
    Perceptron,
    TableEncoder,
    load,
)
from margrove.errors import ModelFileError, UnseenCategoryWarning
from margrove.store import describe
from margrove.store.container import pack, unpack


@pytest.fixture(
    params=["perceptron", "voted", "sparse_kernel_perceptron", "pipeline", "sparse_svc", "one_class", "tree"]
)
def whole(request, content):
    return content(request.getfixturevalue(request.param))


def flipped(raw, rng):
    for place in rng.integers(0, len(raw), size=rng.integers(1, 4)):
        raw[place] ^= 1 << rng.integers(0, 8)
    return raw


def overwritten(raw, rng):
    start = int(rng.integers(0, len(raw)))
    piece = rng.bytes(int(rng.integers(1, 64)))
    return raw[:start] + piece + raw[start + len(piece) :]


def cut(raw, rng):
    return raw[: rng.integers(0, len(raw))]


def shortened(raw, rng):
    start = int(rng.integers(0, len(raw)))
    return raw[:start] + raw[start + int(rng.integers(1, 100)) :]


def doubled(raw, rng):
    start = int(rng.integers(0, len(raw)))
    return raw[:start] + raw[start : start + 50] + raw[start:]


@pytest.mark.parametrize("damage", [flipped, overwritten, cut, shortened, doubled])
def test_damage_is_never_loaded(whole, damage):
    rng = np.random.default_rng(20261115)
    for _ in range(100):
        broken = bytes(damage(bytearray(whole), rng))
        if broken != whole:
            with pytest.raises(ModelFileError):
                load(io.BytesIO(broken))


@given(st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_noise_is_never_loaded(noise):
    with pytest.raises(ModelFileError):
        load(io.BytesIO(noise))


def paths_in(record, before=()):
    """Every place of a JSON value."""
    items = record.items() if isinstance(record, dict) else enumerate(record) if isinstance(record, list) else ()
    for key, value in items:
        yield (*before, key)
        yield from paths_in(value, (*before, key))


def forged_at(content, path, value):
    """The file with one value of its header replaced, and a digest that is right."""
    header, tensors = unpack(io.BytesIO(content))
    del header["sha256"]
    place = header
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return bytes(pack(header, tensors))


X = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [3.0, 3.0, 1.0], [4.0, 2.0, 1.0]])
Y = np.array([0, 0, 1, 2])
SMALL = {
    "last": Perceptron(random_state=0, class_weight={0: 1.0}),
    "voted": Perceptron(random_state=0, variant="voted"),
    "kernel": KernelPerceptron(random_state=0, n_jobs=1),
    "svc": SVC(n_jobs=1, class_weight={0: 1.0}),
    "code": SVC(kernel="linear", multiclass=np.array([[1, 1], [-1, 1], [0, -1]])),
    "nu-svr": NuSVR(n_jobs=1),
    "linear svc": LinearSVC(n_jobs=1, loss="hinge", class_weight={0: 1.0}),
    "crammer singer": LinearSVC(multi_class="crammer_singer", engine="reference"),
    "linear svr": LinearSVR(n_jobs=1),
    "one class": OneClassSVM(n_jobs=1),
    "pipeline": make_pipeline(TableEncoder(), BasicLinearClassifier()),
    "tree": DecisionTreeClassifier(categorical_features=[2], split_values={0: (0.5, 2.0)}, prune="mdl", n_jobs=1),
    "stump": DecisionStump(n_jobs=1, class_weight={0: 1.0}),
    "tree regressor": DecisionTreeRegressor(n_jobs=1),
}
nonsense = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)


@pytest.mark.parametrize("name", SMALL)
def test_invalid_values_in_a_forged_header_are_refused_or_harmless(name, fit, content):
    """Any value anywhere in the header, the digest right: the one exception, or a model that still predicts."""
    whole = content(fit(clone(SMALL[name]), X, Y))
    places = [("model", *path) for path in paths_in(describe(io.BytesIO(whole))["model"])]

    @given(st.sampled_from(places), nonsense)
    @settings(max_examples=100, deadline=None)
    def check(place, value):
        try:
            model = load(io.BytesIO(forged_at(whole, place, value)))
        except ModelFileError:
            return
        with warnings.catch_warnings():
            # A file may truly say that the columns had names, which X has not, or other levels than X has.
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            warnings.simplefilter("ignore", UnseenCategoryWarning)
            assert model.predict(X).shape == (4,)

    check()


def test_a_forged_list_of_levels_that_no_split_uses_only_makes_levels_unseen(fit, content):
    whole = content(fit(clone(SMALL["tree"]), X, Y))
    model = load(io.BytesIO(forged_at(whole, ("model", "columns", 2, "levels"), [0])))
    with pytest.warns(UnseenCategoryWarning, match="3 cells of categories unseen in training: x2='1'"):
        assert model.predict(X).shape == (4,)
