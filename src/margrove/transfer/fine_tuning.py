"""The training of `FineTuned` in torch: a new last layer, some blocks frozen, one pass over the pictures per epoch.

Blocks are the members of a network, in their order: `nn.Sequential` and `nn.ModuleList` are opened, every other member
with weights or running means is one block. Frozen blocks keep their weights and their running means.

Epoch e draws the order of the pictures, their mirroring and the dropout from (seed, e) alone, so that a run resumed
from a checkpoint ends with the same weights as an uninterrupted one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from margrove.errors import InputError, ParameterError
from margrove.run.checkpoint import Arrays, Record
from margrove.run.progress import Progress, report
from margrove.status import Status
from margrove.transfer.certificate import mean_loss
from margrove.transfer.networks import PROBE_TOLERANCE, Rows, ahead, parts_of, probe_pixels
from margrove.transfer.preparation import Preparation
from margrove.transfer.torch_network import OnDevice, calls_of, copied, last_linear, plain_errors, whole_floats

SCHEDULES: dict[str, Callable[[float], float]] = {  # the share of the rate after a share of the epochs
    "cosine": lambda share: (1 + math.cos(math.pi * share)) / 2,
    "constant": lambda share: 1.0,
    "step": lambda share: 1.0 if share < 0.5 else 0.1 if share < 0.8 else 0.01,
}
STAGE = "fine-tuning"  # of progress reports
_LINE = ("loss", "held_out_loss", "held_out_accuracy")  # of the course
_LEAST_BATCH = 2  # pictures: batch normalisation has no variance of one


@dataclass(frozen=True)
class Plan:
    """The parameters of a training."""

    loss: str
    epochs: int
    batch_size: int
    learning_rate: float
    body_rate: float
    weight_decay: float
    schedule: str
    patience: int | None  # None: no early stopping
    flip: bool
    seed: int
    time_limit: float | None
    precision: str


@dataclass(frozen=True)
class TuningData:
    """The data of a training, and its plan."""

    plan: Plan
    pixels_of: Callable[[Rows], NDArray[np.uint8]]
    codes: NDArray[np.intp]
    fit_rows: Rows
    held_out: Rows


@dataclass
class TuningCourse:
    """The state of a training: one line per epoch, and the best weights so far."""

    lines: list[dict[str, float]] = field(default_factory=list)
    best: Arrays = field(default_factory=dict)
    best_epoch: int = 0
    status: Status = Status.CONVERGED


class Tuner(OnDevice):
    """A copy of a network with a new last layer; the last ``n_blocks`` are trained beside it, all for None."""

    def __init__(
        self, module: nn.Module, n_classes: int, preparation: Preparation, n_blocks: int | None, device: str
    ) -> None:
        super().__init__(device, preparation)
        self.module = copied(module).to(self._device, torch.float32).to(memory_format=torch.channels_last)
        self._replace_classifier(n_classes, preparation)
        blocks = blocks_of(self.module, self._classifier)
        n_trained = len(blocks) if n_blocks is None else n_blocks
        if n_trained > len(blocks):
            raise ParameterError(f"n_blocks is {n_blocks}; the network has {len(blocks)} blocks. None trains all.")
        self._frozen, self._trained = blocks[: len(blocks) - n_trained], blocks[len(blocks) - n_trained :]
        self.module.requires_grad_(n_blocks is None)
        for block in (*self._trained, self._classifier):
            block.requires_grad_(True)

    def _replace_classifier(self, n_classes: int, preparation: Preparation) -> None:
        self.module.eval()
        calls, output = calls_of(self.module, self._input(probe_pixels(preparation)))
        last = last_linear(calls)
        if last is None:
            problem = "the network has no linear layer to replace"
            raise InputError(problem, cure="Use a network that ends in a linear layer.")
        place = calls[last].place
        if not torch.isfinite(calls[last].given).all():
            raise InputError("the network returns NaN or infinity for noise", cure="Check its weights, mean and std.")
        if sum(call.place is place for call in calls) > 1:
            raise InputError("the network uses its last linear layer more than once", cure="Use a separate one.")
        if not _is_shifted(output, calls[last].output):
            raise InputError(
                "the output is not that of the last linear layer: something follows it, such as a softmax",
                cure="Remove it: the loss has its own.",
            )
        name = next(name for name, each in self.module.named_modules() if each is place)
        # From zero: every class begins alike, and no random state is used.
        self._classifier = nn.utils.skip_init(nn.Linear, int(place.in_features), n_classes).to(self._device)
        nn.init.zeros_(self._classifier.weight)
        nn.init.zeros_(self._classifier.bias)
        parent, _, own = name.rpartition(".")
        setattr(self.module.get_submodule(parent), own, self._classifier)

    def scores(self, pixels: NDArray[np.uint8], precision: str = "float32") -> NDArray[np.float64]:
        """Return the scores of the classes, (n, n_classes)."""
        self.module.eval()
        with torch.inference_mode(), self._in(precision), whole_floats(self._device), plain_errors(pixels.shape):
            return np.asarray(self.module(self._input(pixels)).float().cpu().numpy(), np.float64)

    def _in(self, precision: str) -> Any:
        return torch.autocast(self._device.type, torch.bfloat16, enabled=precision == "bfloat16")

    def weights(self) -> Arrays:
        """Return a copy of all weights, by name."""
        return {name: each.detach().cpu().numpy().copy() for name, each in self.module.state_dict().items()}

    def load(self, weights: Arrays) -> None:
        """Replace the weights."""
        try:
            self.module.load_state_dict({name: torch.from_numpy(np.array(each)) for name, each in weights.items()})
        except RuntimeError as error:
            raise InputError("these are weights of another network", cure="Use the network they belong to.") from error

    def train(self, training: TuningData, record: Record | None, left: Arrays | None = None) -> TuningCourse:
        """Train epoch after epoch, until the last one, early stopping, the time limit or Ctrl-C.

        The best weights are kept if rows are held out, else the last ones; if numbers overflow, those of the last epoch
        in which none did. ``left`` is the earlier content of ``record``.
        """
        plan, optimiser, course = training.plan, self._optimiser(training.plan), TuningCourse()
        waiting: Arrays | None = None  # not yet in the checkpoint
        if record is not None and left is not None:
            self._resume(record, left, optimiser, course)
        finite = self.weights()
        started = time.monotonic()
        try:
            for epoch in range(len(course.lines), plan.epochs):
                if plan.patience is not None and epoch - course.best_epoch >= plan.patience:
                    course.status = Status.EARLY_STOPPED
                    break
                if plan.time_limit is not None and time.monotonic() - started >= plan.time_limit:
                    course.status = Status.TIME_LIMIT
                    break
                loss = self._epoch(training, epoch, optimiser)
                weights = self.weights()
                if not math.isfinite(loss) or not all(np.isfinite(each).all() for each in weights.values()):
                    course.status = Status.NONFINITE
                    self.load(finite)
                    break
                finite = weights
                self._judge(training, course, loss)
                if record is not None:
                    waiting = self._kept(plan, optimiser, course)
                    if record.is_due:
                        record.write(waiting)
                        waiting = None
        except KeyboardInterrupt:
            course.status = Status.INTERRUPTED
        if course.best:
            self.load(course.best)
        if record is not None and waiting is not None:
            record.write(waiting)  # the end of the last whole epoch; a later part of an epoch is repeated
        return course

    def _epoch(self, training: TuningData, epoch: int, optimiser: torch.optim.Optimizer) -> float:
        """Make one pass over the pictures; return the mean loss of its batches."""
        plan, rows = training.plan, training.fit_rows
        rng = np.random.default_rng([plan.seed, epoch])
        parts = parts_of(rng.permutation(rows), plan.batch_size, least=_LEAST_BATCH)
        self.module.train()
        for block in self._frozen:
            block.eval()
        total, done = 0.0, 0
        devices = [self._device] if self._device.type == "cuda" else []
        with torch.random.fork_rng(devices), ahead(training.pixels_of, parts) as batches:
            torch.manual_seed(int(rng.integers(2**31)))
            for number, (part, pixels) in enumerate(batches):
                share = (epoch + number / len(parts)) / plan.epochs
                for group in optimiser.param_groups:
                    group["lr"] = group["rate"] * SCHEDULES[plan.schedule](share)
                if plan.flip:
                    pixels = np.where(rng.random(len(part))[:, None, None, None] < 0.5, pixels, pixels[:, :, ::-1])
                cure = "Change size=… or batch_size=…."
                with self._in(plan.precision), plain_errors(pixels.shape, cure):
                    scores = self.module(self._input(pixels))
                if not isinstance(scores, torch.Tensor):
                    problem = "in training mode the network returns more than the scores of the classes"
                    raise InputError(problem, cure="Turn its other outputs off, for example by aux_logits=False.")
                loss = loss_of(scores.float(), torch.from_numpy(training.codes[part]).to(self._device), plan.loss)
                optimiser.zero_grad(set_to_none=True)
                loss.backward()
                optimiser.step()
                total, done = total + float(loss.detach()) * len(part), done + len(part)
                report(Progress(STAGE, epoch + done / len(rows), plan.epochs, total / done, "loss"))
        return total / done

    def _judge(self, training: TuningData, course: TuningCourse, loss: float) -> None:
        """Add a line for the epoch; keep the weights if they are the best on rows held out."""
        plan, held_out, line = training.plan, training.held_out, {"loss": loss}
        if len(held_out):
            with ahead(training.pixels_of, parts_of(held_out, plan.batch_size)) as batches:
                scores = np.concatenate([self.scores(pixels, plan.precision) for _, pixels in batches])
            codes = training.codes[held_out]
            line["held_out_loss"] = mean_loss(scores, codes, plan.loss)
            line["held_out_accuracy"] = float((scores.argmax(axis=1) == codes).mean())
        course.lines.append(line)
        so_far = [each.get("held_out_loss", -math.inf) for each in course.lines]
        if len(held_out) and so_far[-1] <= min(so_far):
            course.best, course.best_epoch = self.weights(), len(course.lines)

    def _optimiser(self, plan: Plan) -> torch.optim.Optimizer:
        """Return AdamW: the new layer at the full rate, the body at a share of it."""
        head = list(self._classifier.parameters())
        body = [each for each in self.module.parameters() if each.requires_grad and all(each is not h for h in head)]
        groups = [{"params": head, "rate": plan.learning_rate}]
        if body:
            groups.append({"params": body, "rate": plan.learning_rate * plan.body_rate})
        return torch.optim.AdamW(groups, lr=plan.learning_rate, weight_decay=plan.weight_decay)

    def _kept(self, plan: Plan, optimiser: torch.optim.Optimizer, course: TuningCourse) -> Arrays:
        """Return the state that the next epoch needs, as arrays."""
        arrays: Arrays = {f"weight.{name}": each for name, each in self.weights().items()}
        arrays |= {f"best.{name}": each for name, each in course.best.items()}
        for number, state in optimiser.state_dict()["state"].items():
            for key, value in state.items():
                arrays[f"optimiser.{number}.{key}"] = value.detach().cpu().numpy().copy()
        arrays["course"] = np.array([[line.get(name, math.nan) for name in _LINE] for line in course.lines])
        arrays["best_epoch"], arrays["seed"] = np.array(course.best_epoch), np.array(plan.seed)
        return arrays

    def _resume(self, record: Record, arrays: Arrays, optimiser: torch.optim.Optimizer, course: TuningCourse) -> None:
        """Restore the state that `_kept` returned."""
        parts: dict[str, Arrays] = {"weight": {}, "best": {}, "optimiser": {}}
        for name, array in arrays.items():
            kind, _, rest = name.partition(".")
            if kind in parts:
                parts[kind][rest] = array
        try:
            self.load(parts["weight"])
            content = optimiser.state_dict()
            content["state"] = {}
            for name, array in parts["optimiser"].items():
                number, key = name.split(".")
                content["state"].setdefault(int(number), {})[key] = torch.from_numpy(array)
            optimiser.load_state_dict(content)
            lines = [dict(zip(_LINE, row, strict=True)) for row in arrays["course"].tolist()]
            course.best_epoch = int(arrays["best_epoch"])
        except (InputError, ValueError, KeyError, TypeError) as error:
            raise record.damaged() from error
        course.lines = [{name: value for name, value in line.items() if not math.isnan(value)} for line in lines]
        course.best = parts["best"]


def loss_of(scores: torch.Tensor, codes: torch.Tensor, loss: str) -> torch.Tensor:
    """Return the mean loss of a batch: `margrove.transfer.certificate.mean_loss` in torch."""
    if loss == "softmax":
        return functional.cross_entropy(scores, codes)
    own = scores.gather(1, codes[:, None])
    others = scores.scatter(1, codes[:, None], -math.inf)
    return functional.relu(1 + others.amax(dim=1) - own[:, 0]).mean()


def _is_shifted(output: Any, scores: torch.Tensor) -> bool:
    """Return whether an output is the scores, up to a constant for each picture, which no loss sees (a log-softmax)."""
    if not isinstance(output, torch.Tensor) or output.numel() != scores.numel():
        return False
    off = output.reshape(scores.shape) - scores
    if scores.shape[1] > 1:
        off = off - off[:, :1]
    return bool(off.abs().max() <= PROBE_TOLERANCE * scores.abs().max())


def blocks_of(module: nn.Module, classifier: nn.Module) -> list[nn.Module]:
    """Return the blocks that can be frozen, in the network's order, without the classifier."""
    found: list[nn.Module] = []
    for child in module.children():
        if isinstance(child, nn.Sequential | nn.ModuleList):
            found += blocks_of(child, classifier)
        elif child is not classifier and any(True for _ in (*child.parameters(), *child.buffers())):
            found.append(child)
    return found
