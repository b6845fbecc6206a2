"""Vectorisers of text in model files: words and weights as plain data, whole again, and checked like all else."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.pipeline import Pipeline, make_pipeline
from tests.store.forgeries import refuse

from margrove import BasicLinearClassifier, OneVsRestClassifier, TableEncoder
from margrove.store import describe, long_lists

TEXTS = ["good tea", "bad tea", "Good pot!", "bad pot", None, "ünïcode tea \U0001f375 good"]
LABELS = np.array(["yes", "no", "yes", "no", "no", "yes"])


@pytest.fixture
def frame() -> pd.DataFrame:
    return pd.DataFrame({"stars": [5.0, 1.0, 4.0, np.nan, 2.0, 3.0], "body": TEXTS, "shop": list("nsnsns")})


def fitted(frame: pd.DataFrame, **options) -> Pipeline:
    return make_pipeline(TableEncoder(text=["body"], **options), BasicLinearClassifier()).fit(frame, LABELS)


@pytest.mark.parametrize("features", ["tfidf", "hashing"])
@pytest.mark.parametrize("sparse_output", [True, False])
def test_a_model_of_text_comes_back_to_the_last_bit(frame, content, loaded, features, sparse_output):
    model = fitted(frame, text_features=features, min_df=1, max_features=300, sparse_output=sparse_output)
    again = loaded(content(model))
    new = pd.DataFrame({"stars": [3.0, 1.0], "body": ["GOOD good bad zebra", None], "shop": ["n", "s"]})
    for rows in (frame, new):
        before, after = (step[0].transform(rows) for step in (model, again))
        assert sp.issparse(after) is sparse_output
        assert (before != after).sum() == 0
        assert again.decision_function(rows).tobytes() == model.decision_function(rows).tobytes()
    assert again[0].get_params() == model[0].get_params()
    assert again[0].columns_ == model[0].columns_
    assert again[0].get_feature_names_out().tolist() == model[0].get_feature_names_out().tolist()


def test_deviations_that_are_remembered_come_back(frame, content, loaded):
    model = fitted(frame, min_df=1)
    encoded = model[0].transform(frame)
    model[0].remember_deviations(encoded)
    again = loaded(content(model))
    assert again[0].deviations_ == model[0].deviations_
    dense = encoded.toarray() if sp.issparse(encoded) else encoded
    np.testing.assert_allclose(again[0].deviations_, dense.std(axis=0), rtol=1e-3, atol=1e-12)
    assert not hasattr(again[0].fit(frame), "deviations_")


def test_words_and_weights_can_be_read_by_other_programs(frame, content):
    record = describe(io.BytesIO(content(fitted(frame))))["model"]["steps"][0][1]
    text = record["columns"][1]
    assert text["words"] == ["bad", "good", "pot", "tea"]
    # tea is in 3 of 6 rows: 1 + ln(7/4)
    assert text["idf"][3] == pytest.approx(1 + np.log(7 / 4), rel=1e-15)


def test_a_large_vocabulary_is_not_stored_in_the_header(content, loaded):
    rng = np.random.default_rng(0)
    words = np.array([f"word{j:06d}" for j in range(60_000)])
    texts = [" ".join(part) for part in np.array_split(rng.permutation(np.repeat(words, 2)), 20)]
    frame = pd.DataFrame({"body": texts})
    model = make_pipeline(TableEncoder(text="body", min_df=1), BasicLinearClassifier()).fit(frame, np.arange(20) % 2)
    whole = content(model)
    header = describe(io.BytesIO(whole))
    assert len(header["model"]["steps"][0][1]["columns"][0]["words"]) == 60_000
    assert int.from_bytes(whole[:8], "little") < long_lists.LONG
    assert loaded(whole).predict(frame).tolist() == model.predict(frame).tolist()


def test_a_scheme_of_pipelines_with_text_comes_back(frame, content, loaded):
    y = np.array(list("abcabc"))
    scheme = OneVsRestClassifier(make_pipeline(TableEncoder(text="body"), BasicLinearClassifier())).fit(frame, y)
    again = loaded(content(scheme))
    assert again.predict(frame).tolist() == scheme.predict(frame).tolist()
    assert again.estimator[0].text == "body"


def on_text(**values):
    return lambda header, tensors: header["model"]["steps"][0][1]["columns"][1].update(values)


def on_parameters(**values):
    return lambda header, tensors: header["model"]["steps"][0][1]["parameters"].update(values)


def without(name):
    return lambda header, tensors: header["model"]["steps"][0][1]["columns"][1].pop(name)


FORGERIES = {
    "a word less": (on_text(words=["bad", "good", "pot"]), "3 words and 4 weights for 4 columns"),
    "a weight less": (on_text(idf=[1.0, 1.0, 1.0]), "4 words and 3 weights"),
    "more columns than words": (on_text(n_columns=5), "for 5 columns"),
    "no columns": (on_text(n_columns=0), "n_columns is 0"),
    "columns beyond memory": (
        on_text(n_columns=2**31, features="hashing", words=[], idf=[]),
        "n_columns is 2147483648",
    ),
    "columns of text": (on_text(n_columns="4"), "n_columns is '4', not int"),
    "words out of order": (on_text(words=["good", "bad", "pot", "tea"]), "not sorted and distinct"),
    "a word twice": (on_text(words=["bad", "bad", "pot", "tea"]), "not sorted and distinct"),
    "a word that is a number": (on_text(words=[1, "good", "pot", "tea"]), "words are not text"),
    "a word that is a record": (on_text(words=[{"a": 1}, "good", "pot", "tea"]), "words are not text"),
    "words in one text": (on_text(words="bad good"), "words is 'bad good', not list"),
    "a weight that is not a number": (on_text(idf=[{"$float": "nan"}, 1.0, 1.0, 1.0]), "finite numbers ≥ 1"),
    "a weight without end": (on_text(idf=[{"$float": "inf"}, 1.0, 1.0, 1.0]), "finite numbers ≥ 1"),
    "a weight below 1": (on_text(idf=[0.5, 1.0, 1.0, 1.0]), "finite numbers ≥ 1"),
    "a weight of text": (on_text(idf=["1.5", 1.0, 1.0, 1.0]), "finite numbers ≥ 1"),
    "a truth value": (on_text(idf=[True, 1.0, 1.0, 1.0]), "finite numbers ≥ 1"),
    "another vectoriser": (on_text(features="os.system"), "do not match text_features"),
    "hashes with words": (on_text(features="hashing"), "4 words and 4 weights"),
    "hashes unasked": (on_text(features="hashing", words=[], idf=[]), "do not match text_features"),
    "a format of words": (on_text(format={"kind": "date"}), "a text has no format"),
    "a format unknown": (on_text(format={"kind": "time"}), "its format is"),
    "a part of no date": (on_text(date_part=["body"]), "is not a column of dates and a part"),
    "a field less": (without("idf"), "a column has no 'idf'"),
    "a field more": (on_text(analyzer="os.system"), "'analyzer', which is unknown"),
    "a column that is no text": (on_parameters(text=["shop"]), "not those named by the parameter text"),
    "a column that is not there": (on_parameters(text=["body", "soul"]), "not those named by the parameter"),
    "text that is not named": (on_parameters(text=None), "not those named by the parameter"),
    "text named by number": (on_parameters(text=[1]), "text is \\[1\\]; names of columns"),
    "text named twice": (on_parameters(text=["body", "body"]), "names of columns were expected"),
    "a vectoriser by import": (on_parameters(text_features="pickle.loads"), "it must be one of tfidf, hashing"),
    "too many features": (on_parameters(max_features=2**40), "max_features is"),
    "half a row": (on_parameters(min_df=0.5), "min_df is 0.5"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_vectorisers_are_refused(frame, content, forged, name):
    change, words = FORGERIES[name]
    refuse(forged(content(fitted(frame)), change), words)


def test_an_encoder_from_before_there_was_text_loads(frame, content, forged, loaded):
    model = make_pipeline(TableEncoder(), BasicLinearClassifier()).fit(frame[["stars", "shop"]], LABELS)

    def forget(header, tensors):
        for name in ("text", "text_features", "min_df", "max_features"):
            del header["model"]["steps"][0][1]["parameters"][name]

    again = loaded(forged(content(model), forget))
    assert again[0].get_params() == model[0].get_params()
