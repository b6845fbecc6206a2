"""The models that ``margrove images`` offers, and the pictures for a saved one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from margrove.app.estimate.task import check_folds
from margrove.app.files import read_model
from margrove.app.models import last_step_of, target_of
from margrove.app.options.table import STANDARD_STREAM, Reading
from margrove.data.inference import trained_kinds
from margrove.errors import InputError, ParameterError, check_choice
from margrove.transfer.damaged import refuse_damaged, without_damaged
from margrove.transfer.features import ConvFeatures
from margrove.transfer.fine_tuned import FineTuned
from margrove.transfer.networks import BUILT_IN
from margrove.transfer.pictures import PictureFolder, read_picture_folder

_SHOWN_CLASSES = 8  # of a model, in a message


@dataclass(frozen=True)
class ImageModel:
    """One choice of ``margrove images --model``."""

    words: str
    class_name: str  # of the learner, as `margrove` exports it
    # For codes: C of the SVM and the softmax, and the tree's pruning, as cross-validated on the training part of
    # cifar10_small (benchmarks/images.py).
    defaults: Mapping[str, Any] = field(default_factory=dict)
    is_named: bool = False  # whether it learns from named maps instead of plain codes


IMAGE_MODELS = {
    "svm": ImageModel("a support vector machine on the network's codes", "SVC", {"C": 2.0}),
    "softmax": ImageModel("the usual last layer on the network's codes", "SoftmaxClassifier", {"C": 0.01}),
    "tree": ImageModel(
        "a sequence of tests on the network's feature maps",
        "DecisionTreeClassifier",
        {"criterion": "entropy", "thresholds": "gaussian", "prune": "pessimistic"},
        is_named=True,
    ),
    "finetune": ImageModel("the network itself, trained further", "FineTuned"),
}


@dataclass(frozen=True)
class ImageTraining:
    """The options of ``margrove images`` about the learning."""

    model: str = "svm"
    params: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    folds: int = 5
    time_limit: float | None = None
    skips_broken: bool = False
    network: str | None = None
    layer: str | None = None
    size: int | None = None
    cache: str | None = None
    device: str = "cpu"
    download: bool = False

    def __post_init__(self) -> None:
        check_choice("--model", self.model, IMAGE_MODELS)
        check_folds(self.folds)
        if self.model == "finetune" and self.layer is not None:
            raise ParameterError("--layer is for codes; --model finetune trains the whole network. Leave out --layer.")

    @property
    def choice(self) -> ImageModel:
        return IMAGE_MODELS[self.model]

    def pictures(self, folder: str) -> PictureFolder:
        """Return the pictures of a folder; those that cannot be opened are refused at once, or left out on request."""
        pictures = read_picture_folder(folder)
        if not self.skips_broken:
            refuse_damaged(pictures, "Repair or remove them, or skip them with --skip-broken.")
            return pictures
        kept = without_damaged(pictures)
        if len(kept.classes) < 2:
            raise InputError("fewer than two classes have pictures that can be opened", file=folder)
        return kept

    def features(self) -> ConvFeatures:
        """Return the unfitted transformer of pictures to codes."""
        return ConvFeatures(
            self.network or BUILT_IN,
            layer=self.layer,
            size=self.size,
            device=self.device,
            download=self.download,
            cache=self.cache,
            named=self.choice.is_named,
        )

    def learner(self) -> Any:
        """Return the unfitted learner. Raise `ParameterError` if it has no such parameter."""
        import margrove

        kind: Callable[..., Any] = getattr(margrove, self.choice.class_name)
        estimator = kind(**self.choice.defaults)
        own = estimator.get_params()
        for name in self.params:
            if name not in own:
                words = ", ".join(sorted(own))
                raise ParameterError(f"--param {name}: --model {self.model} has no such parameter; it has {words}.")
        shared: dict[str, Any] = {"random_state": self.seed, "time_limit": self.time_limit}
        if self.choice.is_named:
            del shared["random_state"]  # as in `margrove train`: another seed gives no other tree
        if self.model == "finetune":
            shared |= {"network": self.network or BUILT_IN, "size": self.size, "device": self.device}
            shared["download"] = self.download
        estimator.set_params(**{name: value for name, value in shared.items() if name in own})
        return estimator.set_params(**self.params)


def network_of(model: Any) -> Any:
    """Return what runs the network of a model of pictures: the first step of a pipeline, or the model itself."""
    return model[0] if isinstance(model, Pipeline) else model


def takes_pictures(model: Any) -> bool:
    """Return whether a model predicts pictures and not rows of a table."""
    return isinstance(network_of(model), ConvFeatures | FineTuned)


def opened(model_path: str, reading: Reading) -> tuple[Any, PictureFolder | None, Reading]:
    """Read a saved model; return it, its pictures (see `pictures_for`), and the reading with the target and the formats
    of the columns that the model was trained on."""
    if model_path == reading.file == STANDARD_STREAM:
        raise ParameterError("MODEL and FILE are both '-'; only one can come from standard input.")
    model = read_model(model_path)
    reading = reading if reading.target is not None else replace(reading, target=target_of(model))
    reading = replace(reading, kinds={**trained_kinds(model), **reading.kinds})
    return model, pictures_for(model, model_path, reading.file), reading


def pictures_for(model: Any, model_path: str, given: str | None) -> PictureFolder | None:
    """Return the pictures for a model of pictures: those of a folder, or one file; None for a model of tables. Raise
    `InputError` if the model takes pictures and got none, or takes tables and got a folder.

    A network in an ONNX file is looked for here, and beside the model."""
    is_folder = given is not None and Path(given).is_dir()
    if not takes_pictures(model):
        if is_folder:
            problem = f"is a folder, but this {type(last_step_of(model)).__name__} takes the rows of a table"
            raise InputError(problem, file=given, cure="Train a model that takes pictures: margrove images FOLDER.")
        return None
    if given is None or given == STANDARD_STREAM:
        raise InputError("this model takes pictures", file=model_path, cure="Give a folder of pictures, or one file.")
    first = network_of(model)
    if isinstance(first.network, str) and first.network.endswith(".onnx") and not Path(first.network).is_file():
        beside = Path(model_path).parent / first.network
        first.set_params(network=str(beside) if beside.is_file() else first.network)
    if is_folder:
        pictures = read_picture_folder(given, needs_classes=False)
        refuse_damaged(pictures)
        return pictures
    path = Path(given)
    return PictureFolder(path.parent, (path,), np.array([""]))


def refuse_unlabelled(model: Any, pictures: PictureFolder) -> None:
    """Raise `InputError` unless all pictures lie in folders that are named like the model's classes."""
    classes = [str(label) for label in last_step_of(model).classes_]
    is_known = np.isin(pictures.labels, classes)
    if not is_known.all():
        n, first = int((~is_known).sum()), pictures[int(np.argmin(is_known))]
        few = ", ".join(classes[:_SHOWN_CLASSES]) + (", …" if len(classes) > _SHOWN_CLASSES else "")
        raise InputError(
            f"{n:,} of {len(pictures):,} pictures are not in a folder named after a class of the model, such as "
            f"{str(first.relative_to(pictures.root))!r}",
            file=str(pictures.root),
            cure=f"Give a folder that contains a folder for each class: {few}.",
        )
