"""Columns of free text: the numbers are scikit-learn's, the names say which word, and what is kept is plain JSON."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.utils.estimator_checks import parametrize_with_checks

from margrove.data import TableEncoder, as_table, read_table
from margrove.data.encoding import Origin
from margrove.data.inspection import inspect_columns, is_free_text
from margrove.errors import DataWarning, InputError, ParameterError, UnseenCategoryWarning

TEXTS = [
    "The tea is good and the pot is good",
    "Bad pot, bad tea.",
    "Good!",
    None,
    "The cup was bad; the box was good.",
    "good tea good tea good tea",
]


@pytest.fixture
def reviews() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "stars": [5.0, 1.0, np.nan, 3.0, 2.0, 5.0],
            "body": TEXTS,
            "shop": ["north", "south", "north", None, "south", "south"],
        }
    )


def cells(matrix) -> np.ndarray:
    return matrix.toarray() if sp.issparse(matrix) else np.asarray(matrix)


@parametrize_with_checks([TableEncoder(text_features="hashing", max_features=64)])
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


@pytest.mark.parametrize("min_df", [1, 2])
@pytest.mark.parametrize("max_features", [3, 1000])
def test_tfidf_is_that_of_scikit_learn(reviews, min_df, max_features):
    encoder = TableEncoder(text="body", min_df=min_df, max_features=max_features)
    found = cells(encoder.fit_transform(reviews[["body"]]))
    peer = TfidfVectorizer(min_df=min_df, max_features=max_features)
    wanted = peer.fit_transform([text or "" for text in TEXTS]).toarray()
    assert encoder.get_feature_names_out().tolist() == [f"body: {word}" for word in peer.get_feature_names_out()]
    np.testing.assert_allclose(found, wanted, rtol=1e-14)  # it adds up the squares of a row in another order


def test_hashing_is_that_of_scikit_learn(reviews):
    encoder = TableEncoder(text=["body"], text_features="hashing", max_features=512)
    found = encoder.fit_transform(reviews[["body"]])
    wanted = HashingVectorizer(n_features=512).transform([text or "" for text in TEXTS])
    assert sp.issparse(found)
    np.testing.assert_array_equal(found.toarray(), wanted.toarray())
    assert encoder.get_feature_names_out()[17] == "body: #17"


def test_text_and_other_columns_keep_the_order_of_the_table(reviews):
    encoder = TableEncoder(text="body").fit(reviews)
    apart = TableEncoder().fit(reviews[["stars", "shop"]])
    words = TableEncoder(text="body").fit(reviews[["body"]])
    wanted = cells(apart.transform(reviews[["stars", "shop"]]))
    parts = [wanted[:, :1], cells(words.transform(reviews[["body"]])), wanted[:, 1:]]
    np.testing.assert_array_equal(cells(encoder.transform(reviews)), np.hstack(parts))
    assert encoder.output_origins()[1] == Origin("body", words.columns_[0]["words"][0], False, is_word=True)


def test_sparse_and_dense_output_are_the_same_numbers(reviews):
    sparse = TableEncoder(text="body", sparse_output=True).fit_transform(reviews)
    dense = TableEncoder(text="body", sparse_output=False).fit_transform(reviews)
    assert sp.issparse(sparse)
    assert isinstance(dense, np.ndarray)
    np.testing.assert_array_equal(sparse.toarray(), dense)


def test_the_output_is_sparse_if_there_are_many_words():
    rng = np.random.default_rng(0)
    words = [f"word{j}" for j in range(400)]
    frame = pd.DataFrame({"body": [" ".join(rng.choice(words, 30)) for _ in range(100)], "x": rng.normal(size=100)})
    found = TableEncoder(text="body").fit_transform(frame)
    assert sp.issparse(found)
    assert found.shape[1] > 256
    assert isinstance(TableEncoder(text="body", max_features=10).fit_transform(frame), np.ndarray)
    shown = TableEncoder(text="body").set_output(transform="pandas").fit_transform(frame)
    assert shown.shape == found.shape
    np.testing.assert_array_equal(shown.to_numpy(), found.toarray())


@pytest.mark.parametrize("features", ["tfidf", "hashing"])
def test_a_row_of_text_has_length_one_and_an_empty_cell_none(reviews, features):
    encoder = TableEncoder(text="body", text_features=features).fit(reviews[["body"]])
    new = pd.DataFrame({"body": ["good tea", "", None, "!!", "zanzibar"]})
    lengths = np.linalg.norm(cells(encoder.transform(new)), axis=1)
    np.testing.assert_allclose(lengths, [1, 0, 0, 0, 0 if features == "tfidf" else 1], atol=1e-12)


def test_unknown_words_cause_no_warning(reviews):
    encoder = TableEncoder(text="body", unseen="error").fit(reviews[["body"]])
    new = pd.DataFrame({"body": ["something else entirely"]})
    assert not cells(encoder.transform(new)).any()
    with pytest.raises(InputError, match="unseen"):
        TableEncoder(text="body", unseen="error").fit(reviews).transform(reviews.assign(shop="west"))
    with pytest.warns(UnseenCategoryWarning, match="west"):
        TableEncoder(text="body").fit(reviews).transform(reviews.assign(shop="west"))


def test_numbers_in_a_later_text_column_are_read_as_words(reviews):
    frame = pd.DataFrame({"body": ["room 42", "room 17", "hall 42", "hall 17"]})
    encoder = TableEncoder(text="body").fit(frame)
    as_words = cells(encoder.transform(pd.DataFrame({"body": ["42", "17"]})))
    as_numbers = cells(encoder.transform(pd.DataFrame({"body": [42.0, 17.0]})))
    np.testing.assert_array_equal(as_numbers, as_words)
    assert as_words.any(axis=1).all()


def test_text_whose_cells_all_differ_is_not_left_out():
    frame = pd.DataFrame({"body": [f"letter {n} of many" for n in range(100, 150)], "x": np.arange(50.0)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder = TableEncoder(text="body").fit(frame)
    assert encoder.dropped_ == []
    with pytest.warns(DataWarning, match="are identifiers") as told:
        assert [column["name"] for column in TableEncoder().fit(frame).dropped_] == ["body"]
    assert "text=" not in str(told[0].message)  # too few words
    frame["body"] += " that somebody wrote"
    with pytest.warns(DataWarning, match="are left out: 'body'; the words of a text are used with text='body'."):
        TableEncoder().fit(frame)


def test_text_that_is_always_the_same_is_left_out(reviews):
    with pytest.warns(DataWarning, match="constant"):
        encoder = TableEncoder(text=["body", "note"]).fit(reviews.assign(note="the same again"))
    assert encoder.dropped_ == [{"name": "note", "index": 3, "why": "constant"}]


def test_several_columns_of_text_keep_their_words_apart(reviews):
    frame = pd.DataFrame({"title": ["good", "bad", "good", "bad"], "body": ["bad tea", "good tea", "bad", "good"]})
    encoder = TableEncoder(text=["body", "title"]).fit(frame)
    names = ["title: bad", "title: good", "body: bad", "body: good", "body: tea"]
    assert encoder.get_feature_names_out().tolist() == names


def test_clone_and_pickle(reviews):
    encoder = TableEncoder(text=("body",), min_df=1).fit(reviews)
    assert clone(encoder).get_params() == encoder.get_params()
    np.testing.assert_array_equal(
        cells(pickle.loads(pickle.dumps(encoder)).transform(reviews)), cells(encoder.transform(reviews))
    )


def test_frames_tables_and_object_arrays_are_the_same_text(reviews):
    frame = reviews[["body", "shop"]]
    wanted = cells(TableEncoder(text="body").fit_transform(frame))
    others = (
        pl.DataFrame({"body": TEXTS, "shop": ["north", "south", "north", None, "south", "south"]}),
        as_table(frame),
    )
    for other in others:
        np.testing.assert_array_equal(cells(TableEncoder(text="body").fit_transform(other)), wanted)
    array = np.array([[text or "", shop] for text, shop in zip(TEXTS, ["n", "s", "n", "n", "s", "s"], strict=True)])
    encoder = TableEncoder(text="x0").fit(array.astype(object))
    assert encoder.get_feature_names_out(["body", "shop"])[0].startswith("body: ")


def test_rows_of_a_table_are_encoded_independently(reviews):
    table = as_table(reviews[["body"]])
    some = TableEncoder(text="body", min_df=1).fit(table.take([0, 2]))
    assert some.columns_[0]["words"] == ["and", "good", "is", "pot", "tea", "the"]


def test_a_file_with_quotes_commas_and_lines_in_its_text(tmp_path):
    path = tmp_path / "reviews.csv"
    path.write_text('stars,body,sold\n5,"good tea,\nsaid ""she""",yes\n1,bad tea,no\n4,"good, good",yes\n2,,no\n')
    table = read_table(path, target="sold")
    encoder = TableEncoder(text="body").fit(table)
    assert encoder.get_feature_names_out().tolist() == ["stars", "body: good", "body: tea"]
    assert not cells(encoder.transform(table))[3, 1:].any()


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"text": ["body", "body"]}, ParameterError, "'body' twice"),
        ({"text": 3}, ParameterError, "text is 3; it must be the name of a column"),
        ({"text": [3]}, ParameterError, "it must be the name of a column"),
        ({"text_features": "embedding"}, ParameterError, "'tfidf', 'hashing'"),
        ({"min_df": 0}, ParameterError, "min_df is 0; it must be a whole number ≥ 1"),
        ({"min_df": 0.5}, ParameterError, "min_df is 0.5"),
        (
            {"max_features": True},
            ParameterError,
            "max_features is True; it must be a whole number from 1 to 16,777,216",
        ),
        ({"max_features": 2**24 + 1}, ParameterError, "from 1 to 16,777,216"),
        ({"text": "corpus"}, InputError, "no column 'corpus' to read text from.*'stars', 'body', 'shop'"),
        ({"text": "stars"}, InputError, "column 'stars'.*holds numbers, not text"),
        ({"min_df": 7}, InputError, "column 'body'.*in at least 7 of 6 rows.*lower min_df"),
    ],
)
def test_invalid_parameters_are_refused_by_name(reviews, change, error, words):
    with pytest.raises(error, match=words):
        TableEncoder(**({"text": "body"} | change)).fit(reviews)


def test_columns_that_hold_no_text_are_refused(reviews):
    frame = reviews.assign(old=[True, False] * 3, none=[None] * 6, dots=["...", "!", "?", "-", "a", "b"])
    for name, words in {"old": "truth values", "none": "is empty", "dots": "no word of two or more letters"}.items():
        with pytest.raises(InputError, match=words):
            TableEncoder(text=name).fit(frame)
    with pytest.raises(InputError, match="is the target"):
        TableEncoder(text="shop").fit(as_table(frame[["body"]]).with_target(as_table(frame)["shop"]))
    with pytest.raises(InputError, match="holds numbers"):
        TableEncoder(text="x1").fit(sp.csr_matrix(np.eye(3)))


def test_a_sparse_table_does_not_fit_an_encoder_of_text(reviews):
    encoder = TableEncoder(text="x0").fit(np.array([["good tea", 1.0], ["good pot", 2.0]], dtype=object))
    with pytest.raises(InputError, match="sparse"):
        encoder.transform(sp.csr_matrix(np.eye(2)))


def test_free_text_is_found_and_warned_of():
    sentences = [f"this is sentence number {n} of them" for n in range(30)]
    frame = pd.DataFrame(
        {
            "body": sentences,
            "half": sentences[:18] + sentences[:12],
            "few": [sentences[n % 3] for n in range(30)],
            "name": [f"Jo {n}" for n in range(30)],
        }
    )
    table = as_table(frame)
    assert [is_free_text(column) for column in table] == [True, True, False, False]
    with pytest.warns(DataWarning) as caught:
        found = inspect_columns(table)
    assert found["free text"] == ["body", "half"]
    assert found["identifier"] == ["body", "name"]
    said = [str(warning.message) for warning in caught]
    assert any("'body' looks like free text (7 words per cell)" in words and "text='body'" in words for words in said)
    assert not [words for words in said if "identif" in words]
