"""The page of pictures as data: predictions, confusions, examples."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image
from sklearn.pipeline import make_pipeline

from margrove import ConvFeatures, SoftmaxClassifier, read_picture_folder
from margrove.app.images.page import MOST_CLASSES, SHOWN, ScoredPictures, page_of
from margrove.app.report.markdown import to_markdown
from margrove.transfer.tiny import write_tiny_network


@pytest.fixture
def many(tmp_path, monkeypatch):
    """One more class than a table of confusions has room for, two pictures of each: shades of grey with an edge."""
    monkeypatch.chdir(tmp_path)
    write_tiny_network("edges.onnx")
    for number in range(MOST_CLASSES + 1):
        place = tmp_path / "shades" / f"shade {number:02}"
        place.mkdir(parents=True)
        for k in range(2):
            pixels = np.zeros((8, 8, 3), np.uint8)
            pixels[:, 4:] = 10 * number + k
            Image.fromarray(pixels).save(place / f"{k}.png")
    pictures = read_picture_folder("shades")
    model = make_pipeline(ConvFeatures("edges.onnx", size=8), SoftmaxClassifier()).fit(pictures, pictures.labels)
    return model, pictures


def section(page, key):
    return next(each for each in page.sections if each.key == key)


def test_most_frequent_confusions_of_many_classes_are_listed(many):
    model, pictures = many
    predicted = pictures.labels.copy()
    predicted[[0, 1]] = "shade 05"
    predicted[4] = "shade 06"
    scored = ScoredPictures(pictures, np.arange(len(predicted)), predicted, "By the test.")
    assert scored.confusions == [("shade 00", "shade 05", 2), ("shade 02", "shade 06", 1)]
    page = page_of(model, scored, None, model[-1].certificate_, is_recomputed=True)
    text = to_markdown(page)
    assert "| shade 00 | shade 05 | 2 |" in text
    assert "truth ↓ predicted →" not in text
    assert section(page, "wrong").data["count"] == 3
    assert len(section(page, "correct").data["shown"]) == SHOWN
    assert "The most common mistake: shade 00 mistaken for shade 05, 2 times." in text


def test_examples_are_taken_from_each_class_in_turn(many):
    model, pictures = many
    scored = ScoredPictures(pictures, np.arange(len(pictures)), pictures.labels, "By the test.")
    page = page_of(model, scored, None, model[-1].certificate_, is_recomputed=False)
    shown = section(page, "correct").data["shown"]
    assert len({each["class"] for each in shown}) == SHOWN
    assert "No picture is classified incorrectly." in to_markdown(page)


def test_page_without_an_estimate_states_it_and_shows_no_examples(many):
    model, pictures = many
    scored = ScoredPictures(pictures, np.empty(0, np.intp), pictures.labels[:0], "Nothing was predicted.")
    page = page_of(model, scored, None, model[-1].certificate_, is_recomputed=True)
    assert [each.key for each in page.sections] == ["summary", "proof", "about"]
    assert "Nothing was predicted." in to_markdown(page)
