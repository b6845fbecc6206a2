"""`margrove images`: the whole path from a folder to a certified model and a page, on a network of two maps."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_iris

from margrove import ConvFeatures, FineTuned, SoftmaxClassifier, load, read_picture_folder, write_onnx
from margrove.app.screen.display import certificate_grid
from margrove.errors import ModelFileError
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
    result = run(*BASE, "--model", model, "--param", "C=10") if model != "tree" else run(*BASE, "--model", model)
    assert result.exit_code == 0, result.stderr
    assert "Accuracy on unseen pictures\n  100.0 %, 95 % interval" in result.stdout
    assert "Certificate holds" in result.stdout
    assert Path("stripes.report.html").is_file()
    again = load("stripes.margrove")
    assert sorted(again.classes_) == sorted(name.replace("/", "∕") for name in NAMES)
    predicted = run("predict", "stripes.margrove", "stripes")
    assert predicted.exit_code == 0, predicted.stderr
    assert predicted.stdout.splitlines()[0] == "file,class"
    assert len(predicted.stdout.splitlines()) == 21  # the header and 20 pictures
    assert run("certify", "stripes.margrove", "stripes").exit_code == 0
    assert "edges.onnx" in run("show", "stripes.margrove").stdout


@pytest.mark.parametrize("model", ["svm", "softmax", "tree"])
def test_exported_learner_is_described_as_taking_codes(run, folder, model):
    runtime = pytest.importorskip("onnxruntime")
    run(*BASE, "--model", model)
    result = run("export", "stripes.margrove", "--to", "onnx", "-o", "last.onnx")
    assert result.exit_code == 0, result.stderr
    assert "the network is not included: the model takes the 2 numbers that edges.onnx (maps) computes" in result.stderr
    saved, pictures = load("stripes.margrove"), read_picture_folder("stripes")
    codes = np.asarray(ConvFeatures("edges.onnx", size=12).fit_transform(pictures), np.float64)
    session = runtime.InferenceSession("last.onnx", providers=["CPUExecutionProvider"])
    inputs = (
        {each.name: codes[:, [k]] for k, each in enumerate(session.get_inputs())} if model == "tree" else {"X": codes}
    )
    assert session.run(["label"], inputs)[0].ravel().tolist() == saved.predict(pictures).tolist()


def test_a_tree_of_maps_becomes_code(run, folder):
    run(*BASE, "--model", "tree")
    assert "map_" in run("export", "stripes.margrove", "--to", "sql").stdout


def test_error_explains_how_to_export_the_learner_of_a_model_of_pictures(run, folder):
    run(*BASE)
    with pytest.raises(ModelFileError, match=r"takes pictures.*write_onnx\(pipeline\[-1\]"):
        write_onnx(load("stripes.margrove"), "all.onnx")


def test_a_certificate_of_all_classes_at_once_has_one_column_of_numbers():
    X, y = load_iris(return_X_y=True)
    grid = certificate_grid(SoftmaxClassifier().fit(X, y).certificate_)
    assert [str(column.header) for column in grid.columns] == ["", "claim", "all 3 classes"]


def test_softmax_predicts_probabilities(run, folder):
    run(*BASE, "--model", "softmax")
    answered = run("predict", "stripes.margrove", "stripes", "--scores").stdout.splitlines()
    assert "probability stand" in answered[0]
    shares = np.array([[float(cell) for cell in line.split(",")[-2:]] for line in answered[1:]])
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)


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
def test_the_page_holds_everything_and_runs_no_script_but_its_own(run, folder, model):
    run(*BASE, "--model", model)
    text = Path("stripes.report.html").read_text("utf-8")
    page = Page(text)
    assert page.tags.count("script") == 2  # ours, which the page's own policy names by their digests
    assert text.count("script-src &#39;sha256-") == 1
    assert any(source.startswith("data:image/png;base64,") for source in page.sources)
    assert all(source.startswith(("data:", "#")) for source in page.sources)
    assert not re.search(r"https?://", text.replace("http://www.w3.org/2000/svg", ""))  # the name of a language
    words = " ".join(page.words)
    assert NAMES[1].replace("/", "∕") in words
    assert "Certificate holds" in words
    assert ("nearest" in words) == (model == "svm")
    assert ("map_" in words) == (model == "tree")


def test_other_page_is_not_overwritten(run, folder):
    Path("stripes.report.html").write_text("my own")
    result = run(*BASE)
    assert result.exit_code == 2
    assert "is not a Margrove report, so it is not overwritten" in result.stderr
    assert Path("stripes.report.html").read_text() == "my own"
    assert not Path("stripes.margrove").exists()


def other_stripes(n: int) -> None:
    """Pictures that the model has not seen, the last of each class turned round: those are predicted incorrectly."""
    for name in ("stand", NAMES[1].replace("/", "∕")):
        place = Path("others", name)
        place.mkdir(parents=True)
        for number in range(n):
            with Image.open(Path("stripes", name, f"{number}.png")) as picture:
                turned = picture.transpose(
                    Image.Transpose.ROTATE_90 if number == n - 1 else Image.Transpose.FLIP_LEFT_RIGHT
                )
            turned.save(place / f"{number}.png")


def test_report_on_pictures_that_the_model_has_not_seen(run, folder):
    run(*BASE)
    other_stripes(4)
    result = run("report", "stripes.margrove", "others", "--format", "json", "-o", "-")
    assert result.exit_code == 0, result.stderr
    record = json.loads(result.stdout)
    assert (record["summary"]["evaluated"], record["summary"]["correct"]) == (8, 6)
    assert {example["file"] for example in record["wrong"]["shown"]} >= {"stand/3.png"}
    assert "classified by the saved model" in record["summary"]["how"]
    assert run("report", "stripes.margrove", "others").exit_code == 0
    assert "correct, on pictures it has not seen" in Path("stripes.report.html").read_text("utf-8")
    assert (
        "stand/3.png | stand, mistaken for"
        in run("report", "stripes.margrove", "others", "--format", "md", "-o", "-").stdout
    )


@pytest.mark.parametrize("model", ["svm", "tree"])
def test_report_on_the_training_pictures_warns_that_it_is_too_optimistic(run, folder, model):
    run(*BASE, "--model", model)
    record = json.loads(run("report", "stripes.margrove", "stripes", "--format", "json", "-o", "-").stdout)
    assert "learned from these pictures" in record["summary"]["how"]


def test_pictures_in_no_class_are_left_out_of_a_report_and_counted(run, folder):
    run(*BASE)
    other_stripes(2)
    Path("others", "stand", "0.png").rename(Path("others", "0.png"))
    record = json.loads(run("report", "stripes.margrove", "others", "--format", "json", "-o", "-").stdout)
    assert record["summary"]["evaluated"] == 3
    assert "1 of 4 pictures were left out: their folder is not a class of the model." in record["summary"]["how"]


def test_one_json_document(run, folder):
    result = run(*BASE, "--json", "--cache", "codes")
    record = json.loads(result.stdout)
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
    result = run("predict", "stripes.margrove", "../stripes")
    assert result.exit_code == 2
    assert "was not found (edges.onnx, fingerprint" in result.stderr
    assert "Put its .onnx file beside the model" in result.stderr


def test_one_picture_is_predicted(run, folder):
    run(*BASE)
    result = run("predict", "stripes.margrove", "stripes/stand/3.png", "--scores")
    assert result.stdout.splitlines()[1].startswith("3.png,stand,")


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
        (("certify", "stripes.margrove", "stripes/stand"), "10 of 10 pictures are not in a folder named after a class"),
        (("report", "stripes.margrove", "stripes/stand"), "10 of 10 pictures are not in a folder named after a class"),
        (("train", "stripes"), "If it contains pictures: margrove images stripes"),
        (("compare", "stripes"), "If it contains pictures: margrove images stripes"),
    ],
)
def test_errors_are_reported_in_one_line(run, folder, arguments, words):
    if "stripes.margrove" in arguments:
        run(*BASE)
    result = run(*arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_a_model_of_tables_takes_no_folder(run, folder):
    run("train", "--model", "basic", "-o", "penguins.margrove")
    result = run("predict", "penguins.margrove", "stripes")
    assert result.exit_code == 2
    assert "takes the rows of a table" in result.stderr


@pytest.fixture
def small_network(monkeypatch):
    """In the place of the built-in one."""
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


def test_network_is_fine_tuned(run, folder, small_network, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")  # so wide that no claim is wrapped
    result = run("images", "stripes", "--model", "finetune", "--param", "epochs=3", "--param", "learning_rate=0.02")
    assert result.exit_code == 0, result.stderr
    assert "a final hold-out of 4 pictures that the network has not seen" in result.stdout
    assert "3 passes over the pictures, of 3 at most" in result.stdout
    assert "Progress of the training" in Path("stripes.report.html").read_text("utf-8")
    assert "is a whole network" in run("export", "stripes.margrove", "--to", "onnx", "-o", "net.onnx").stderr
    certified = run("certify", "stripes.margrove", "stripes")
    assert certified.exit_code == 0
    assert "not claimed to be optimal" in certified.stdout
    assert "input: 12 × 12 pixels" in run("show", "stripes.margrove").stdout


def test_wrong_folds_are_reported_before_any_picture_is_opened(run, folder):
    (folder / "stand" / "0.png").write_bytes(b"no picture")
    result = run(*BASE, "--folds", "1")
    assert result.exit_code == 2
    assert "--folds is 1; it must be at least 2, or 0" in result.stderr


def test_broken_files_are_reported_before_any_work_or_left_out(run, folder):
    (folder / "stand" / "x.png").write_bytes(b"no picture")
    (folder / "stand" / "y.jpg").write_bytes(b"")
    (folder / "empty").mkdir()
    result = run(*BASE)
    assert result.exit_code == 2
    assert "2 files are damaged or not in a picture format: stand/x.png, stand/y.jpg" in result.stderr
    assert "--skip-broken" in result.stderr
    assert result.stdout == ""
    result = run(*BASE, "--skip-broken")
    assert result.exit_code == 0, result.stderr
    assert "stripes: 20 pictures of 2 classes" in result.stdout
    assert "1 folder without a picture: empty" in result.stdout
    assert "2 files left out" in result.stdout
    assert "2 files are damaged" in run("predict", "stripes.margrove", "stripes").stderr


def test_summary_of_the_model_names_maps_and_not_columns(run, folder):
    run(*BASE, "--model", "softmax")
    assert re.search(r"(high|low) map_\d", run("show", "stripes.margrove").stdout)
    run(*BASE)
    shown = run("show", "stripes.margrove").stdout
    assert "training rows are support vectors" in shown
    assert "which columns matter" not in shown


def test_the_trial_and_the_training_have_a_checkpoint_each(run, folder, small_network, monkeypatch):
    used, fit = [], FineTuned.fit

    def noted(model, X, y):
        used.append(model.checkpoint)
        return fit(model, X, y)

    monkeypatch.setattr(FineTuned, "fit", noted)
    result = run("images", "stripes", "--model", "finetune", "--param", "epochs=1", "--param", "checkpoint=tune")
    assert result.exit_code == 0, result.stderr
    assert used == ["tune.trial", "tune"]
