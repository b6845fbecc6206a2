"""`FineTuned`: fine-tuning of a pretrained network.

The last linear layer is replaced by one for the given classes, and the network is trained: all of it, or its last
blocks only. The loss is that of softmax, −log p(y), or the hinge, max(0, 1 + max_{k≠y} z_k − z_y).
"""

from __future__ import annotations

import warnings
from dataclasses import fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from margrove.advice import Advice, Parameter, Setting
from margrove.certificate import Certificate
from margrove.data.sample import number_classes, plain_labels
from margrove.errors import (
    ConvergenceWarning,
    InputError,
    ParameterError,
    check_choice,
    check_flag,
    check_number,
    check_whole,
    level_of_caller,
    shown,
)
from margrove.estimator import check_parameters, checked, estimator, fitted
from margrove.run.checkpoint import Arrays, CheckpointLike, Record, fingerprint, settle_checkpoint
from margrove.status import Status
from margrove.transfer.certificate import as_the_fit_says, mean_loss
from margrove.transfer.networks import RunsNetwork, needs
from margrove.transfer.pictures import Picture, as_pictures

if TYPE_CHECKING:
    from margrove.transfer.fine_tuning import Plan, Tuner, TuningCourse

LOSSES = ("softmax", "hinge")
SCHEDULES = ("cosine", "constant", "step")
_MOST_RATE = 1000.0  # beyond all use, and still far from overflow
_LEAST_PER_CLASS = 2  # pictures: one to learn from and one to hold out


@estimator
class FineTuned(ClassifierMixin, RunsNetwork):
    """A pretrained network with a new last layer, fine-tuned. Needs torch.

    Ctrl-C and a time limit keep the best weights so far. With ``checkpoint`` an interrupted fit can be resumed, in
    another process too, and ends with the same weights.

    Parameters
    ----------
    network : str or torch.nn.Module
        As in `ConvFeatures`, but no ONNX file, which cannot be trained.
    loss : {"softmax", "hinge"}
    n_blocks : int, optional
        Number of last blocks that are trained beside the new layer; 0 trains that layer alone. None: all.
    epochs : int
        Passes over the pictures.
    learning_rate : float
        Of the new layer, at the start.
    body_rate : float
        The rate of the other layers, relative to it.
    weight_decay : float
    schedule : {"cosine", "constant", "step"}
        The rate falls to 0 along a cosine; not at all; or by ten after half and after four fifths of the epochs.
    early_stopping : bool
        Hold pictures out, keep the weights that are best on them, and stop after ``patience`` epochs without a better
        loss.
    validation_fraction : float
        The share of the pictures that is held out.
    patience : int
    flip : bool
        Mirror pictures, each time with probability ½.
    size, crop, mean, std, weights, download, device, batch_size
        As in `ConvFeatures`.
    precision : {"float32", "bfloat16"}
        Of the network's arithmetic; weights are always float32.
    time_limit : float, optional
        Seconds; checked between epochs.
    checkpoint : path or Checkpoint, optional
        File of the state after an epoch, written at intervals; see `Checkpoint`. A fit may resume with another
        ``time_limit``; if ``random_state`` is None it takes the seed from there.
    random_state : int, RandomState or None

    Attributes
    ----------
    classes_ : array
    course_ : list of dict
        For each epoch ``loss`` and, with early stopping, ``held_out_loss`` and ``held_out_accuracy``.
    weights_ : dict of arrays
        Of the whole network.
    training_loss_ : float
        Of all pictures, with the final weights.
    status_, certificate_, n_iter_

    Examples
    --------
    A network of your own and pictures as arrays; torch is needed::

        model = FineTuned(network, n_blocks=2, epochs=5).fit(pictures, labels)
        model.predict(pictures)
    """

    loss: str = checked(check_choice, allowed=LOSSES, default="softmax")
    n_blocks: int | None = checked(check_whole, least=0, cure="None trains all blocks.", default=None)
    epochs: int = checked(check_whole, least=1, default=10)
    learning_rate: float = checked(check_number, above=0, most=_MOST_RATE, default=1e-3)
    body_rate: float = checked(check_number, least=0, default=0.1)
    weight_decay: float = checked(check_number, least=0, default=1e-4)
    schedule: str = checked(check_choice, allowed=SCHEDULES, default="cosine")
    early_stopping: bool = checked(check_flag, default=True)
    validation_fraction: float = checked(check_number, above=0, most=0.9, default=0.1)
    patience: int = checked(check_whole, least=1, default=3)
    flip: bool = checked(check_flag, default=True)
    time_limit: float | None = checked(check_number, above=0, cure="It is in seconds.", default=None)
    checkpoint: CheckpointLike | None = checked(lambda _, given: settle_checkpoint(given), default=None)
    random_state: Any = None

    classes_: NDArray[Any] = fitted()
    course_: list[dict[str, float]] = fitted()
    weights_: Arrays = fitted()
    training_loss_: float = fitted()
    status_: Status = fitted()
    engine_: str = fitted()
    certificate_: Certificate = fitted()
    n_iter_: int = fitted()

    def fit(self, X: Any, y: Any) -> Self:
        """Train on labelled pictures."""
        check_parameters(self)
        pictures, codes = self._read(X, y)
        tuner, plan = self._open(len(self.classes_)), self._plan()
        checkpoint = settle_checkpoint(self.checkpoint)
        record = None if checkpoint is None else Record(checkpoint, self._question(plan, codes, pictures))
        course = self._train(tuner, plan, codes, pictures, record)
        self.course_, self.status_, self.engine_ = course.lines, course.status, "torch"
        self.n_iter_ = len(course.lines)
        self.weights_, self._tuner = tuner.weights(), tuner
        scores = self._scores(pictures)
        self.training_loss_ = mean_loss(scores, codes, self.loss)
        n_wrong = int((scores.argmax(axis=1) != codes).sum())
        self.certificate_ = as_the_fit_says(self, len(codes), self.training_loss_, n_wrong)
        if record is not None and self.status_ not in (Status.INTERRUPTED, Status.TIME_LIMIT):
            record.remove()
        if self.status_ is Status.NONFINITE:
            message = (
                f"FineTuned ended with status 'nonfinite' in epoch {self.n_iter_ + 1}: numbers overflowed, and the "
                "weights are those of the epoch before; use a smaller learning_rate."
            )
            warnings.warn(message, ConvergenceWarning, stacklevel=level_of_caller())
        return self

    def _train(
        self, tuner: Tuner, plan: Plan, codes: NDArray[np.intp], pictures: list[Picture], record: Record | None
    ) -> TuningCourse:
        """Train from the start, or from the checkpoint."""
        from margrove.transfer.fine_tuning import TuningData

        left = None if record is None else record.read()
        if left is not None and self.random_state is None:  # any seed, but the same in all parts of the fit
            plan = replace(plan, seed=int(left.get("seed", plan.seed)))
        training = TuningData(plan, partial(self._pixels, pictures), codes, *self._split(codes, plan.seed))
        course = tuner.train(training, record, left)
        if course.status is Status.INTERRUPTED and self._on_interrupt == "raise":
            raise KeyboardInterrupt
        return course

    def _question(self, plan: Plan, codes: NDArray[np.intp], pictures: list[Picture]) -> str:
        """Return the fingerprint of all that decides the weights; a time limit does not, nor does a random seed."""
        decided = replace(plan, time_limit=None, seed=0 if self.random_state is None else plan.seed)
        held_out = self.validation_fraction if self.early_stopping else 0
        asked = [self.network_digest_, str(decided), str(self.preparation_), str(self.n_blocks), held_out, codes]
        return fingerprint("fine-tuning", asked, [each.digest().hex() for each in pictures])

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the scores of the classes, (n, classes); for two classes their difference, (n,)."""
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted class of each picture."""
        return np.asarray(self.classes_[self._scores(X).argmax(axis=1)])

    @available_if(lambda self: self.loss == "softmax")
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class; only for ``loss="softmax"``."""
        return np.asarray(softmax(self._scores(X), axis=1))

    def _scores(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self, "weights_")
        pictures = as_pictures(X)
        tuner = getattr(self, "_tuner", None)
        if tuner is None:
            tuner = self._tuner = self._open(len(self.classes_), is_again=True)
            tuner.load(self.weights_)
        with self._batches(pictures, np.arange(len(pictures))) as batches:
            return np.concatenate([tuner.scores(pixels, self.precision) for _, pixels in batches])

    def _open(self, n_classes: int, *, is_again: bool = False) -> Tuner:
        """Return the network with its new last layer; ``is_again`` for a fitted model, whose weights follow."""
        needs("torch", "FineTuned", "torch")
        source = self._source()
        if source.onnx is not None:
            words = f" is {shown(self.network)}; an ONNX file cannot be trained. Use a torch.nn.Module."
            raise ParameterError(Advice(Parameter("network"), words))
        from margrove.transfer.fine_tuning import Tuner
        from margrove.transfer.torch_network import digest_of

        if is_again:
            self._check_digest(digest_of(source.module))
        else:
            self.network_name_, self.network_digest_ = source.name, digest_of(source.module)
            self.preparation_ = self._preparation(source)
        return Tuner(source.module, n_classes, self.preparation_, self.n_blocks, self.device)

    def _read(self, X: Any, y: Any) -> tuple[list[Picture], NDArray[np.intp]]:
        pictures = as_pictures(X)
        if y is None:
            raise InputError("y is None; the class of each picture was expected", cure="Pass one label for each.")
        labels = plain_labels(np.asarray(y))
        if labels.shape != (len(pictures),):
            raise InputError(f"X has {len(pictures)} pictures and y has the shape {labels.shape}")
        if labels.dtype.kind == "f" and not np.isfinite(labels).all():
            row = int(np.argmin(np.isfinite(labels)))
            raise InputError(f"Input y contains {labels[row]}, first in row {row}", cure="Remove such pictures.")
        check_classification_targets(labels)
        self.classes_, codes = number_classes(labels)
        if len(self.classes_) < 2:
            raise InputError(f"y has one class, {shown(self.classes_[0])}; two are needed", cure="Add a class.")
        return pictures, np.asarray(codes, np.intp)

    def _split(self, codes: NDArray[np.intp], seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return rows to learn from and rows held out, stratified by class."""
        rows = np.arange(len(codes))
        if not self.early_stopping:
            return rows, rows[:0]
        counts = np.bincount(codes)
        n_held = max(len(counts), round(self.validation_fraction * len(codes)))
        if counts.min() < _LEAST_PER_CLASS or len(codes) - n_held < len(counts):
            rare = self.classes_[counts.argmin()]
            raise InputError(
                f"the class {shown(rare)} has {counts.min()} pictures, too few to hold some out",
                cure=Advice("Add pictures, or use ", Setting("early_stopping", False), "."),
            )
        from sklearn.model_selection import StratifiedShuffleSplit

        splitter = StratifiedShuffleSplit(1, test_size=n_held, random_state=seed)
        fit_rows, held_out = next(splitter.split(rows, codes))
        return np.sort(fit_rows), np.sort(held_out)

    def _plan(self) -> Plan:
        from margrove.transfer.fine_tuning import Plan

        given: dict[str, Any] = {each.name: getattr(self, each.name, None) for each in fields(Plan)}
        given["seed"] = check_random_state(self.random_state).randint(2**31 - 1)
        given["patience"] = self.patience if self.early_stopping else None
        plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in given.items()}
        return Plan(**plain)
