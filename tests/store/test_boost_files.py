"""Boosted trees in files: they come back the same, and arrays that make no grove do not come back at all."""

from __future__ import annotations

import io
import warnings
from dataclasses import fields
from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.naive_bayes import GaussianNB
from tests.store.forgeries import entry, put, put_parameter, put_tensor, refuse

from margrove import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    DecisionStump,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    certify,
    load,
    save,
)
from margrove.errors import MargroveWarning, ModelFileError
from margrove.status import Status
from margrove.store.container import pack, unpack
from margrove.tree.grove import Grove

PRUNED = DecisionTreeClassifier(max_depth=3, prune="pessimistic")
MODELS = {
    "stumps": lambda: AdaBoostClassifier(n_estimators=6),
    "stumps, reference": lambda: AdaBoostClassifier(n_estimators=6, engine="reference"),
    "trees": lambda: AdaBoostClassifier(DecisionTreeClassifier(max_depth=2, criterion="entropy"), n_estimators=4),
    "early stopped": lambda: AdaBoostClassifier(early_stopping=True, n_iter_no_change=3, validation_fraction=0.3),
    "pruned": lambda: AdaBoostClassifier(PRUNED, n_estimators=4),
    "numbers": lambda: AdaBoostRegressor(n_estimators=5, random_state=1),
    "numbers, copied": lambda: AdaBoostRegressor(DecisionTreeRegressor(max_depth=2, min_samples_leaf=3), loss="square"),
}


def rows(is_regression):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(size=90), "kind": rng.choice(["a", "b", "c"], 90)})
    frame.loc[::8, "size"] = np.nan
    score = frame["size"].fillna(1).to_numpy() + 2.0 * (frame["kind"] == "b") + 0.5 * rng.normal(size=90)
    return frame, score if is_regression else np.array(["low", "middle", "high"])[np.digitize(score, [-0.5, 1])]


@pytest.fixture(params=MODELS)
def boosted(request):
    X, y = rows("numbers" in request.param)
    return MODELS[request.param]().fit(X, y), X, y


def test_boosted_trees_come_back_to_the_last_bit(boosted, content, loaded):
    model, X, _ = boosted
    again = loaded(content(model))
    for part in fields(Grove)[1:]:
        here, there = getattr(model.model_.grove, part.name), getattr(again.model_.grove, part.name)
        assert (here.dtype, here.tobytes()) == (there.dtype, there.tobytes()), part.name
    assert again.model_.grove.columns == model.model_.grove.columns
    for name in ("status_", "engine_", "categorical_", "target_", "n_features_in_", "n_rows_", "n_estimators_"):
        assert getattr(again, name) == getattr(model, name), name
    assert isinstance(again.status_, Status)
    for name in ("estimator_weights_", "estimator_errors_", "feature_names_in_", "feature_importances_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    assert repr(again.get_params()) == repr(model.get_params())
    assert repr(again.estimator_) == repr(model.estimator_)
    assert again.predict(X).tobytes() == model.predict(X).tobytes()
    assert str(again.certificate_) == str(model.certificate_)
    assert content(again) == content(model)
    assert len(again.estimators_) == again.n_estimators_
    assert str(again.estimators_[0].rules()) == str(model.estimators_[0].rules())
    if hasattr(model, "rounds_"):
        for name in ("error", "vote", "training_error", "loss"):
            np.testing.assert_array_equal(getattr(again.rounds_, name), getattr(model.rounds_, name))
        assert (again.validation_rows_ is None) == (model.validation_rows_ is None)
        np.testing.assert_array_equal(again.alphas_, model.alphas_)
        assert again.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
    assert vars(model).keys() <= vars(again).keys() | {"certificate_", "estimators_"}


def test_the_certificate_of_loaded_boosted_trees_holds_and_finds_other_rows(boosted, content, loaded):
    model, X, y = boosted
    again = loaded(content(model))
    assert certify(again, X, y).holds is True
    # A file does not keep the trees before pruning, so those learners have no certificates of their own.
    kept = [
        [claim for claim in certify(each, X, y).claims if claim.name != "learners whose own certificate fails"]
        for each in (again, model)
    ]
    assert kept[0] == kept[1]
    assert certify(again, X, np.roll(y, 1)).holds is False


def test_a_loaded_model_goes_on_where_it_was(content, loaded):
    X, y = rows(is_regression=False)
    parts = loaded(content(AdaBoostClassifier(n_estimators=4, warm_start=True).fit(X, y)))
    parts.set_params(n_estimators=9).fit(X, y)
    whole = AdaBoostClassifier(n_estimators=9).fit(X, y)
    np.testing.assert_array_equal(parts.estimator_errors_, whole.estimator_errors_)


def test_a_generator_is_saved_as_none_and_certified_again(content, loaded):
    X, y = rows(is_regression=False)
    generator = np.random.RandomState(5)
    model = AdaBoostClassifier(n_estimators=4, early_stopping=True, random_state=generator).fit(X, y)
    with pytest.warns(MargroveWarning, match="random_state is a generator"):
        again = loaded(content(model))
    assert certify(again, X, y).holds


def test_learners_that_are_no_trees_of_ours_are_refused_by_name(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 2
    with pytest.raises(ModelFileError, match=r"boosts a sklearn\.naive_bayes\.GaussianNB"):
        save(AdaBoostClassifier(GaussianNB(), n_estimators=2).fit(X, y), tmp_path / "x")

    class OwnStump(DecisionStump):
        pass

    with pytest.raises(ModelFileError, match="OwnStump; a model file can only hold Margrove's trees"):
        save(AdaBoostClassifier(OwnStump(), n_estimators=2).fit(X, y), tmp_path / "x")


# ------------------------------------------------------------------------------------------------------- forgeries


FORGERIES = {
    "a tree without nodes": (put_tensor("grove.start", lambda a: a[[0, 0, *range(1, len(a))]]), "without nodes"),
    "no tree": (put_tensor("grove.start", lambda a: a[:0]), "start must rise"),
    "starts that fall": (put_tensor("grove.start", entry(1, 10**9)), "start must rise"),
    "trees that share nodes": (put_tensor("grove.start", entry(1, 1)), "arrays of tree 0 do not form a tree"),
    "a child beyond": (put_tensor("grove.child", entry(-1, 10**6)), "do not form a tree"),
    "a child far below": (put_tensor("grove.child", entry(0, -(2**31))), "do not form a tree"),
    "a feature beyond": (put_tensor("grove.feature", entry(0, 9)), "feature goes up to 9"),
    "a value less": (put_tensor("grove.value", lambda a: a[:-1]), "value has shape"),
    "votes too few": (put_tensor("vote", lambda a: a[:2]), "vote has shape"),
    "a vote below zero": (put_tensor("vote", entry(0, -1.0)), "vote goes down to -1"),
    "a vote without end": (put_tensor("vote", entry(0, np.inf)), "vote holds numbers that are not finite"),
    "an error above one": (put_tensor("error", entry(0, 1.5)), "error goes up to 1.5"),
    "an array more": (lambda header, tensors: tensors.update(more=np.zeros(3)), "which the model does not use"),
    "another learner": (put_parameter(estimator={"class": "SVC", "parameters": {}}), "the learner is a 'SVC'"),
    "a learner of numbers": (
        put_parameter(estimator={"class": "DecisionTreeRegressor", "parameters": {}}),
        "AdaBoostClassifier cannot boost",
    ),
    "a learner without parameters": (put_parameter(estimator={"class": "DecisionStump"}), "has no 'parameters'"),
    "a learner as text": (put_parameter(estimator="DecisionStump"), "JSON object was expected"),
    "an unknown parameter": (put_parameter(hook=1), "'hook', which is unknown"),
    "a rate below zero": (put_parameter(learning_rate=-1.0), "learning_rate is -1.0"),
    "rounds that are no number": (put_parameter(n_estimators="many"), "n_estimators is 'many'"),
    "threads beyond counting": (put_parameter(n_jobs=10**6), "n_jobs is 1000000"),
    "a target among the columns": (put(target="size"), "the target is 'size'"),
    "two labels": (put(labels={"dtype": "<U1", "values": ["a", "b"]}), "value has shape"),
    "a strange field": (put(hook="x"), "'hook', which is unknown"),
    "no grove": (put(grove={}), "the list of arrays has no"),
    "a grove as a list": (put(grove=[]), "JSON object was expected"),
}


@pytest.fixture(scope="module")
def stumps():
    return AdaBoostClassifier(n_estimators=6).fit(*rows(is_regression=False))


@pytest.mark.parametrize("forgery", FORGERIES)
def test_forged_boosted_trees_are_refused(stumps, content, forged, forgery):
    change, words = FORGERIES[forgery]
    refuse(forged(content(stumps), change), words)


def test_a_rewritten_valid_file_of_boosted_trees_loads(stumps, content, forged, loaded):
    """So the refusals above are not about the digest."""
    whole = content(stumps)
    assert forged(whole, lambda header, tensors: None) == whole
    loaded(whole)


def test_votes_of_numbers_are_as_many_as_trees(content, forged):
    model = AdaBoostRegressor(n_estimators=3).fit(*rows(is_regression=True))

    def one_more(header, tensors):
        for name in ("error", "vote"):
            tensors[name] = np.append(tensors[name], 0.25)

    refuse(forged(content(model), one_more), "3 trees and 4 votes")


@settings(max_examples=200, deadline=None)
@given(
    name=st.sampled_from([part.name for part in fields(Grove)[1:]]),
    place=st.integers(0, 10**6),
    value=st.integers(-3, 9) | st.integers(-(2**31), 2**31 - 1) | st.sampled_from([np.nan, np.inf, -np.inf, 0.5]),
)
def test_invalid_values_in_a_forged_ensemble_are_refused_or_harmless(name, place, value):
    header, tensors = unpack(io.BytesIO(_whole()))
    del header["sha256"]
    array = tensors[f"grove.{name}"]
    if not array.size or (array.dtype.kind == "i" and not float(value).is_integer()):
        return
    array.flat[place % array.size] = value
    try:
        model = load(io.BytesIO(bytes(pack(header, tensors))))
    except ModelFileError:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert set(model.predict(rows(is_regression=False)[0])) <= {"low", "middle", "high"}


@cache
def _whole():
    stream = io.BytesIO()
    save(AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=3).fit(*rows(False)), stream)
    return stream.getvalue()
