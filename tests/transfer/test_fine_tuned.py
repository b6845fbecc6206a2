"""Fine-tuning: what is frozen stays, what is trained learns, what is broken off goes on as if it had not been."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
from torch import nn  # noqa: E402

from margrove import Checkpoint, FineTuned, Status, certify  # noqa: E402
from margrove.errors import InputError, ParameterError  # noqa: E402
from margrove.progress import watched  # noqa: E402
from margrove.transfer.certificate import mean_loss  # noqa: E402
from margrove.transfer.fine_tuning import Tuner, loss_of  # noqa: E402

torch.set_num_threads(1)  # small networks, and cores that tests share: threads would wait for each other


class Small(nn.Module):
    def __init__(self):
        torch.manual_seed(0)
        super().__init__()
        self.blocks = nn.Sequential(
            nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()),
            nn.Sequential(nn.Conv2d(4, 8, 3), nn.BatchNorm2d(8), nn.ReLU()),
        )
        self.dropout = nn.Dropout(0.2)
        self.classifier = nn.Linear(8, 5)

    def forward(self, x):
        return self.classifier(self.dropout(self.blocks(x).mean(dim=(2, 3))))


def tuned(**parameters):
    usual = {"size": 12, "epochs": 4, "learning_rate": 0.05, "body_rate": 0.5, "batch_size": 8, "random_state": 0}
    return FineTuned(Small(), **{**usual, **parameters})


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


def test_changed_weights_are_found_out(stripes):
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


def test_the_owners_network_stays_as_it_is(stripes):
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
def test_a_fit_that_was_broken_off_goes_on_and_ends_the_same(stripes, tmp_path, early_stopping):
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
    assert len(losses) == int(np.argmin(losses)) + 1 + 3
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
def test_a_wrong_parameter_is_told(stripes, parameters, words):
    with pytest.raises(ParameterError, match=words):
        tuned(**parameters).fit(*stripes)


def test_what_cannot_be_learned_from_is_told(stripes, edges):
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


def test_frozen_blocks_keep_their_running_means(stripes):
    tuner = Tuner(Small(), 2, tuned().fit(*stripes).preparation_, 0, "cpu")
    assert not any(each.requires_grad for each in tuner.module.blocks.parameters())
    assert all(each.requires_grad for each in tuner.module.classifier.parameters())
