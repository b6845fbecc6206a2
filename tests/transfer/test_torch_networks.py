"""Modules of torch: cut where the classifier begins, without touching them; the same codes as from their ONNX files."""

from __future__ import annotations

import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
from torch import nn  # noqa: E402

from margrove import ConvFeatures  # noqa: E402
from margrove.errors import EngineError, InputError, ParameterError  # noqa: E402
from margrove.transfer.pictures import as_pictures  # noqa: E402
from margrove.transfer.torch_network import digest_of, load_weights  # noqa: E402

torch.set_num_threads(1)  # small networks, and cores that tests share: threads would wait for each other


class Small(nn.Module):
    """Two convolutions, pooling, a classifier with a hidden layer of its own if asked."""

    def __init__(self, channels=3, seed=0):
        torch.manual_seed(seed)
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(channels, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
        self.second = nn.Sequential(nn.Conv2d(4, 6, 3, stride=2), nn.ReLU())
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.drop = nn.Dropout(0.5)
        self.classifier = nn.Linear(6, 5)

    def forward(self, x):
        return self.classifier(self.drop(self.pool(self.second(self.first(x))).flatten(1)))


def seen_by(features, pictures):
    """What reaches the network, by the formula."""
    pixels = features.preparation_.pixels(as_pictures(pictures))
    z = (pixels / 255 - features.preparation_.mean) / features.preparation_.std
    return torch.from_numpy(z.transpose(0, 3, 1, 2)).float()


def test_codes_are_the_input_of_the_classifier(stripes):
    net = Small().train()
    before = digest_of(net)
    features = ConvFeatures(net, size=16, batch_size=9).fit(stripes[0])
    assert features.layer_ == "second"  # its maps, pooled here
    found = features.transform(stripes[0])
    assert net.training
    assert digest_of(net) == before
    net.eval()
    with torch.no_grad():
        x = seen_by(features, stripes[0])
        maps = net.second(net.first(x))
    np.testing.assert_allclose(found, maps.mean(dim=(2, 3)), atol=1e-5)
    np.testing.assert_allclose(features.maps(stripes[0], [2, 0]), maps[:, [2, 0]], atol=1e-5)


def test_a_vector_that_is_not_a_mean_of_maps_is_used_as_the_code(stripes):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 2, 3), nn.Flatten(), nn.Linear(2 * 36, 7), nn.Linear(7, 3))
    features = ConvFeatures(net, size=8).fit(stripes[0])
    assert features.layer_ == "what 3 is given"
    with torch.no_grad():
        wanted = net[:3](seen_by(features, stripes[0])).relu()
    np.testing.assert_allclose(features.transform(stripes[0]), wanted, atol=1e-5)


def test_a_named_layer_ends_the_run_there(stripes):
    net = Small()
    net.classifier = nn.Linear(99, 1)  # it would fail
    features = ConvFeatures(net, size=16, layer="first", pooling="max").fit(stripes[0])
    with torch.no_grad():
        wanted = net.eval().first(seen_by(features, stripes[0])).amax(dim=(2, 3))
    np.testing.assert_allclose(features.transform(stripes[0]), wanted, atol=1e-5)
    with pytest.raises(ParameterError, match=r"layer is 'third'; the network has first, first\.0"):
        ConvFeatures(Small(), layer="third").fit(stripes[0])


def test_grey_networks_see_grey(stripes):
    features = ConvFeatures(Small(channels=1), size=12).fit(stripes[0])
    assert features.preparation_.mode == "L"
    assert features.transform(stripes[0]).shape == (40, 6)


def test_a_network_without_a_linear_layer_needs_a_named_layer(stripes):
    net = nn.Sequential(nn.Conv2d(3, 2, 3))
    with pytest.raises(InputError, match="no linear layer"):
        ConvFeatures(net, size=8).fit(stripes[0])
    assert ConvFeatures(net, size=8, layer="0").fit_transform(stripes[0]).shape == (40, 2)


def test_bfloat16_is_close_to_but_different_from_float32(stripes):
    full = ConvFeatures(Small(), size=16).fit_transform(stripes[0])
    half = ConvFeatures(Small(), size=16, precision="bfloat16").fit_transform(stripes[0])
    assert half.dtype == np.float32
    assert 0 < np.abs(half - full).max() < 0.05 * np.abs(full).max()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_missing_gpu_is_reported(stripes):
    with pytest.raises(EngineError, match="Use device='cpu'"):
        ConvFeatures(Small(), device="cuda").fit(stripes[0])
    assert ConvFeatures(Small(), device="auto", size=8).fit_transform(stripes[0]).shape == (40, 6)


def test_the_onnx_file_of_a_module_gives_the_same_codes(stripes, tmp_path):
    net, path = Small().eval(), tmp_path / "small.onnx"
    axes = {"pixels": {0: "n"}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch would rather export another way, for which it needs one more package
        x = torch.zeros(1, 3, 16, 16)
        torch.onnx.export(net, (x,), str(path), input_names=["pixels"], dynamo=False, dynamic_axes=axes)
    by_file = ConvFeatures(path).fit(stripes[0])
    assert by_file.preparation_.size == 16
    by_module = ConvFeatures(net, size=16).fit(stripes[0])
    np.testing.assert_allclose(by_file.transform(stripes[0]), by_module.transform(stripes[0]), atol=1e-5)
    np.testing.assert_allclose(by_file.maps(stripes[0], [3]), by_module.maps(stripes[0], [3]), atol=1e-5)


def test_weights_come_from_a_file_of_weights_alone(stripes, tmp_path):
    import safetensors.torch

    net = Small(seed=1)
    wanted = ConvFeatures(net, size=12).fit_transform(stripes[0])
    torch.save(net.state_dict(), tmp_path / "w.pth")
    safetensors.torch.save_file(net.state_dict(), tmp_path / "w.safetensors")
    for name in ("w.pth", "w.safetensors"):
        features = ConvFeatures(Small(seed=2), size=12, weights=tmp_path / name)
        np.testing.assert_array_equal(features.fit_transform(stripes[0]), wanted)
    torch.save(Small(channels=1).state_dict(), tmp_path / "other.pth")
    with pytest.raises(InputError, match=r"other\.pth: these are weights of another network"):
        ConvFeatures(Small(), weights=tmp_path / "other.pth").fit(stripes[0])


def test_a_file_of_weights_cannot_run_code(stripes, tmp_path):
    class Evil:
        def __reduce__(self):
            return (open, (str(tmp_path / "ran"), "w"))

    torch.save({"w": Evil()}, tmp_path / "evil.pth")
    with pytest.raises(InputError, match="no weights can be read from it"):
        ConvFeatures(Small(), weights=tmp_path / "evil.pth").fit(stripes[0])
    assert not (tmp_path / "ran").exists()
    torch.save([1, 2], tmp_path / "list.pth")
    with pytest.raises(InputError, match="holds a list"):
        ConvFeatures(Small(), weights=tmp_path / "list.pth").fit(stripes[0])


def test_a_damaged_file_of_weights_is_refused(tmp_path, rng):
    torch.save(Small().state_dict(), tmp_path / "w.pth")
    whole = (tmp_path / "w.pth").read_bytes()
    n_told = 0
    for _ in range(60):
        content = bytearray(whole)
        for place in rng.integers(0, len(content), 20):
            content[place] ^= int(rng.integers(1, 256))
        (tmp_path / "w.pth").write_bytes(content)
        try:  # where numbers alone are changed nobody can tell
            load_weights(Small(), tmp_path / "w.pth")
        except InputError:
            n_told += 1
    assert n_told > 20
    torch.save({1: torch.zeros(2)}, tmp_path / "w.pth")
    with pytest.raises(InputError, match="holds a dict, not weights by name"):
        load_weights(Small(), tmp_path / "w.pth")


def test_the_digest_covers_weights_and_structure():
    assert digest_of(Small(seed=1)) == digest_of(Small(seed=1))
    other_stride = Small(seed=1)
    other_stride.second[0].stride = (1, 1)
    nudged = Small(seed=1)
    with torch.no_grad():
        nudged.classifier.bias[0] += 1e-6
    assert len({digest_of(net) for net in (Small(seed=1), Small(seed=2), other_stride, nudged)}) == 4


def fake_library(monkeypatch, name, **content):
    monkeypatch.setitem(sys.modules, name, SimpleNamespace(**content))


def test_networks_of_torchvision_and_timm_are_found_by_name(stripes, tmp_path, monkeypatch):
    asked = []
    transforms = SimpleNamespace(crop_size=[10], resize_size=[20], mean=[0.1, 0.2, 0.3], std=[0.4, 0.5, 0.6])

    def get_model(name, weights):
        asked.append((name, weights))
        if name != "small":
            raise ValueError(name)
        return Small()

    models = SimpleNamespace(
        get_model=get_model,
        get_model_weights=lambda name: SimpleNamespace(DEFAULT=SimpleNamespace(transforms=lambda: transforms)),
    )
    fake_library(monkeypatch, "torchvision", models=models)
    features = ConvFeatures("torchvision:small", download=True).fit(stripes[0])
    seen = features.preparation_
    assert (seen.size, seen.crop, seen.mean, seen.std) == (10, 0.5, (0.1, 0.2, 0.3), (0.4, 0.5, 0.6))
    torch.save(Small(seed=4).state_dict(), tmp_path / "w.pth")
    own = ConvFeatures("torchvision:small", weights=tmp_path / "w.pth").fit(stripes[0])
    assert asked == [("small", "DEFAULT"), ("small", None)]
    assert own.network_digest_ == digest_of(Small(seed=4))
    with pytest.raises(ParameterError, match="torchvision has no such network"):
        ConvFeatures("torchvision:large", download=True).fit(stripes[0])
    data = SimpleNamespace(resolve_model_data_config=lambda net: {"input_size": (3, 14, 14), "crop_pct": 0.9})
    fake_library(monkeypatch, "timm", create_model=lambda name, pretrained: Small(), data=data)
    seen = ConvFeatures("timm:small", download=True).fit(stripes[0]).preparation_
    assert (seen.size, seen.crop) == (14, 0.9)
