"""Columns of free text on the command line: ``--text COL``."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.app.printed import said_by
from typer.testing import Result

import margrove
from margrove.app.options.menu import choices

Run = Callable[..., Result]

LIKES = ["lovely", "great", "tasty", "perfect"]
DISLIKES = ["awful", "stale", "broken", "rude"]
FILLERS = ["the", "tea", "was", "and", "pot", "box", "shop", "with", "lid", "order"]


@pytest.fixture
def reviews(folder: Path) -> str:
    """Text that tells, and beside it a number and a category with gaps, a yes/no that tell nothing, and a key."""
    rng = np.random.default_rng(0)
    with (folder / "reviews.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["key", "body", "price", "shop", "old", "happy"])
        for i in range(150):
            is_happy = bool(rng.random() < 0.5)
            words = [*rng.choice(FILLERS, 6), *rng.choice(LIKES if is_happy else DISLIKES, 2)]
            body = "" if i % 30 == 7 else f"{' '.join(rng.permutation(words))}, no. {i}"
            price = "" if i % 10 == 0 else f"{rng.normal():.2f}"
            shop = rng.choice(["north", "south", ""])
            writer.writerow([f"k{i}", body, price, shop, str(rng.random() < 0.5).lower(), "yes" if is_happy else "no"])
    return "reviews.csv"


@pytest.mark.parametrize("learner", [name for name, learner in choices().items() if not learner.takes_tables])
def test_every_learner_of_numbers_takes_text(run: Run, reviews: str, learner: str) -> None:
    words = ["train", reviews, "--text", "body", "--model", learner, "--folds", "2", "--budget", "0", "--json"]
    record = json.loads(run(*words).stdout)
    assert record["table"]["columns"] == {"text": 1, "numeric": 1, "category": 1, "boolean": 1}
    assert record["table"]["texts"] == [{"name": "body", "mean_words": pytest.approx(10), "n_empty": 5}]
    assert record["certificate"]["holds"] is True
    # The base rate is about a half. The means of the classes do not see that the other columns tell nothing.
    assert np.mean(record["estimate"]["scores"]) > (0.55 if learner == "basic" else 0.85)
    assert run("certify", "reviews.margrove", reviews).exit_code == 0


def test_output_about_text_columns(run: Run, reviews: str) -> None:
    result = run("train", reviews, "--text", "body", "--model", "perceptron", "--folds", "2")
    said = said_by(result)
    assert "4 feature columns: 1 text, 1 numeric, 1 categorical, 1 yes/no; identifier left out: 'key'" in said
    assert "text 'body', 10 words per cell, 5 cells empty: its words become features" in said
    assert "in 2 columns, imputed" in said  # an empty text is no gap
    assert any(f"'{word}' in body (" in said for word in LIKES)
    assert any(f"'{word}' in body (" in said.partition("; against it: ")[2] for word in DISLIKES)
    assert "body" not in result.stderr
    said = said_by(run("show", "reviews.margrove"))
    assert "body (text)" in said
    assert "In parentheses: the weight per standard deviation" in said


def test_text_is_predicted_by_its_words(run: Run, reviews: str, folder: Path) -> None:
    assert run("train", reviews, "--text", "body", "--model", "perceptron", "--folds", "0").exit_code == 0
    new = 'shop,old,price,body\nnorth,true,0,"Lovely, TASTY tea"\nnorth,true,0,"stale and rude"\nnorth,true,0,\n'
    (folder / "new.csv").write_text(new)
    result = run("predict", "reviews.margrove", "new.csv", "--scores")
    answers = list(csv.DictReader(result.stdout.splitlines()))
    assert [row["happy"] for row in answers[:2]] == ["yes", "no"]
    scores = [float(row["score yes vs no"]) for row in answers]
    assert scores[0] > scores[2] > scores[1]


def test_hashing_keeps_no_words(run: Run, reviews: str) -> None:
    words = ["--text", "body", "--text-features", "hashing", "--model", "basic", "--folds", "0"]
    said = said_by(run("train", reviews, *words))
    assert "'#" in said
    encoder = margrove.load("reviews.margrove")[0]
    assert (encoder.text, encoder.text_features) == (["body"], "hashing")
    assert b"lovely" not in Path("reviews.margrove").read_bytes()


def test_a_search_sees_the_text(run: Run, reviews: str) -> None:
    words = [
        "--model",
        "svm",
        "--text",
        "body",
        "--param",
        "kernel=linear",
        "--folds",
        "2",
        "--budget",
        "20s",
        "--json",
    ]
    record = json.loads(run("train", reviews, *words).stdout)
    assert record["search"]["best"]["score"] > 0.85


def test_free_text_without_the_option_is_reported(run: Run, reviews: str) -> None:
    result = run("train", reviews, "--model", "basic", "--folds", "0")
    told = " ".join(result.stderr.split())
    assert "column 'body' looks like free text (10 words per cell), but its words are not used" in told
    assert "all learners but trees can use them with --text 'body'." in told
    assert "'key'" not in told


def test_compare_gives_the_text_to_those_that_take_it(run: Run, reviews: str) -> None:
    said = said_by(run("compare", reviews, "--text", "body", "--folds", "2"))
    assert "tree, adaboost, forest: trained without the text columns, which they do not take" in said
    record = json.loads(run("compare", reviews, "--text", "body", "--folds", "2", "--json").stdout)
    means = {
        entry["learner"]: np.mean(entry["cross_validation"]["scores"])
        for entry in record["learners"]
        if entry["cross_validation"] is not None
    }
    assert means["perceptron"] > 0.85
    assert means["tree"] < 0.7


def test_trees_fail_alone_where_all_columns_are_text(run: Run, folder: Path) -> None:
    lines = ["body,happy", *(f"{'lovely' if i % 2 else 'stale'} tea,{i % 2}" for i in range(20))]
    (folder / "bodies.csv").write_text("\n".join(lines))
    record = json.loads(run("compare", "bodies.csv", "--text", "body", "--folds", "2", "--json").stdout)
    failures = {entry["learner"]: entry["failure"] for entry in record["learners"] if entry["failure"]}
    assert failures.keys() == {"tree", "adaboost", "forest"}
    assert "all columns are text" in failures["tree"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--text", "body", "--text", "body"], "--text body is given twice."),
        (["--text", "soul"], "there is no column 'soul' to read text from. The columns are 'key', 'body'"),
        (
            ["--text", "price"],
            "column 'price': holds numbers, not text. Leave out its --text; the column is used anyway.",
        ),
        (["--text", "old"], "column 'old': holds truth values, not text."),
        (["--text", "happy"], "column 'happy': is the target"),
        (["--text", "body", "--without", "body"], "column 'body': is named by --text and by --without"),
        (["--text", "body", "--text-features", "bert"], "--text-features is 'bert'; it must be one of tfidf, hashing."),
        (["--text-features", "hashing"], "--text-features hashing requires --text"),
        (["--text", "key"], "column 'key': no word of two or more letters occurs in at least 2 of 150 rows"),
    ],
)
def test_invalid_options_are_reported_in_one_line(run: Run, reviews: str, words: list[str], told: str) -> None:
    result = run("train", reviews, "--model", "basic", "--folds", "0", *words)
    assert result.exit_code == 2
    line = " ".join(result.stderr.split())
    assert told in line
    assert "min_df" not in line


@pytest.mark.parametrize("learner", ["tree", "adaboost"])
def test_trees_refuse_text_before_reading(run: Run, learner: str) -> None:
    result = run("train", "absent.csv", "--text", "body", "--model", learner)
    assert result.exit_code == 2
    assert f"and {learner} takes columns as they are. Learners that take text: --model basic" in " ".join(
        result.stderr.split()
    )


def test_a_sparse_file_has_no_text(run: Run, folder: Path) -> None:
    (folder / "rows.libsvm").write_text("1 1:0.5 3:2\n-1 2:1 3:1\n1 1:1\n-1 2:2\n")
    result = run("train", "rows.libsvm", "--text", "feature_1", "--model", "basic")
    assert result.exit_code == 2
    assert "column 'feature_1': holds numbers, not text" in " ".join(result.stderr.split())


def test_numbers_estimated_from_text_are_refused_by_trees(run: Run, reviews: str) -> None:
    result = run("train", reviews, "--text", "body", "--target", "price", "--task", "regress", "--model", "tree")
    assert result.exit_code == 2
    assert "Learners that take text" in result.stderr
