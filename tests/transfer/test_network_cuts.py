"""Where a module is cut: its codes are the input of its classifier, however it is written."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
from tests.transfer.small_network import Small  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from margrove import ConvFeatures  # noqa: E402
from margrove.errors import InputError, ParameterError  # noqa: E402
from margrove.transfer.networks import codes_digest  # noqa: E402
from margrove.transfer.pictures import as_pictures  # noqa: E402
from margrove.transfer.torch_network import digest_of  # noqa: E402

torch.set_num_threads(1)  # small networks, and cores that tests share: threads would wait for each other


def given_to_the_classifier(net, features, pictures):
    """By a plain hook: what the last call of a linear layer is given, ReLU'd."""
    pixels = features.preparation_.pixels(as_pictures(pictures))
    z = (pixels / 255 - features.preparation_.mean) / features.preparation_.std
    seen = []
    handles = [
        each.register_forward_pre_hook(lambda _, given: seen.append(given[0].clone()))
        for each in net.modules()
        if isinstance(each, nn.Linear)
    ]
    with torch.no_grad():
        net.eval()(torch.from_numpy(z.transpose(0, 3, 1, 2)).float())
    for handle in handles:
        handle.remove()
    return seen[-1].relu().numpy()


class Odd(nn.Module):
    """Three convolutions and two linear layers, used as the test says."""

    def __init__(self, use, k=1.0):
        torch.manual_seed(0)
        super().__init__()
        self.one, self.two, self.relu = nn.Conv2d(3, 6, 3), nn.Conv2d(6, 6, 3), nn.ReLU()
        self.dense, self.use, self.k = nn.Linear(6, 6), use, k

    def forward(self, x):
        return self.use(self, x)


def relu_used_twice(net, x):
    return net.dense(net.relu(net.two(net.relu(net.one(x)))).mean(dim=(2, 3)))


def changed_in_place(net, x):
    return net.dense(net.one(x).sigmoid_().mean(dim=(2, 3)))


def classifier_used_twice(net, x):
    return net.dense(net.dense(net.one(x).amax(dim=(2, 3))))


def nothing_fires(net, x):
    return net.dense(functional.relu(net.one(x) - 1e6).amax(dim=(2, 3)))


def gate(net, x):
    x = net.one(x)
    return net.two(x * net.dense(x.mean(dim=(2, 3))).sigmoid()[:, :, None, None])


@pytest.mark.parametrize("use", [relu_used_twice, changed_in_place, classifier_used_twice, nothing_fires])
def test_codes_are_the_input_of_the_classifier(stripes, use):
    net = Odd(use)
    features = ConvFeatures(net, size=12).fit(stripes[0])
    wanted = given_to_the_classifier(net, features, stripes[0])
    np.testing.assert_allclose(features.transform(stripes[0]), wanted, atol=1e-5)


def test_a_linear_layer_before_a_convolution_is_not_a_classifier(stripes):
    with pytest.raises(InputError, match="no linear layer, before which it is usually cut"):
        ConvFeatures(Odd(gate), size=12).fit(stripes[0])


def test_a_named_layer_with_several_outputs_is_refused(stripes):
    with pytest.raises(ParameterError, match="layer is 'relu'; the network uses it more than once"):
        ConvFeatures(Odd(relu_used_twice), size=12, layer="relu").fit(stripes[0])


def test_bfloat16_is_cut_where_float32_is(stripes):
    full, half = (ConvFeatures(Small(), size=12, precision=each).fit(stripes[0]) for each in ("float32", "bfloat16"))
    assert (half.layer_, half.has_maps) == (full.layer_, True)


def test_a_picture_of_a_wrong_size_is_refused(stripes):
    with pytest.raises(InputError, match=r"pictures of 3 × 3 pixels and 3 channels.*size=…"):
        ConvFeatures(Small(), size=3).fit(stripes[0])


def test_codes_that_are_not_finite_are_refused(stripes):
    net = Small()
    with torch.no_grad():
        net.blocks[1][0].weight[0, 0, 0, 0] = float("nan")
    with pytest.raises(InputError, match="picture 0: the network Small returns NaN or infinity for this picture"):
        ConvFeatures(net, size=12).fit_transform(stripes[0])


def test_a_module_that_cannot_be_copied_is_refused(stripes):
    net = Small()
    net.last = net(torch.zeros(1, 3, 12, 12))  # a tensor with a history
    with pytest.raises(InputError, match="cannot be copied"):
        ConvFeatures(net, size=12).fit(stripes[0])


def scaled(net, x):
    return net.dense(functional.relu(net.k * net.one(x)).mean(dim=(2, 3)))


def scaled_otherwise(net, x):
    return net.dense(functional.relu(3 * net.k * net.one(x)).mean(dim=(2, 3)))


def test_the_digest_covers_settings_and_hidden_buffers():
    hidden = [Odd(scaled), Odd(scaled)]
    for value, net in enumerate(hidden):
        net.register_buffer("shift", torch.tensor(float(value)), persistent=False)
    nets = [Odd(scaled), Odd(scaled, k=2.0), Odd(scaled_otherwise), *hidden]
    assert len({digest_of(net) for net in nets}) == len(nets)
    assert digest_of(Odd(scaled).eval()) == digest_of(Odd(scaled).train())


def test_the_cache_distinguishes_the_code_of_a_module(stripes, tmp_path):
    class Edited(nn.Module):
        factor = 2.0  # of the class: no digest of an instance sees it

        def __init__(self):
            torch.manual_seed(0)
            super().__init__()
            self.conv, self.dense = nn.Conv2d(3, 4, 3), nn.Linear(4, 2)

        def forward(self, x):
            return self.dense(functional.relu(self.factor * self.conv(x)).mean(dim=(2, 3)))

    before = ConvFeatures(Edited(), size=12, cache=tmp_path).fit_transform(stripes[0])
    Edited.factor = 4.0
    after = ConvFeatures(Edited(), size=12, cache=tmp_path).fit_transform(stripes[0])
    np.testing.assert_allclose(after, 2 * before, rtol=1e-5)


def test_a_changed_parameter_is_applied_or_refused(stripes, tmp_path):
    given = {"network": Small(), "size": 12, "cache": tmp_path}
    features = ConvFeatures(**given, layer="blocks.1").fit(stripes[0])
    features.pooling = "max"
    wanted = ConvFeatures(**{**given, "cache": None}, layer="blocks.1", pooling="max").fit_transform(stripes[0])
    np.testing.assert_array_equal(features.transform(stripes[0]), wanted)
    with pytest.raises(ParameterError, match=r"layer is 'blocks.0'.*Fit it again"):
        features.set_params(layer="blocks.0").transform(stripes[0])


def test_the_digest_of_codes_changes_with_the_codes_but_not_with_their_last_digits(rng):
    codes = rng.exponential(size=(2, 300)).astype(np.float32)
    assert codes_digest(codes * np.float32(1 + 1e-7)) == codes_digest(codes)
    changed = codes.copy()
    changed[:, :6] = 0
    others = [changed, 1.05 * codes, 0 * codes, np.full_like(codes, np.nan)]
    assert len({codes_digest(each) for each in (codes, *others)}) == 5
