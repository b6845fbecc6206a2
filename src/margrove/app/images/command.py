"""``margrove images``: a folder of pictures goes in, a certified model and a page with examples come out."""

from __future__ import annotations

import shlex
import warnings
import webbrowser
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from margrove.app.estimate.classes import Estimate, Folds, baseline_of, interval_of, stratified_folds
from margrove.app.files import check_destination, write_content, write_model
from margrove.app.images.models import ImageTraining, network_of
from margrove.app.images.page import Judged, page_of
from margrove.app.models import learner_of, plain_parameters
from margrove.app.report.writing import in_format
from margrove.app.report_path import check_report, report_path
from margrove.app.screen.advice import warnings_in_shell
from margrove.app.screen.console import Screen
from margrove.app.screen.display import estimate_text, how_words, percent, tell_certificate, tell_estimate
from margrove.app.screen.progress import metered
from margrove.certificate import Certificate, certify
from margrove.data import Column, Table
from margrove.data.columns import some
from margrove.errors import ConvergenceWarning, DataWarning, InputError
from margrove.status import Status
from margrove.transfer.pictures import PictureFolder

_HELD_OUT = 0.2  # of the pictures, to judge a fine-tuned network by: folds would train it several times
_OF_TRIAL = ".trial"  # at the end of the name of a checkpoint
_SHOWN_CLASSES = 12
_OTHERS = "OTHER_PICTURES"  # a folder that nobody has named yet
_NOT_ESTIMATED = "How often it is right was not estimated, as asked (--folds 0), or since a class has too few pictures."


@dataclass(frozen=True, eq=False)
class Trial:
    """Predictions of pictures that the model at hand had not seen, and the estimate that they give."""

    estimate: Estimate
    rows: NDArray[np.intp]
    predicted: NDArray[Any]  # of these rows

    def judged(self, pictures: PictureFolder) -> Judged:
        """For the page."""
        how = f"How this was found: {how_words(self.estimate, 'picture')}." if len(self.rows) else _NOT_ESTIMATED
        return Judged(pictures, self.rows, self.predicted, how, n_rounds=max(1, len(self.estimate.accuracies)))


def train_on_images(
    screen: Screen,
    folder: str,
    training: ImageTraining,
    output: str | None,
    report: str | None,
    *,
    is_opened: bool = False,
) -> None:
    """Read, make codes, estimate, fit, certify, save, show."""
    learner = training.learner()  # so that a wrong parameter is told before anything is read
    pictures = training.pictures(folder)
    stem = pictures.root.resolve().name or "images"
    destination = output or f"{stem}.margrove"
    page_path = report or report_path(destination) or f"{stem}.report.html"
    is_replaced = check_destination(destination)
    check_report(page_path, option="--report", cure="Choose another place for it: --report.")
    _tell_folder(screen, pictures)
    screen.say(f"Model: {training.model} ({training.choice.words})", indent=2)
    labels = pictures.labels
    features, codes = None, None
    if training.model != "finetune":
        features = training.features()
        with metered(screen, "codes of the pictures"):
            codes = features.fit_transform(pictures)
        screen.say(
            f"{features.n_features_out_:,} numbers for each picture, from {features.network_name_} ({features.layer_})",
            indent=2,
        )
        trial = _fold_by_fold(screen, learner, codes, labels, training)
    else:
        trial = _held_out(screen, learner, pictures, training)
    tell_estimate(screen, trial.estimate, "picture")
    model, certificate, told = _fit(screen, learner, features, codes, pictures)
    for message in told:
        screen.warn(message)
    if hasattr(learner, "course_"):
        _tell_course(screen, learner)
    tell_certificate(screen, certificate)
    write_model(model, destination)
    judged = trial.judged(pictures)
    with metered(screen, "drawing the page"):
        page = page_of(model, judged, codes, certificate, is_recomputed=True)
        write_content(in_format(page, "html"), page_path)
    _tell_page(screen, judged, page_path)
    if is_opened:
        webbrowser.open(Path(page_path).resolve().as_uri())
    screen.heading(f"Saved {destination}{' (replacing the model that was there)' if is_replaced else ''}")
    screen.say("Next:", indent=2)
    for command in (
        ["predict", destination, _OTHERS],
        ["report", destination, _OTHERS],
        ["certify", destination, folder],
    ):
        screen.say(shlex.join(["margrove", *command]), indent=4)
    if screen.is_quiet:
        worth = estimate_text(trial.estimate)
        screen.essential(f"{training.model}: accuracy {worth}; {destination}; {page_path}")
    screen.document(_record(folder, pictures, training, model, trial, certificate, told, destination, page_path))
    screen.finish()


def _record(
    folder: str,
    pictures: PictureFolder,
    training: ImageTraining,
    model: Any,
    trial: Trial,
    certificate: Certificate,
    told: list[str],
    destination: str,
    page_path: str,
) -> dict[str, Any]:
    first, learner = network_of(model), learner_of(model)
    return {
        "command": "images",
        "folder": folder,
        "pictures": len(pictures),
        "classes": dict(Counter(pictures.labels.tolist())),
        "notes": list(pictures.notes),
        "model": training.model,
        "network": {"name": first.network_name_, "fingerprint": first.network_digest_},
        "parameters": plain_parameters(learner),
        "estimate": trial.estimate.to_dict(),
        "status": str(learner.status_),
        "certificate": certificate.to_dict(),
        "warnings": told,
        "output": destination,
        "report": page_path,
    }


def _tell_folder(screen: Screen, pictures: PictureFolder) -> None:
    counts = Counter(pictures.labels.tolist())
    screen.say(f"{pictures.root}: {len(pictures):,} pictures of {len(counts):,} classes", style="bold")
    screen.say(some([f"{label} {count:,}" for label, count in counts.items()], _SHOWN_CLASSES), indent=2)
    for note in pictures.notes:
        screen.say(note, indent=2)


def _rows_of(codes: Any, rows: NDArray[np.intp]) -> Any:
    return codes.take(rows) if isinstance(codes, Table) else codes[rows]


def _fold_by_fold(screen: Screen, learner: Any, codes: Any, labels: NDArray[np.str_], training: ImageTraining) -> Trial:
    """Every picture predicted by a model that has not seen it."""
    folds = stratified_folds(_labels_alone(labels), training.folds, training.seed)
    predicted, accuracies = np.empty(len(labels), labels.dtype), []
    rows: list[NDArray[np.intp]] = []
    with metered(screen, "cross-validation", total=max(1, len(folds.tests))) as meter:
        for number, test in enumerate(folds.tests, start=1):
            meter.begin(f"cross-validation, fold {number} of {len(folds.tests)}")
            train = np.setdiff1d(np.arange(len(labels)), test, assume_unique=True)
            model = clone(learner)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the fit on all pictures gives the same warnings once
                model.fit(_rows_of(codes, train), labels[train])
            if model.status_ is Status.INTERRUPTED:
                raise KeyboardInterrupt
            predicted[test] = model.predict(_rows_of(codes, test))
            accuracies.append(float(np.mean(predicted[test] == labels[test])))
            rows.append(test)
            meter.advance()
    tested = np.sort(np.concatenate(rows)) if rows else np.empty(0, np.intp)
    ends = interval_of(accuracies, folds, len(labels))
    estimate = Estimate(tuple(accuracies), *baseline_of(labels), folds.notes, interval=ends)
    return Trial(estimate, tested, predicted[tested])


def _labels_alone(labels: NDArray[np.str_]) -> Table:
    """A table of nothing but its target, for whatever only looks at that."""
    levels, codes = np.unique(labels, return_inverse=True)
    return Table(target=Column("class", "category", codes.astype(np.int32), tuple(levels.tolist())))


def _held_out(screen: Screen, learner: Any, pictures: PictureFolder, training: ImageTraining) -> Trial:
    """A fine-tuned network, judged by a part of the pictures that it has not seen."""
    from sklearn.model_selection import train_test_split

    labels = pictures.labels
    if training.folds == 0:
        return Trial(
            Estimate((), *baseline_of(labels), ("not estimated, as asked (--folds 0)",)),
            np.empty(0, np.intp),
            labels[:0],
        )
    least = min(Counter(labels.tolist()).values())
    if least < 5:
        raise InputError(
            f"a class has only {least} pictures, too few to train a network on and to judge it by",
            file=str(pictures.root),
            cure="Add pictures, or use --model svm, or --folds 0 for no estimate.",
        )
    train, test = train_test_split(
        np.arange(len(labels)), test_size=_HELD_OUT, stratify=labels, random_state=training.seed
    )
    test = np.sort(test)
    with metered(screen, "fine-tuning, to be judged") as meter:
        trial = clone(learner)
        if trial.checkpoint is not None:  # one file for each of the two fits: neither is in the other's way
            trial.set_params(checkpoint=f"{trial.checkpoint}{_OF_TRIAL}")
        model = trial.fit([pictures[i] for i in train], labels[train])
        if model.status_ is Status.INTERRUPTED:
            raise KeyboardInterrupt
        meter.begin("judging it")
        predicted = model.predict([pictures[i] for i in test])
    right = float(np.mean(predicted == labels[test]))
    ends = interval_of([right], Folds((test,)), len(labels))
    return Trial(
        Estimate((right,), *baseline_of(labels), method="hold-out", n_tested=len(test), interval=ends), test, predicted
    )


def _fit(
    screen: Screen, learner: Any, features: Any, codes: Any, pictures: PictureFolder
) -> tuple[Any, Certificate, list[str]]:
    """The model fitted on all pictures, its certificate recomputed, and warnings."""
    with metered(screen, "fit on all pictures") as meter, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for quiet in (DataWarning, ConvergenceWarning):
            warnings.simplefilter("ignore", quiet)
        learner.fit(pictures.paths if codes is None else codes, pictures.labels)
        meter.begin("recomputing the certificate")
        certificate = certify(learner, pictures.paths if codes is None else codes, pictures.labels)
    learner.certificate_ = certificate  # the file keeps what was recomputed
    if learner.status_ is Status.INTERRUPTED:
        screen.warn("interrupted: the model is kept as far as it came; the accuracy above is of whole fits")
    model = learner if features is None else Pipeline([("codes", features), ("learn", learner)])
    return model, certificate, warnings_in_shell(caught)


def _tell_course(screen: Screen, learner: Any) -> None:
    """Of a network that was trained on: how far it came."""
    screen.heading("Training, on all pictures")
    first, last = learner.course_[0], learner.course_[-1]
    passes = "pass" if len(learner.course_) == 1 else "passes"
    screen.say(f"{len(learner.course_):,} {passes} over the pictures, of {learner.epochs:,} at most", indent=2)
    screen.say(f"loss ({learner.loss}) from {first['loss']:.3g} to {last['loss']:.3g}", indent=2)
    if "held_out_accuracy" in last:
        best = min(learner.course_, key=lambda line: line["held_out_loss"])
        screen.say(f"at best {percent(best['held_out_accuracy'])} right of those held out to stop by", indent=2)


def _tell_page(screen: Screen, judged: Judged, path: str) -> None:
    screen.heading("Pictures")
    if judged.n:
        wrong = judged.n - judged.n_right
        screen.say(f"{judged.n_right:,} of {judged.n:,} judged pictures are right; {wrong:,} wrong", indent=2)
        if judged.confusions:
            true, predicted, count = judged.confusions[0]
            times = "once" if count == 1 else f"{count:,} times"
            screen.say(f"most often confused: {true} taken for {predicted} ({times})", indent=2)
    screen.say(f"{path}: examples right and wrong, to be opened in a browser", indent=2)
