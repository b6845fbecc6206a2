"""``margrove report`` of a model of pictures: predict those of a folder, and write one page about both."""

from __future__ import annotations

from typing import Any

import numpy as np

from margrove.app.images.models import network_of, refuse_unlabelled
from margrove.app.images.page import JudgedPictures, page_of
from margrove.app.models import learner_of
from margrove.app.report.blocks import Report
from margrove.certificate import certify
from margrove.errors import InputError
from margrove.transfer.pictures import PictureFolder

_NEW = "Every picture was judged by the model as it was saved."
_OF_TRAINING = (
    "Beware: the model learned from these very pictures, so this says little of others. Give a folder of other "
    "pictures, or look at the page that `margrove images` wrote: each picture there was judged by a model that had not "
    "seen it."
)


def report_of_pictures(model: Any, pictures: PictureFolder) -> Report:
    """Predict the pictures of a folder and return the page. Raise `InputError` if no picture lies in the folder of a
    class that the model knows.

    Pictures outside all classes of the model are left out, and counted."""
    learner = learner_of(model)
    is_known = np.isin(pictures.labels, learner.classes_.astype(str))
    if not is_known.any():
        refuse_unlabelled(model, pictures)
    known = pictures.take(np.flatnonzero(is_known))
    is_on_codes = network_of(model) is not learner
    given = model[0].transform(known) if is_on_codes else known
    predicted = np.asarray(learner.predict(given)).astype(str)
    certificate, is_training = learner.certificate_, False
    if certificate.n_rows == len(known):  # then they may be the pictures that it learned from: the proof tells
        found = _recomputed(learner, given, known)
        if found is not None and found.holds:
            certificate, is_training = found, True
    n_left = len(pictures) - len(known)
    how = _OF_TRAINING if is_training else _NEW
    if n_left:
        how += f" {n_left:,} of {len(pictures):,} pictures lie in no folder of a class of the model's and are left out."
    judged = JudgedPictures(known, np.arange(len(known)), predicted, how, is_unseen=not is_training)
    codes = given if is_training and is_on_codes else None
    return page_of(model, judged, codes, certificate, is_recomputed=is_training)


def _recomputed(learner: Any, given: Any, pictures: PictureFolder) -> Any:
    """Return the certificate on these pictures; None where they cannot be those of the training."""
    try:
        return certify(learner, given, pictures.labels)
    except InputError:  # another number of classes or rows: no certificate of theirs
        return None
