"""On a GPU, where there is one: the same codes and the same learning as on the processor."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
if not torch.cuda.is_available():
    pytest.skip("no GPU that torch can use", allow_module_level=True)
from tests.transfer.small_network import Small  # noqa: E402

from margrove import ConvFeatures, FineTuned, certify  # noqa: E402


@pytest.mark.parametrize(("precision", "within"), [("float32", 1e-3), ("bfloat16", 3e-2)])
@pytest.mark.parametrize("device", ["cuda", "auto"])
def test_codes_are_those_of_the_processor(stripes, device, precision, within):
    pictures = stripes[0]
    wanted = ConvFeatures(Small(), size=12).fit_transform(pictures)
    found = ConvFeatures(Small(), size=12, device=device, precision=precision, batch_size=7).fit_transform(pictures)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, wanted, atol=within * np.abs(wanted).max())


@pytest.mark.parametrize("loss", ["softmax", "hinge"])
def test_fine_tuning_learns_and_its_loss_is_found_again(stripes, loss):
    settings = {"size": 12, "epochs": 4, "learning_rate": 0.05, "body_rate": 0.5, "batch_size": 8, "random_state": 0}
    model = FineTuned(Small(), loss=loss, device="cuda", **settings).fit(*stripes)
    assert model.score(*stripes) == 1.0
    assert certify(model, *stripes).holds
