"""`margrove images`: the whole path from a folder to a certified model and a page, on a network of two maps."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from margrove import load
from margrove.transfer.tiny import write_tiny_network

NAMES = ("stand", "<script>lie</script>&'\"")


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """Stripes in two folders, one with a name that would like to be code; the network beside them."""
    monkeypatch.chdir(tmp_path)
    write_tiny_network("edges.onnx")
    rng = np.random.default_rng(0)
    wave = np.broadcast_to((np.arange(12) // 2 % 2) * 160, (12, 12))
    for name, grey in zip(NAMES, (wave, wave.T), strict=True):
        # A name with a slash cannot be a folder's.
        place = tmp_path / "stripes" / name.replace("/", "∕")
        place.mkdir(parents=True)
        for number in range(10):
            noise = rng.integers(0, 60, (12, 12, 3))
            Image.fromarray((grey[..., None] + noise).astype(np.uint8)).save(place / f"{number}.png")
    return Path("stripes")


BASE = ("images", "stripes", "--network", "edges.onnx", "--size", "12")


@pytest.mark.parametrize("model", ["svm", "softmax", "tree"])
def test_a_folder_becomes_a_certified_model_and_a_page(run, folder, model):
    told = run(*BASE, "--model", model, "--param", "C=10") if model != "tree" else run(*BASE, "--model", model)
    assert told.exit_code == 0, told.stderr
    assert "100.00 %, 95 % interval " in told.stdout
    assert "The certificate HOLDS" in told.stdout
    assert Path("stripes.html").is_file()
    again = load("stripes.margrove")
    assert sorted(again.classes_) == sorted(name.replace("/", "∕") for name in NAMES)
    predicted = run("predict", "stripes.margrove", "stripes")
    assert predicted.exit_code == 0, predicted.stderr
    assert predicted.stdout.splitlines()[0] == "file,class"
    assert len(predicted.stdout.splitlines()) == 21  # the header and 20 pictures
    assert run("certify", "stripes.margrove", "stripes").exit_code == 0
    assert "edges.onnx" in run("show", "stripes.margrove").stdout


class Page(HTMLParser):
    """What a browser would see."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.sources, self.words = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.sources += [value for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data):
        self.words.append(data)


@pytest.mark.parametrize("model", ["svm", "tree"])
def test_the_page_holds_everything_and_runs_nothing(run, folder, model):
    run(*BASE, "--model", model)
    text = Path("stripes.html").read_text("utf-8")
    page = Page(text)
    assert "script" not in page.tags
    assert page.sources
    assert all(source.startswith("data:image/png;base64,") for source in page.sources)
    assert not re.search(r"https?://", text)
    words = " ".join(page.words)
    assert NAMES[1].replace("/", "∕") in words
    assert "the certificate holds" in words
    assert ("nearest" in words) == (model == "svm")
    assert ("map_" in words) == (model == "tree")


def test_one_json_document(run, folder):
    told = run(*BASE, "--json", "--cache", "codes")
    record = json.loads(told.stdout)
    assert record["pictures"] == 20
    assert record["estimate"]["mean"] == 1.0
    assert record["network"]["name"] == "edges.onnx"
    assert record["certificate"]["holds"] is True
    assert list(Path("codes").rglob("*.safetensors"))


def test_the_network_is_found_beside_the_model_and_missed_elsewhere(run, folder, tmp_path, monkeypatch):
    run(*BASE)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert run("predict", "../stripes.margrove", "../stripes").exit_code == 0
    Path("../stripes.margrove").rename("stripes.margrove")
    told = run("predict", "stripes.margrove", "../stripes")
    assert told.exit_code == 2
    assert "not here (edges.onnx, fingerprint" in told.stderr
    assert "Put its .onnx file beside the model" in told.stderr


def test_one_picture_is_predicted(run, folder):
    run(*BASE)
    told = run("predict", "stripes.margrove", "stripes/stand/3.png", "--scores")
    assert told.stdout.splitlines()[1].startswith("3.png,stand,")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("images", "nowhere"), "there is no such folder"),
        (("images", "."), "pictures of 1 class were found"),
        ((*BASE, "--model", "forest"), "--model is 'forest'; it must be one of svm, softmax, tree, finetune"),
        ((*BASE, "--param", "depth=3"), "--model svm has no such parameter"),
        ((*BASE, "--layer", "top"), "--layer is 'top'"),
        ((*BASE, "--model", "finetune", "--layer", "relu"), "--layer is for codes"),
        ((*BASE, "-o", "no/such/model.margrove"), "there is no folder"),
        ((*BASE, "--report", "no/such/page.html"), "there is no folder"),
        (("images", "stripes", "--network", "gone.onnx"), "there is no such file"),
        ((*BASE, "--folds", "1"), "--folds is 1"),
        (("predict", "stripes.margrove"), "this model takes pictures"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(run, folder, arguments, words):
    if arguments[0] == "predict":
        run(*BASE)
    told = run(*arguments)
    assert told.exit_code == 2
    assert words in told.stderr
    assert len(told.stderr.strip().splitlines()) == 1


def test_a_model_of_tables_takes_no_folder(run, folder):
    run("train", "--model", "basic", "-o", "penguins.margrove")
    told = run("predict", "penguins.margrove", "stripes")
    assert told.exit_code == 2
    assert "takes the rows of a table" in told.stderr


def test_a_network_is_trained_on(run, folder, monkeypatch):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    import margrove.transfer.named_networks as named
    from margrove.transfer.networks import Source
    from margrove.transfer.preparation import Preparation

    def small(weights=None):
        torch.manual_seed(0)
        net = torch.nn.Sequential(
            torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(400, 9)
        )
        return Source("efficientnet_lite0", Preparation(size=12), module=net)

    monkeypatch.setattr(named, "efficientnet_lite0", small)
    monkeypatch.setattr("margrove.transfer.networks.needs", lambda *_: None)
    told = run("images", "stripes", "--model", "finetune", "--param", "epochs=3", "--param", "learning_rate=0.02")
    assert told.exit_code == 0, told.stderr
    assert "a final hold-out: 4 rows" in told.stdout
    assert "no optimum is claimed" in re.sub(r"\s+", " ", told.stdout)
    assert run("certify", "stripes.margrove", "stripes").exit_code == 0
    assert "sees 12 × 12 pixels" in run("show", "stripes.margrove").stdout
