"""`ConvFeatures` over ONNX Runtime: codes follow the formula, and the cache changes nothing."""

from __future__ import annotations

import pickle

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline

import margrove.transfer.code_cache as code_cache
from margrove import SVC, ConvFeatures, DecisionTreeClassifier, certify
from margrove.errors import InputError, MargroveWarning, MissingExtraError, ParameterError
from margrove.run.progress import watched
from margrove.transfer.onnx_network import OnnxNetwork
from margrove.transfer.preparation import IMAGENET_MEAN, IMAGENET_STD


def by_hand(pictures):
    """The two maps of the tiny network, by the definition, mean over the pixels of their positive part."""
    z = (pictures / 255 - IMAGENET_MEAN) / IMAGENET_STD
    grey = z.mean(axis=3)
    sobel = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]) / 8
    side = grey.shape[1] - 2
    maps = np.zeros((2, len(grey), side, side))
    for i in range(3):
        for j in range(3):
            part = grey[:, i : i + side, j : j + side]
            maps[0] += sobel[i, j] * part
            maps[1] += sobel[j, i] * part
    return np.maximum(maps, 0).transpose(1, 0, 2, 3)


def save_network(path, nodes, weights, shape=("n", 3, "h", "w"), out="scores"):
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, list(shape))],
        [helper.make_tensor_value_info(out, TensorProto.FLOAT, ["n", "k"])],
        [numpy_helper.from_array(np.asarray(w, np.float32), name) for name, w in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, str(path))
    return str(path)


def test_codes_are_the_means_of_the_maps(edges, stripes):
    pictures, _ = stripes
    features = ConvFeatures(edges, size=12, batch_size=7)
    np.testing.assert_allclose(features.fit_transform(pictures), by_hand(pictures).mean(axis=(2, 3)), atol=1e-5)
    assert features.layer_ == "maps"
    assert features.get_feature_names_out().tolist() == ["map_0", "map_1"]
    np.testing.assert_allclose(features.maps(pictures, [1])[:, 0], by_hand(pictures)[:, 1], atol=1e-5)


def test_the_largest_of_each_map(edges, stripes):
    pictures, _ = stripes
    found = ConvFeatures(edges, size=12, pooling="max").fit_transform(pictures)
    np.testing.assert_allclose(found, by_hand(pictures).max(axis=(2, 3)), atol=1e-5)


def test_flip_averages_over_the_mirror_image(edges, stripes):
    pictures, _ = stripes
    plain = ConvFeatures(edges, size=12).fit(pictures)
    wanted = (plain.transform(pictures) + plain.transform(pictures[:, :, ::-1])) / 2
    np.testing.assert_allclose(ConvFeatures(edges, size=12, flip=True).fit_transform(pictures), wanted, atol=1e-6)


def test_codes_of_length_one(edges, stripes):
    pictures, _ = stripes
    blank = np.zeros_like(pictures[:1])
    found = ConvFeatures(edges, size=12, mean=0, std=1, normalise="l2").fit_transform(np.concatenate([pictures, blank]))
    np.testing.assert_allclose(np.linalg.norm(found[:-1], axis=1), 1, atol=1e-6)
    assert (found[-1] == 0).all()


def test_a_named_layer_is_relued_and_pooled(edges, stripes):
    pictures, _ = stripes
    for layer in ("conv", "edges"):  # the name of a node, or of what it answers
        found = ConvFeatures(edges, size=12, layer=layer).fit_transform(pictures)
        np.testing.assert_allclose(found, by_hand(pictures).mean(axis=(2, 3)), atol=1e-5)
    with pytest.raises(ParameterError, match=r"layer is 'head'.*conv, relu"):
        ConvFeatures(edges, layer="head").fit(pictures)


def test_a_vector_that_is_not_a_mean_of_maps_is_used_as_it_is(tmp_path, stripes, rng):
    kernels, dense = rng.normal(size=(2, 3, 3, 3)), rng.normal(size=(2, 4))
    nodes = [
        helper.make_node("Conv", ["pixels", "kernels"], ["maps"]),  # no ReLU: their mean may be negative
        helper.make_node("GlobalAveragePool", ["maps"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["code"]),
        helper.make_node("Gemm", ["code", "dense"], ["scores"]),
    ]
    path = save_network(tmp_path / "net.onnx", nodes, {"kernels": kernels, "dense": dense})
    features = ConvFeatures(path, size=12).fit(stripes[0])
    assert features.layer_ == "code"
    found = features.transform(stripes[0])
    linear = ConvFeatures(path, size=12, layer="maps")
    raw = linear.fit(stripes[0])._network._run(linear.preparation_.pixels(_pictures(stripes[0])))
    np.testing.assert_allclose(found, np.maximum(raw.mean(axis=(2, 3)), 0), atol=1e-5)
    with pytest.raises(InputError, match="is a vector, not maps"):
        features.maps(stripes[0], [0])


def _pictures(X):
    from margrove.transfer.pictures import as_pictures

    return as_pictures(X)


def test_channels_last_grey_and_a_fixed_batch_are_supported(tmp_path, stripes):
    dense = np.eye(8 * 8, dtype=np.float32)
    nodes = [
        helper.make_node("Flatten", ["pixels"], ["code"]),
        helper.make_node("MatMul", ["code", "dense"], ["scores"]),
    ]
    path = save_network(tmp_path / "net.onnx", nodes, {"dense": dense}, shape=(3, 8, 8, 1))
    features = ConvFeatures(path, batch_size=5).fit(stripes[0])
    assert (features.preparation_.size, features.preparation_.mode) == (8, "L")
    seen = features.preparation_.pixels(_pictures(stripes[0]))
    wanted = np.maximum((seen / 255 - 0.5) / 0.5, 0).reshape(len(seen), -1)
    np.testing.assert_allclose(features.transform(stripes[0]), wanted, atol=1e-5)


@pytest.mark.parametrize("layer", [None, "conv", "relu", "back"])
def test_maps_are_found_whatever_the_order_of_the_channels_outside(tmp_path, stripes, rng, layer):
    """As TensorFlow's exporters write it: pictures come with their channels last, convolutions have them first."""
    weights = {"kernels": rng.normal(size=(5, 3, 3, 3)), "dense": rng.normal(size=(5, 4))}
    nodes = [
        helper.make_node("Conv", ["x", "kernels"], ["edges"], name="conv"),
        helper.make_node("Relu", ["edges"], ["maps"], name="relu"),
        helper.make_node("GlobalAveragePool", ["maps"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["code"]),
        helper.make_node("Gemm", ["code", "dense"], ["scores"]),
    ]
    back = helper.make_node("Transpose", ["maps"], ["last"], name="back", perm=[0, 2, 3, 1])
    front = helper.make_node("Transpose", ["pixels"], ["x"], perm=[0, 3, 1, 2])
    last = save_network(tmp_path / "last.onnx", [front, *nodes, back], weights, shape=("n", 12, 12, 3))
    nodes[0].input[0] = "pixels"
    first = save_network(tmp_path / "first.onnx", nodes, weights, shape=("n", 3, 12, 12))
    features = ConvFeatures(last, layer=layer).fit(stripes[0])
    assert (features.has_maps, features.n_features_out_) == (True, 5)
    wanted = ConvFeatures(first, layer="relu" if layer == "back" else layer).fit(stripes[0])
    np.testing.assert_allclose(features.transform(stripes[0]), wanted.transform(stripes[0]), atol=1e-5)
    np.testing.assert_allclose(features.maps(stripes[0], [2]), wanted.maps(stripes[0], [2]), atol=1e-5)


def test_a_branch_keeps_the_weights_that_it_uses(tmp_path, stripes):
    def branch(name, *nodes):
        out = helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 3, 12, 12])
        return helper.make_graph(list(nodes), name, [], [out])

    twice = branch("t", helper.make_node("Mul", ["pixels", "two"], ["t"]))
    once = branch("o", helper.make_node("Identity", ["pixels"], ["o"]))
    nodes = [
        helper.make_node("Greater", ["two", "one"], ["cond"]),
        helper.make_node("If", ["cond"], ["chosen"], then_branch=twice, else_branch=once),
        helper.make_node("Flatten", ["chosen"], ["code"]),
        helper.make_node("MatMul", ["code", "dense"], ["scores"]),
    ]
    weights = {"one": 1.0, "two": 2.0, "dense": np.eye(3 * 144)}
    path = save_network(tmp_path / "net.onnx", nodes, weights, shape=("n", 3, 12, 12))
    found = ConvFeatures(path, mean=0, std=1).fit_transform(stripes[0])
    np.testing.assert_allclose(found, stripes[0].transpose(0, 3, 1, 2).reshape(40, -1) / 127.5, atol=1e-5)


def test_unknown_operators_are_reported(tmp_path, stripes):
    nodes = [
        helper.make_node("Weird", ["pixels"], ["maps"], domain="elsewhere"),
        helper.make_node("Flatten", ["maps"], ["code"]),
        helper.make_node("MatMul", ["code", "dense"], ["scores"]),
    ]
    path = save_network(tmp_path / "net.onnx", nodes, {"dense": np.eye(432)})
    model = onnx.load(path)
    model.opset_import.append(helper.make_opsetid("elsewhere", 1))
    onnx.save(model, path)
    with pytest.raises(InputError, match=r"net\.onnx: ONNX Runtime cannot open it \(.*Weird"):
        ConvFeatures(path, size=12).fit(stripes[0])


def test_layers_after_the_cut_are_not_run(tmp_path, stripes):
    nodes = [
        helper.make_node("GlobalAveragePool", ["pixels"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["code"]),
        helper.make_node("Gemm", ["code", "dense"], ["scores"]),  # of a wrong width: it would fail
    ]
    path = save_network(tmp_path / "net.onnx", nodes, {"dense": np.eye(7)})
    assert ConvFeatures(path, size=12).fit_transform(stripes[0]).shape == (40, 3)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"pooling": "median"}, "pooling is 'median'; it must be one of 'mean', 'max'"),
        ({"device": "tpu"}, "device is 'tpu'"),
        ({"precision": "bfloat16"}, "an ONNX file has its own"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"network": "resnet"}, "network is 'resnet'"),
        ({"network": 5}, "network is 5"),
        ({"network": "torchvision:"}, "network is 'torchvision:'"),
        ({"layer": 3}, "layer is 3"),
        ({"weights": "w.pth"}, "an ONNX file has its own"),
        ({"cache": 3}, "cache is 3"),
        ({"normalise": "l1"}, "normalise is 'l1'"),
        ({"flip": "yes"}, "flip is 'yes'"),
    ],
)
def test_a_wrong_parameter_is_reported(edges, stripes, parameters, words):
    with pytest.raises(ParameterError, match=words):
        ConvFeatures(**{"network": edges, "size": 12, **parameters}).fit_transform(stripes[0])


def test_a_file_that_is_not_a_network_is_refused(tmp_path, stripes, edges):
    (tmp_path / "junk.onnx").write_bytes(b"\xff\xfe not a network")
    with pytest.raises(InputError, match=r"junk\.onnx: it is not a valid ONNX network"):
        ConvFeatures(str(tmp_path / "junk.onnx")).fit(stripes[0])
    with pytest.raises(InputError, match="there is no such file"):
        ConvFeatures(tmp_path / "gone.onnx").fit(stripes[0])
    relu = [helper.make_node("Relu", ["pixels"], ["scores"], name="relu")]
    path = save_network(tmp_path / "relu.onnx", relu, {})
    with pytest.raises(InputError, match=r"no linear layer.*layer=…"):
        ConvFeatures(path).fit(stripes[0])
    table = save_network(tmp_path / "table.onnx", relu, {}, shape=("n", 5))
    with pytest.raises(InputError, match=r"pixels: \(n, 5\); one float32 batch of pictures"):
        ConvFeatures(table).fit(stripes[0])


def test_a_missing_extra_names_its_install_line(stripes, monkeypatch):
    import margrove.transfer.networks as networks

    real = networks.import_module

    def without_torch(name):
        if name == "torch":
            raise ImportError(name)
        return real(name)

    monkeypatch.setattr(networks, "import_module", without_torch)
    with pytest.raises(MissingExtraError, match=r"pip install 'margrove\[torch\]'"):
        ConvFeatures().fit(stripes[0])


def test_nothing_is_downloaded_unless_requested(stripes, monkeypatch):
    pytest.importorskip("torch", reason="torch is not installed")
    monkeypatch.setattr("margrove.transfer.networks.import_module", lambda name: None)  # as if it were installed
    with pytest.raises(ParameterError, match="nothing is downloaded unless requested"):
        ConvFeatures("timm:resnet18").fit(stripes[0])


def test_a_missing_library_is_reported_before_missing_weights(stripes, monkeypatch):
    pytest.importorskip("torch", reason="torch is not installed")

    def absent(name):
        if name == "timm":
            raise ImportError(name)

    monkeypatch.setattr("margrove.transfer.networks.import_module", absent)
    with pytest.raises(MissingExtraError, match="pip install timm"):
        ConvFeatures("timm:resnet18").fit(stripes[0])


class Counted:
    """Counts the pictures that reach the network."""

    def __init__(self, monkeypatch, stop_after=None):
        self.n, real = 0, OnnxNetwork.codes

        def codes(network, pixels):
            if stop_after is not None and self.n >= stop_after:
                raise KeyboardInterrupt
            self.n += len(pixels)
            return real(network, pixels)

        monkeypatch.setattr(OnnxNetwork, "codes", codes)


def test_a_second_run_computes_nothing(edges, stripes, tmp_path, monkeypatch):
    pictures, _ = stripes
    plain = ConvFeatures(edges, size=12).fit_transform(pictures)
    counted = Counted(monkeypatch)
    first = ConvFeatures(edges, size=12, cache=tmp_path / "cache", batch_size=8).fit_transform(pictures)
    assert counted.n == 40
    second = ConvFeatures(edges, size=12, cache=tmp_path / "cache").fit_transform(pictures[::-1])
    assert counted.n == 40
    np.testing.assert_array_equal(first, plain)
    np.testing.assert_array_equal(second, plain[::-1])


def test_other_settings_find_nothing_in_the_cache(edges, stripes, tmp_path, monkeypatch):
    pictures, cache = stripes[0][:4], tmp_path / "cache"
    ConvFeatures(edges, size=12, cache=cache).fit_transform(pictures)
    counted = Counted(monkeypatch)
    for changed in (
        {"size": 10},
        {"pooling": "max"},
        {"flip": True},
        {"layer": "conv"},
        {"mean": 0.5},
        {"crop": 0.5},
        {"normalise": "l2"},
    ):
        before = counted.n
        given = {"size": 12, "cache": cache, **changed}
        cached = ConvFeatures(edges, **given).fit_transform(pictures)
        assert counted.n > before, changed
        np.testing.assert_array_equal(cached, ConvFeatures(edges, **{**given, "cache": None}).fit_transform(pictures))
    before = counted.n
    ConvFeatures(edges, size=12, cache=cache).fit_transform(255 - pictures)
    assert counted.n == before + 4


def test_ctrl_c_keeps_what_was_computed(edges, stripes, tmp_path, monkeypatch):
    pictures, _ = stripes
    features = ConvFeatures(edges, size=12, cache=tmp_path / "cache", batch_size=8).fit(pictures)
    with monkeypatch.context() as patch:
        Counted(patch, stop_after=16)
        with pytest.raises(KeyboardInterrupt):
            features.transform(pictures)
    counted = Counted(monkeypatch)
    found = features.transform(pictures)
    assert counted.n == 24
    np.testing.assert_array_equal(found, ConvFeatures(edges, size=12).fit_transform(pictures))


def test_a_damaged_file_of_the_cache_is_computed_again(edges, stripes, tmp_path, monkeypatch):
    pictures, _ = stripes
    monkeypatch.setattr(code_cache, "ROWS_PER_FILE", 8)
    features = ConvFeatures(edges, size=12, cache=tmp_path / "cache", batch_size=8).fit(pictures)
    found = features.transform(pictures)
    files = sorted((tmp_path / "cache").rglob("*.safetensors"))
    assert len(files) == 5
    content = bytearray(files[0].read_bytes())
    content[-1] ^= 1  # one bit of one code
    files[0].write_bytes(content)
    files[1].write_bytes(b"cut off")
    counted = Counted(monkeypatch)
    with pytest.warns(MargroveWarning, match="computed again") as caught:
        np.testing.assert_array_equal(features.transform(pictures), found)
    assert (counted.n, len(caught)) == (16, 2)
    np.testing.assert_array_equal(features.transform(pictures), found)
    assert counted.n == 16


def test_codes_are_computed_without_a_writable_cache(edges, stripes, tmp_path, monkeypatch):
    def full(path, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(code_cache, "ROWS_PER_FILE", 8)
    monkeypatch.setattr(code_cache, "replace_file", full)
    features = ConvFeatures(edges, size=12, cache=tmp_path / "cache", batch_size=8)
    with pytest.warns(MargroveWarning, match=r"cannot be written \(No space left.*cache=None") as caught:
        found = features.fit_transform(stripes[0])
    assert len(caught) == 1
    np.testing.assert_array_equal(found, ConvFeatures(edges, size=12).fit_transform(stripes[0]))


def test_a_missing_file_of_the_cache_is_computed_again(edges, stripes, tmp_path, monkeypatch):
    features = ConvFeatures(edges, size=12, cache=tmp_path / "cache").fit(stripes[0])
    found, real = features.transform(stripes[0]), code_cache.CodeCache.fill

    def fill(self, keys, into):
        for path in (tmp_path / "cache").rglob("*.safetensors"):
            path.unlink()  # by another process, after it was listed
        return real(self, keys, into)

    monkeypatch.setattr(code_cache.CodeCache, "fill", fill)
    np.testing.assert_array_equal(features.transform(stripes[0]), found)


def test_progress_counts_pictures(edges, stripes, tmp_path):
    features = ConvFeatures(edges, size=12, batch_size=16, cache=tmp_path / "cache").fit(stripes[0])
    seen = []
    with watched(seen.append):
        features.transform(stripes[0])
        features.transform(stripes[0])
    assert [(each.stage, each.done, each.total) for each in seen] == [
        *(("pictures", done, 40) for done in (0, 16, 32, 40)),
        ("pictures", 40, 40),
    ]


def test_only_a_batch_of_pictures_is_open_at_a_time(edges, stripes_folder, monkeypatch):
    from margrove.transfer.preparation import Preparation

    sizes, real = [], Preparation.pixels

    def pixels(self, pictures):
        sizes.append(len(pictures))
        return real(self, pictures)

    monkeypatch.setattr(Preparation, "pixels", pixels)
    ConvFeatures(edges, size=12, batch_size=6).fit_transform(stripes_folder)
    assert max(sizes) == 6
    assert sum(sizes) == 40


def test_it_is_copied_pickled_and_cloned(edges, stripes):
    features = ConvFeatures(edges, size=12).fit(stripes[0])
    found = features.transform(stripes[0])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(features)).transform(stripes[0]), found)
    np.testing.assert_array_equal(clone(features).fit_transform(stripes[0]), found)


def test_another_network_in_its_place_is_refused(edges, stripes, tmp_path):
    features = ConvFeatures(edges, size=12).fit(stripes[0])
    nodes = [helper.make_node("Flatten", ["pixels"], ["code"]), helper.make_node("MatMul", ["code", "w"], ["scores"])]
    other = save_network(tmp_path / "other.onnx", nodes, {"w": np.eye(432)})
    with pytest.raises(InputError, match=r"not the one that this model was fitted with.*edges\.onnx"):
        features.set_params(network=other).transform(stripes[0])
    assert features.set_params(network=edges).transform(stripes[0]).shape == (40, 2)


def test_an_svm_on_codes_is_certified(edges, stripes, stripes_folder):
    from margrove import read_picture_folder

    model = Pipeline([("codes", ConvFeatures(edges, size=12)), ("learn", SVC())]).fit(*stripes)
    assert certify(model, *stripes).holds
    folder = read_picture_folder(stripes_folder)
    assert model.score(folder, folder.labels) == 1.0


@pytest.mark.parametrize("thresholds", ["exact", "gaussian", "logistic"])
def test_a_tree_tests_maps_by_name(edges, stripes, thresholds):
    tree = DecisionTreeClassifier(thresholds=thresholds)
    model = Pipeline([("maps", ConvFeatures(edges, size=12, named=True)), ("tree", tree)]).fit(*stripes)
    assert "map_" in str(tree.rules())
    assert model.score(*stripes) == 1.0
    assert certify(model, *stripes).holds


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_set_output_gives_a_frame_with_the_names_of_the_maps(edges, stripes, kind, named):
    pytest.importorskip(kind)
    frame = ConvFeatures(edges, size=12, named=named).set_output(transform=kind).fit_transform(stripes[0])
    assert type(frame).__module__.split(".")[0] == kind
    assert list(frame.columns) == ["map_0", "map_1"]
    assert frame.shape == (40, 2)


def test_a_tree_takes_the_frame_of_named_maps(edges, stripes):
    pytest.importorskip("pandas")
    maps = ConvFeatures(edges, size=12, named=True).set_output(transform="pandas")
    model = make_pipeline(maps, DecisionTreeClassifier(max_depth=1)).fit(*stripes)
    assert "map_" in str(model[-1].rules())
