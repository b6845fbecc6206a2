"""Fine-tuning: frozen layers stay, trained ones learn, and an interrupted fit resumes to the same result."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
from tests.transfer.small_network import Small  # noqa: E402
from torch import nn  # noqa: E402

from margrove import Checkpoint, FineTuned, Status, certify  # noqa: E402
from margrove.errors import ConvergenceWarning, InputError, ParameterError  # noqa: E402
from margrove.run.progress import watched  # noqa: E402
from margrove.transfer.certificate import mean_loss  # noqa: E402
from margrove.transfer.fine_tuning import Tuner, loss_of  # noqa: E402

torch.set_num_threads(1)  # small networks, and cores that tests share: threads would wait for each other


def tuned(**parameters):
    usual = {"size": 12, "epochs": 4, "learning_rate": 0.05, "body_rate": 0.5, "batch_size": 8, "random_state": 0}
    return FineTuned(**{"network": Small(), **usual, **parameters})


@pytest.mark.parametrize("loss", ["softmax", "hinge"])
def test_it_learns(stripes, loss):
    model = tuned(loss=loss).fit(*stripes)
    assert model.score(*stripes) == 1.0
    assert model.course_[-1]["loss"] < model.course_[0]["loss"]
    assert certify(model, *stripes).holds
    assert model.certificate_.holds is None  # its own word
    assert hasattr(model, "predict_proba") == (loss == "softmax")


def test_several_classes_and_their_probabilities(stripes):
    pictures, y = stripes
    y = np.where(np.arange(len(y)) % 4 == 0, "dark", y)
    pictures = np.where((y == "dark")[:, None, None, None], pictures // 8, pictures)
    model = tuned(epochs=8).fit(pictures, y)
    p = model.predict_proba(pictures)
    assert p.shape == (40, 3)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert (model.classes_[p.argmax(axis=1)] == model.predict(pictures)).all()
    assert model.score(pictures, y) > 0.9


def test_changed_weights_are_found(stripes):
    model = tuned().fit(*stripes)
    model.weights_["classifier.weight"] = -model.weights_["classifier.weight"]
    assert not certify(pickle.loads(pickle.dumps(model)), *stripes).holds


@pytest.mark.parametrize(("n_blocks", "frozen"), [(0, ["blocks.0", "blocks.1"]), (2, ["blocks.0"]), (None, [])])
def test_only_the_last_blocks_are_trained(stripes, n_blocks, frozen):
    # Each inner Sequential is opened: its convolution and its normalisation are blocks.
    before = Small().state_dict()
    model = tuned(n_blocks=n_blocks).fit(*stripes)
    for name, weight in before.items():
        if not name.startswith("classifier") and "num_batches" not in name:
            is_same = np.array_equal(model.weights_[name], weight.numpy())
            assert is_same == any(name.startswith(part) for part in frozen), name


def test_the_given_network_is_not_changed(stripes):
    net = Small()
    before = {name: each.clone() for name, each in net.state_dict().items()}
    FineTuned(net, size=12, epochs=1).fit(*stripes)
    assert all(torch.equal(each, before[name]) for name, each in net.state_dict().items())


def test_the_same_seed_gives_the_same_weights(stripes):
    first, second, other = (tuned(random_state=seed).fit(*stripes) for seed in (3, 3, 4))
    same = [np.array_equal(first.weights_[name], second.weights_[name]) for name in first.weights_]
    assert all(same)
    assert not np.array_equal(first.weights_["classifier.weight"], other.weights_["classifier.weight"])


class StopAt:
    """Ctrl-C in the middle of an epoch."""

    def __init__(self, done):
        self.done = done

    def __call__(self, progress):
        if progress.done > self.done:
            raise KeyboardInterrupt


@pytest.mark.parametrize("early_stopping", [True, False])
def test_an_interrupted_fit_resumes_and_ends_with_the_same_weights(stripes, tmp_path, early_stopping):
    given = {"early_stopping": early_stopping, "patience": 9}
    whole = tuned(**given).fit(*stripes)
    path = tmp_path / "tuning.checkpoint"
    model = tuned(**given, checkpoint=Checkpoint(path, interval=0))
    with watched(StopAt(2.2)):
        model.fit(*stripes)
    assert (model.status_, model.n_iter_) == (Status.INTERRUPTED, 2)
    assert path.is_file()
    seen = []
    with watched(seen.append):
        model.fit(*stripes)
    assert seen[0].done > 2
    assert not path.exists()
    assert model.course_ == whole.course_
    for name, weight in whole.weights_.items():
        np.testing.assert_array_equal(model.weights_[name], weight)


def test_ctrl_c_writes_what_the_interval_would_have_held_back(stripes, tmp_path):
    path = tmp_path / "tuning.checkpoint"
    model = tuned(checkpoint=Checkpoint(path, interval=3600))
    with watched(StopAt(2.2)):
        model.fit(*stripes)
    seen = []
    with watched(seen.append):
        model.fit(*stripes)
    assert seen[0].done > 2


def test_the_checkpoint_of_other_pictures_is_refused(stripes, tmp_path):
    path = tmp_path / "tuning.checkpoint"
    with watched(StopAt(1.2)):
        tuned(checkpoint=Checkpoint(path, interval=0)).fit(*stripes)
    with pytest.raises(InputError, match="other data or other parameters"):
        tuned(checkpoint=path).fit(stripes[0][::-1], stripes[1][::-1])
    with pytest.raises(InputError, match="other data or other parameters"):
        tuned(checkpoint=path, learning_rate=0.01).fit(*stripes)


def test_early_stopping_keeps_the_best_weights(stripes):
    rng = np.random.default_rng(0)
    y = rng.permutation(stripes[1])  # nothing to learn: it soon gets worse on rows held out
    model = tuned(epochs=30, patience=2, validation_fraction=0.3).fit(stripes[0], y)
    assert model.status_ is Status.EARLY_STOPPED
    losses = [line["held_out_loss"] for line in model.course_]
    assert len(losses) == int(np.argmin(losses)) + 1 + 2
    assert model.certificate_.status == "early_stopped"


def test_a_time_limit_ends_between_epochs(stripes):
    model = tuned(time_limit=1e-9).fit(*stripes)
    assert (model.status_, model.n_iter_) == (Status.TIME_LIMIT, 0)


@pytest.mark.parametrize("loss", ["softmax", "hinge"])
def test_the_loss_in_torch_is_the_loss_in_numpy(rng, loss):
    scores, codes = rng.normal(size=(20, 4)), rng.integers(0, 4, 20)
    by_torch = float(loss_of(torch.from_numpy(scores), torch.from_numpy(codes), loss))
    assert by_torch == pytest.approx(mean_loss(scores, codes, loss), rel=1e-12)


def test_the_rate_falls_along_the_schedule(stripes, monkeypatch):
    rates = {}
    for schedule in ("cosine", "constant", "step"):
        seen = []
        real = torch.optim.AdamW.step

        def step(self, closure=None, seen=seen, real=real):
            seen.append([group["lr"] for group in self.param_groups])
            return real(self, closure)

        with monkeypatch.context() as patch:
            patch.setattr(torch.optim.AdamW, "step", step)
            tuned(schedule=schedule, early_stopping=False, epochs=5).fit(*stripes)
        rates[schedule] = np.array(seen)
    for schedule, found in rates.items():
        np.testing.assert_allclose(found[0], [0.05, 0.025], err_msg=schedule)
        np.testing.assert_allclose(found[:, 1], found[:, 0] / 2)
    assert (np.diff(rates["cosine"][:, 0]) < 0).all()
    assert (rates["constant"] == rates["constant"][0]).all()
    np.testing.assert_allclose(np.unique(rates["step"][:, 0]), [0.0005, 0.005, 0.05])


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"loss": "l2"}, "loss is 'l2'"),
        ({"schedule": "linear"}, "schedule is 'linear'"),
        ({"n_blocks": 7}, "the network has 4"),
        ({"n_blocks": -1}, "n_blocks is -1"),
        ({"epochs": 0}, "epochs is 0"),
        ({"learning_rate": 0}, "learning_rate is 0"),
        ({"validation_fraction": 1}, "validation_fraction is 1"),
    ],
)
def test_a_wrong_parameter_is_reported(stripes, parameters, words):
    with pytest.raises(ParameterError, match=words):
        tuned(**parameters).fit(*stripes)


def test_unusable_training_data_is_refused(stripes, edges):
    pictures, y = stripes
    with pytest.raises(InputError, match="40 pictures and y has the shape"):
        tuned().fit(pictures, y[:-1])
    with pytest.raises(InputError, match="y has one class, 'stand'"):
        tuned().fit(pictures[:20], y[:20])
    with pytest.raises(InputError, match="early_stopping=False"):
        tuned().fit(pictures[:21], y[:21])
    assert tuned(early_stopping=False, epochs=1).fit(pictures[:21], y[:21]).n_iter_ == 1
    with pytest.raises(ParameterError, match="an ONNX file cannot be trained"):
        FineTuned(edges).fit(pictures, y)


def test_a_copy_predicts_the_same(stripes):
    model = tuned().fit(*stripes)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(stripes[0]), model.decision_function(stripes[0]))


@pytest.mark.parametrize("affine", [True, False])
def test_what_is_frozen_stays_to_the_bit(stripes, affine):
    net = Small(affine=affine)
    model = tuned(network=net, n_blocks=0).fit(*stripes)
    for name, weight in net.state_dict().items():
        if not name.startswith("classifier"):
            np.testing.assert_array_equal(model.weights_[name], weight.numpy(), err_msg=name)


@pytest.mark.parametrize("end", [nn.Softmax(1), nn.Sigmoid(), nn.ReLU()], ids=repr)
def test_a_network_with_a_layer_after_its_scores_is_refused(stripes, end):
    with pytest.raises(InputError, match="something follows it, such as a softmax"):
        tuned(network=Small(end=end)).fit(*stripes)


def test_a_log_softmax_at_the_end_changes_no_training(stripes):
    plain, ended = (tuned(network=Small(end=end), loss="hinge").fit(*stripes) for end in (None, nn.LogSoftmax(1)))
    np.testing.assert_allclose(ended.decision_function(stripes[0]), plain.decision_function(stripes[0]), atol=1e-3)


class Gated(nn.Module):
    """Linear layers that weigh channels, and a convolution as the classifier."""

    def __init__(self):
        super().__init__()
        self.conv, self.gate, self.head = nn.Conv2d(3, 6, 3), nn.Linear(6, 6), nn.Conv2d(6, 4, 1)

    def forward(self, x):
        x = self.conv(x)
        return self.head(x * self.gate(x.mean(dim=(2, 3))).sigmoid()[:, :, None, None]).mean(dim=(2, 3))


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.dense = nn.Conv2d(3, 6, 3), nn.Linear(6, 6)

    def forward(self, x):
        return self.dense(self.dense(self.conv(x).mean(dim=(2, 3))))


@pytest.mark.parametrize(
    ("network", "words"),
    [
        (Gated(), "no linear layer to replace"),
        (Twice(), "last linear layer more than once"),
        (Small(end=lambda z: [z]), "something follows it"),
    ],
    ids=["gated", "twice", "list"],
)
def test_a_network_without_a_separate_classifier_is_refused(stripes, network, words):
    with pytest.raises(InputError, match=words):
        tuned(network=network).fit(*stripes)


def test_a_network_of_nan_is_refused(stripes):
    net = Small()
    with torch.no_grad():
        net.blocks[0][0].weight[0, 0, 0, 0] = float("nan")
    with pytest.raises(InputError, match="NaN or infinity"):
        tuned(network=net).fit(*stripes)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_networks_of_other_types_are_trained_in_float32(stripes, dtype):
    model = tuned(network=Small().to(dtype)).fit(*stripes)
    assert {each.dtype for name, each in model.weights_.items() if "num_batches" not in name} == {np.dtype("float32")}
    assert model.score(*stripes) == 1.0


@pytest.mark.parametrize("early_stopping", [True, False])
def test_weights_from_before_an_overflow_are_kept(stripes, monkeypatch, early_stopping):
    real = Tuner._epoch

    def epoch(self, training, number, *given):
        loss = real(self, training, number, *given)
        if number == 2:  # the last step has overflowed, and no loss has seen it yet
            with torch.no_grad():
                self.module.classifier.bias[0] = float("inf")
        return loss

    monkeypatch.setattr(Tuner, "_epoch", epoch)
    with pytest.warns(ConvergenceWarning, match=r"'nonfinite' in epoch 3.*learning_rate"):
        model = tuned(early_stopping=early_stopping).fit(*stripes)
    assert (model.status_, model.n_iter_) == (Status.NONFINITE, 2)
    assert np.isfinite(model.training_loss_)
    assert all(np.isfinite(each).all() for each in model.weights_.values())


def test_a_fit_without_a_seed_or_with_another_time_limit_resumes_from_a_checkpoint(stripes, tmp_path):
    path = tmp_path / "tuning.checkpoint"
    first = tuned(random_state=None, early_stopping=False, checkpoint=Checkpoint(path, interval=0))
    with watched(StopAt(2.2)):
        first.fit(*stripes)
    again = tuned(random_state=None, early_stopping=False, checkpoint=path, time_limit=3600).fit(*stripes)
    assert again.n_iter_ == 4
    assert again.course_[:2] == first.course_


def test_ctrl_c_after_the_last_epoch_loses_no_training(stripes, tmp_path, monkeypatch):
    path = tmp_path / "tuning.checkpoint"
    model = tuned(checkpoint=Checkpoint(path, interval=3600))
    with monkeypatch.context() as patch:

        def interrupted(self, pictures):
            raise KeyboardInterrupt

        patch.setattr(FineTuned, "_scores", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.fit(*stripes)
    seen = []
    with watched(seen.append):
        model.fit(*stripes)
    assert (model.n_iter_, seen) == (4, [])
    assert not path.exists()


def test_the_seed_of_the_program_is_not_touched(stripes):
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    model = tuned()
    torch.random.set_rng_state(before)
    model.fit(*stripes)
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (np.append(np.ones(39), np.nan), "y contains nan, first in row 39"),
        (None, "y is None"),
        (np.linspace(0, 1, 40), "continuous"),
    ],
    ids=["nan", "none", "continuous"],
)
def test_labels_that_are_not_classes_are_refused(stripes, y, words):
    with pytest.raises(ValueError, match=words):
        tuned().fit(stripes[0], y)


def test_pictures_of_a_wrong_size_are_refused(stripes):
    with pytest.raises(InputError, match=r"pictures of 3 × 3 pixels.*size=…"):
        tuned(size=3).fit(*stripes)
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.BatchNorm1d(4), nn.Linear(4, 2))
    with pytest.raises(InputError, match=r"more than 1 value per channel.*batch_size=…"):
        tuned(network=net, batch_size=1).fit(*stripes)


def test_frozen_blocks_keep_their_running_means(stripes):
    tuner = Tuner(Small(), 2, tuned().fit(*stripes).preparation_, 0, "cpu")
    assert not any(each.requires_grad for each in tuner.module.blocks.parameters())
    assert all(each.requires_grad for each in tuner.module.classifier.parameters())
