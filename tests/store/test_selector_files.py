"""Selectors in files: they choose the same columns again, and a choice that is none does not come back."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from tests.store.forgeries import put, put_parameter, refuse

from margrove import (
    DecisionTreeClassifier,
    ImpuritySelector,
    TableEncoder,
    certify,
    gain_ratio,
    load_penguins,
)

PENGUINS = load_penguins()
SPECIES = PENGUINS.labels()
NUMBERS = np.arange(60.0).reshape(20, 3) % 7


@pytest.mark.parametrize(
    ("selector", "X", "y"),
    [
        (ImpuritySelector(k=3), PENGUINS, SPECIES),
        (ImpuritySelector(score_func="gini_gain", k="all", significance=0.05), PENGUINS, SPECIES),
        (ImpuritySelector(k=2), NUMBERS, np.arange(20) % 2),
        (ImpuritySelector(k=0.5, split_values={0: [2, 4]}), NUMBERS, np.arange(20) % 2),
        (ImpuritySelector(k=1), sp.csr_matrix(NUMBERS), np.arange(20) % 2),
    ],
)
def test_a_selector_comes_back_to_the_last_bit(selector, X, y, content, loaded):
    selector = clone(selector).fit(X, y)
    again = loaded(content(selector))
    assert vars(selector).keys() - {"_is_clone"} == vars(again).keys()
    for name in ("scores_", "p_values_", "gains_", "best_thresholds_", "support_"):
        assert getattr(again, name).dtype == getattr(selector, name).dtype
        assert getattr(again, name).tobytes() == getattr(selector, name).tobytes(), name
    assert again.get_params() == selector.get_params()
    assert (again.engine_, again.n_features_in_) == (selector.engine_, selector.n_features_in_)
    assert again.get_feature_names_out().tolist() == selector.get_feature_names_out().tolist()
    assert content(again) == content(selector)


def test_a_score_that_was_given_as_a_function_comes_back_by_its_name(content, loaded):
    selector = ImpuritySelector(gain_ratio, k=2).fit(PENGUINS, SPECIES)
    assert loaded(content(selector)).score_func == "gain_ratio"
    assert selector.score_func is gain_ratio


def test_the_output_type_is_saved(content, loaded):
    selector = ImpuritySelector(k=2).set_output(transform="pandas").fit(PENGUINS, SPECIES)
    assert isinstance(loaded(content(selector)).transform(PENGUINS), pd.DataFrame)


@pytest.mark.parametrize("between", [[], [TableEncoder()]])
def test_a_pipeline_with_a_selector_predicts_and_is_certified_again(between, content, loaded):
    steps = [ImpuritySelector(k=3), *between, DecisionTreeClassifier(max_depth=3)]
    model = make_pipeline(*steps).fit(PENGUINS, SPECIES)
    again = loaded(content(model))
    assert again.predict(PENGUINS).tolist() == model.predict(PENGUINS).tolist()
    assert certify(again, PENGUINS, SPECIES).holds


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda header, tensors: tensors["support_"].fill(0), "support_ chooses no column"),
        (lambda header, tensors: tensors["support_"].fill(2), "support_ goes up to 2"),
        (lambda header, tensors: tensors.update(scores_=tensors["scores_"][:2].copy()), "scores_ has shape"),
        (put(output="code"), "does not state its output type"),
        (put(engine="no name"), "engine_ is 'no name'"),
        (put_parameter(score_func="os.system"), "score_func is 'os.system'"),
    ],
)
def test_a_forged_selector_is_refused(change, complaint, content, forged):
    data = content(ImpuritySelector(k=3).fit(PENGUINS, SPECIES))
    refuse(forged(data, change), complaint)


def test_a_choice_of_another_size_than_the_next_step_wants_is_refused(content, forged):
    data = content(make_pipeline(ImpuritySelector(k=3), DecisionTreeClassifier()).fit(PENGUINS, SPECIES))

    def choose_all(header, tensors):
        tensors["steps.0.support_"].fill(1)

    refuse(forged(data, choose_all), "expects 3 columns, but gets 7")
