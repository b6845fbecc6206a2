"""``margrove images``: a folder of pictures goes in, a certified model and a page with examples come out."""

from __future__ import annotations

import shlex
import warnings
import webbrowser
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from margrove.app.estimate.classes import CLASSES
from margrove.app.estimate.task import Estimate, Predicted
from margrove.app.estimate.words import how_words, tell_estimate
from margrove.app.files import check_destination, check_report, report_path, write_content, write_model
from margrove.app.images.models import ImageTraining, network_of
from margrove.app.images.page import ScoredPictures, page_of
from margrove.app.models import plain_parameters
from margrove.app.report.writing import in_format
from margrove.app.screen.advice import warnings_in_shell
from margrove.app.screen.console import Screen
from margrove.app.screen.display import percent, tell_certificate
from margrove.app.screen.progress import metered
from margrove.certificate import Certificate, certify
from margrove.data.columns import some
from margrove.errors import ConvergenceWarning, DataWarning, InputError
from margrove.status import Status
from margrove.transfer.features import ConvFeatures
from margrove.transfer.fine_tuned import FineTuned
from margrove.transfer.pictures import PictureFolder

_HELD_OUT = 0.2  # of the pictures, to test a fine-tuned network on: folds would train it several times
_OF_TRIAL = ".trial"  # at the end of the name of a checkpoint
_SHOWN_CLASSES = 12
_OTHERS = "OTHER_PICTURES"  # stands for a folder of the user's
_NOT_ESTIMATED = "The accuracy was not estimated: --folds 0 was given, or a class has too few pictures."


def train_on_images(
    screen: Screen, folder: str, training: ImageTraining, output: str | None, report: str | None, *, is_opened: bool
) -> None:
    """Read, make codes, estimate, fit, certify, save, show."""
    learner = training.learner()  # first: a wrong parameter fails before anything is read
    pictures = training.pictures(folder)
    stem = pictures.root.resolve().name or "images"
    destination = output or f"{stem}.margrove"
    page_path = report or report_path(destination) or f"{stem}.report.html"
    is_replaced = check_destination(destination)
    check_report(page_path, option="--report", cure="Choose another place for it: --report.")
    _tell_folder(screen, pictures)
    screen.say(f"Model: {training.model} ({training.choice.words})", indent=2)
    features, codes = (None, None) if training.model == "finetune" else _codes(screen, pictures, training)
    if features is None:
        estimate = _held_out(screen, learner, pictures, training)
    else:
        estimate = _cross_validated(screen, learner, codes, pictures, training)
    tell_estimate(screen, estimate, "picture")
    model, certificate, messages = _fit(screen, learner, features, codes, pictures)
    for message in messages:
        screen.warn(message)
    if isinstance(learner, FineTuned):
        _tell_course(screen, learner)
    tell_certificate(screen, certificate, data="FOLDER")
    write_model(model, destination)
    scored = _scored(pictures, estimate)
    with metered(screen, "writing the page"):
        page = page_of(model, scored, codes, certificate, is_recomputed=True)
        write_content(in_format(page, "html"), page_path)
    _tell_page(screen, scored, page_path)
    if is_opened:
        webbrowser.open(Path(page_path).resolve().as_uri())
    screen.heading(f"Saved {destination}{' (replacing the model that was there)' if is_replaced else ''}")
    screen.say("Next:", indent=2)
    for verb, pictures_of in (("predict", _OTHERS), ("report", _OTHERS), ("certify", folder)):
        screen.say(shlex.join(["margrove", verb, destination, pictures_of]), indent=4)
    if screen.is_quiet:
        screen.essential(f"{training.model}: {CLASSES.prefix}{CLASSES.words(estimate)}; {destination}; {page_path}")
    first = network_of(model)
    screen.document(
        {
            "command": "images",
            "folder": folder,
            "pictures": len(pictures),
            "classes": dict(Counter(pictures.labels.tolist())),
            "notes": list(pictures.notes),
            "model": training.model,
            "network": {"name": first.network_name_, "fingerprint": first.network_digest_},
            "parameters": plain_parameters(learner),
            "estimate": estimate.to_dict(),
            "status": str(learner.status_),
            "certificate": certificate.to_dict(),
            "warnings": messages,
            "output": destination,
            "report": page_path,
        }
    )
    screen.finish()


def _cross_validated(
    screen: Screen, learner: Any, codes: Any, pictures: PictureFolder, training: ImageTraining
) -> Estimate:
    folds, title = CLASSES.folds(pictures.labels, training.folds, training.seed), "cross-validation"
    with metered(screen, title, total=max(1, len(folds.tests))) as meter:
        return CLASSES.cross_validate(lambda: clone(learner), codes, pictures.labels, folds, meter, title)


def _codes(screen: Screen, pictures: PictureFolder, training: ImageTraining) -> tuple[ConvFeatures, Any]:
    features = training.features()
    with metered(screen, "computing the codes of the pictures"):
        codes = features.fit_transform(pictures)
    source = f"{features.network_name_} ({features.layer_})"
    screen.say(f"{features.n_features_out_:,} numbers for each picture, from {source}", indent=2)
    return features, codes


def _tell_folder(screen: Screen, pictures: PictureFolder) -> None:
    counts = Counter(pictures.labels.tolist())
    screen.say(f"{pictures.root}: {len(pictures):,} pictures of {len(counts):,} classes", style="bold")
    screen.say(some([f"{label} {count:,}" for label, count in counts.items()], _SHOWN_CLASSES), indent=2)
    for note in pictures.notes:
        screen.say(note, indent=2)


def _scored(pictures: PictureFolder, estimate: Estimate) -> ScoredPictures:
    """Return the pictures that were tested, for the page."""
    tested = estimate.predicted
    if tested is None:
        return ScoredPictures(pictures, np.empty(0, np.intp), pictures.labels[:0], _NOT_ESTIMATED, n_rounds=1)
    how = f"How this was estimated: {how_words(estimate, 'picture')}."
    return ScoredPictures(pictures, tested.rows, tested.values, how, n_rounds=len(estimate.rounds))


def _held_out(screen: Screen, learner: Any, pictures: PictureFolder, training: ImageTraining) -> Estimate:
    """Estimate a fine-tuned network on a part of the pictures that it has not seen."""
    from sklearn.model_selection import train_test_split

    labels = pictures.labels
    if training.folds == 0:
        return CLASSES.estimate(labels, [], ["not estimated, as requested (--folds 0)"])
    least = min(Counter(labels.tolist()).values())
    if least < 5:
        raise InputError(
            f"a class has only {least} pictures, too few to train and test a network",
            file=str(pictures.root),
            cure="Add pictures, or use --model svm, or --folds 0 for no estimate.",
        )
    train, test = train_test_split(
        np.arange(len(labels)), test_size=_HELD_OUT, stratify=labels, random_state=training.seed
    )
    test = np.sort(test)
    with metered(screen, "fine-tuning on a part, to test it on the rest") as meter:
        trial = clone(learner)
        if trial.checkpoint is not None:  # one file for each of the two fits: neither is in the other's way
            trial.set_params(checkpoint=f"{trial.checkpoint}{_OF_TRIAL}")
        model = trial.fit([pictures[i] for i in train], labels[train])
        if model.status_ is Status.INTERRUPTED:
            raise KeyboardInterrupt
        meter.begin("testing it")
        predicted = model.predict([pictures[i] for i in test])
    return CLASSES.estimate(labels, [Predicted(test, predicted, type(model).__name__)], method="hold-out")


def _fit(
    screen: Screen, learner: Any, features: Any, codes: Any, pictures: PictureFolder
) -> tuple[Any, Certificate, list[str]]:
    """Fit on all pictures and recompute the certificate; return the model, the certificate and warnings."""
    with metered(screen, "fit on all pictures") as meter, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for quiet in (DataWarning, ConvergenceWarning):
            warnings.simplefilter("ignore", quiet)
        learner.fit(pictures.paths if codes is None else codes, pictures.labels)
        meter.begin("recomputing the certificate")
        certificate = certify(learner, pictures.paths if codes is None else codes, pictures.labels)
    learner.certificate_ = certificate  # the file keeps what was recomputed
    if learner.status_ is Status.INTERRUPTED:
        screen.warn("interrupted: the model was fitted in part; the accuracy above is that of models fitted completely")
    model = learner if features is None else Pipeline([("codes", features), ("learn", learner)])
    return model, certificate, warnings_in_shell(caught)


def _tell_course(screen: Screen, learner: Any) -> None:
    """Print how far the training of a network came."""
    screen.heading("Training on all pictures")
    first, last = learner.course_[0], learner.course_[-1]
    passes = "pass" if len(learner.course_) == 1 else "passes"
    screen.say(f"{len(learner.course_):,} {passes} over the pictures, of {learner.epochs:,} at most", indent=2)
    screen.say(f"loss ({learner.loss}) from {first['loss']:.3g} to {last['loss']:.3g}", indent=2)
    if "held_out_accuracy" in last:
        best = min(learner.course_, key=lambda line: line["held_out_loss"])
        screen.say(f"best accuracy on pictures held out to stop early: {percent(best['held_out_accuracy'])}", indent=2)


def _tell_page(screen: Screen, scored: ScoredPictures, path: str) -> None:
    screen.heading("Pictures")
    if n := len(scored.rows):
        n_right = int(scored.is_right.sum())
        screen.say(f"{n_right:,} of {n:,} tested pictures are correct, {n - n_right:,} are wrong", indent=2)
    for true, predicted, count in scored.confusions[:1]:
        times = "once" if count == 1 else f"{count:,} times"
        screen.say(f"most often confused: {true} mistaken for {predicted} ({times})", indent=2)
    screen.say(f"{path}: correct and wrong examples; open it in a browser", indent=2)
