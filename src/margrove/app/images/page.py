"""The page of a model of pictures: how often it is right, pictures that it takes for the right and for the wrong class,
the training pictures nearest to them, and what is proven.

It is made of the same blocks as the report of a table (`margrove.app.report.blocks`), and written by the same
formats. Names of classes and files come from the disk of whoever made the folder: the formats escape every one.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.app.estimate.intervals import share_interval
from margrove.app.images.models import network_of, refuse_unlabelled
from margrove.app.models import last_step_of, plain_parameters
from margrove.app.report.blocks import (
    Bitmap,
    Block,
    Example,
    Figure,
    Folded,
    Gallery,
    Grid,
    Headline,
    Listing,
    Matrix,
    Report,
    Section,
    Thumbnail,
    Words,
    note,
)
from margrove.app.report.charts import capital
from margrove.app.report.proof import certificate_words, claims_grid, leave_one_out
from margrove.app.report.tree_picture import drawn_tree
from margrove.app.screen.display import percent, verdict_words
from margrove.certificate import Certificate, certify
from margrove.data import Table
from margrove.data.columns import some
from margrove.errors import InputError
from margrove.explanation import explanation_of
from margrove.transfer.fine_tuned import FineTuned
from margrove.transfer.maps import used_maps
from margrove.transfer.pictures import FilePicture, PictureFolder

SHOWN = 12  # examples of each kind
NEIGHBOURS = 3  # support vectors beside each example
MOST_MAPS = 6  # of a tree
MOST_CLASSES = 20  # in the table of confusions
MOST_CONFUSIONS = 12  # in the list of them
_THUMBNAIL = 96  # pixels
_OF_TRAINING = (
    "What was checked: the network gives the loss and the errors that its training ended with. It cannot be proven "
    "that no other weights would be better."
)
_NEW = "Every picture was classified by the saved model."
_OF_SEEN = (
    "The model learned from these pictures, so the accuracy on new ones may be lower. Use a folder of other "
    "pictures, or see the page that `margrove images` wrote: there, each picture was classified by a model that had "
    "not seen it."
)
_MAPS = "For each map that the tree tests, the most important first: the pictures that activate it most, and where."
_UNPROVEN = "It does not prove that the predictions are correct: the score above shows how often they are."


@dataclass(frozen=True, eq=False)
class ScoredPictures:
    """The predictions of a model for pictures whose class is known.

    ``how`` states in one sentence where the predictions come from; ``is_unseen``: no model had learned from the picture
    that it predicts."""

    pictures: PictureFolder
    rows: NDArray[np.intp]  # the pictures that were scored
    predicted: NDArray[Any]  # of these rows
    how: str
    is_unseen: bool = True
    n_rounds: int = 1  # of predictions, each by a model of its own

    @property
    def truth(self) -> NDArray[np.str_]:
        return self.pictures.labels[self.rows]

    @property
    def is_right(self) -> NDArray[np.bool_]:
        return np.asarray(self.truth == self.predicted)

    @property
    def counts(self) -> Counter[tuple[str, str]]:
        """The number of pictures of each pair of a true and a predicted class."""
        return Counter(zip(self.truth.tolist(), self.predicted.tolist(), strict=True))

    @property
    def confusions(self) -> list[tuple[str, str, int]]:
        """True class, predicted class, how often; the most frequent first."""
        return [(true, other, n) for (true, other), n in self.counts.most_common() if true != other]


def report_of_pictures(model: Any, pictures: PictureFolder) -> Report:
    """Predict the pictures of a folder and return the page. Raise `InputError` if no picture lies in the folder of a
    class of the model.

    Pictures outside all classes of the model are left out, and counted."""
    learner = last_step_of(model)
    is_known = np.isin(pictures.labels, learner.classes_.astype(str))
    if not is_known.any():
        refuse_unlabelled(model, pictures)
    known = pictures.take(np.flatnonzero(is_known))
    is_on_codes = network_of(model) is not learner
    given = model[0].transform(known) if is_on_codes else known
    predicted = np.asarray(learner.predict(given)).astype(str)
    certificate, is_training = learner.certificate_, False
    if certificate.n_rows == len(known):  # then they may be the pictures that it learned from: the certificate shows it
        with suppress(InputError):  # another number of classes or rows: no certificate of theirs
            found = certify(learner, given, known.labels)
            if found.holds:
                certificate, is_training = found, True
    n_left = len(pictures) - len(known)
    how = _OF_SEEN if is_training else _NEW
    if n_left:
        how += f" {n_left:,} of {len(pictures):,} pictures were left out: their folder is not a class of the model."
    scored = ScoredPictures(known, np.arange(len(known)), predicted, how, is_unseen=not is_training)
    codes = given if is_training and is_on_codes else None
    return page_of(model, scored, codes, certificate, is_recomputed=is_training)


def page_of(model: Any, scored: ScoredPictures, codes: Any, certificate: Certificate, *, is_recomputed: bool) -> Report:
    """Return the page of a fitted model. ``codes`` are those of all pictures, where it learned from them: then its
    support vectors are among them. ``is_recomputed``: the certificate is not as the file has it."""
    first, learner = network_of(model), last_step_of(model)
    near = _nearest_support(learner, codes)
    maker = f"{capital(explanation_of(learner).called)}: {first.network_name_}"
    if first is not learner:
        made = f"{first.n_features_out_:,} numbers that {first.network_name_} computes from each picture"
        maker = f"{capital(explanation_of(learner).called)}, on {made}"
    sections = [_in_short(scored, maker)]
    if len(scored.rows):
        sections.append(_examples("wrong", "Wrong predictions", scored, ~scored.is_right, near))
        sections.append(_examples("correct", "Correct predictions", scored, scored.is_right, near))
        sections.append(_mistakes(scored))
    if explanation_of(learner).has_rules:
        sections.append(_tree(model, scored.pictures))
    sections.append(_proof(learner, certificate, is_recomputed=is_recomputed))
    details = [*([_course(learner)] if isinstance(learner, FineTuned) else []), _about(first, learner, certificate)]
    name = scored.pictures.root.resolve().name or str(scored.pictures.root)
    return Report(f"How the pictures of {name!r} are classified", maker, sections, details)


def _in_short(scored: ScoredPictures, maker: str) -> Section:
    counts = Counter(scored.pictures.labels.tolist())
    classes = some([f"{label} {count:,}" for label, count in counts.items()], MOST_CLASSES)
    blocks: list[Block] = [Words(f"{len(scored.pictures):,} pictures of {len(counts):,} classes: {classes}.")]
    data: dict[str, Any] = {"pictures": len(scored.pictures), "classes": dict(counts), "model": maker}
    if n := len(scored.rows):
        n_right = int(scored.is_right.sum())
        low, high = share_interval(n_right, n, scored.n_rounds, len(scored.pictures))
        largest, size = counts.most_common(1)[0]
        share, baseline = n_right / n, size / len(scored.pictures)
        interval = f"95 % interval: {100 * low:.1f} to {100 * high:.1f} %"
        label = "correct, on pictures it has not seen" if scored.is_unseen else "correct, on pictures it learned from"
        figures = [
            Figure(label, percent(share), interval if scored.is_unseen else ""),
            Figure(f"when always guessing {largest!r}", percent(baseline), is_faint=True),
        ]
        blocks.append(Headline(figures))
        if scored.confusions:
            true, other, often = scored.confusions[0]
            times = "once" if often == 1 else f"{often:,} times"
            blocks.append(Words(f"The most common mistake: {true} mistaken for {other}, {times}."))
        data |= {"evaluated": n, "correct": n_right, "low": low, "high": high, "baseline": baseline}
    blocks.append(Words(scored.how, "note" if scored.is_unseen else "warning"))
    return Section("summary", "In short", blocks, {**data, "how": scored.how})


def _examples(
    key: str, title: str, scored: ScoredPictures, chosen: NDArray[np.bool_], near: Callable[[int], tuple[int, ...]]
) -> Section:
    """Show some of the chosen pictures, of each class in turn."""
    truth, n = scored.truth, int(chosen.sum())
    examples = []
    for i in _spread(np.flatnonzero(chosen), truth):
        row, predicted = int(scored.rows[i]), str(scored.predicted[i])
        neighbours = tuple(_thumbnail(scored.pictures, each, has_label=True) for each in near(row))
        wrong = "" if predicted == truth[i] else predicted
        examples.append(Example(_thumbnail(scored.pictures, row), str(truth[i]), wrong, neighbours))
    data = {
        "count": n,
        "shown": [
            {"file": e.picture.name, "class": e.true, "predicted_as": e.predicted_as or e.true} for e in examples
        ],
    }
    if not examples:
        words = f"No picture is classified {'incorrectly' if key == 'wrong' else 'correctly'}."
        return Section(key, title, [Words(words)], data)
    of_all = f"{len(examples):,} of {n:,}" if len(examples) < n else f"all {n:,}"
    beside = ""
    if any(example.near for example in examples):
        beside = " Below each: its nearest support vectors (training pictures at the boundary), with their class."
    words = f"{capital(of_all)}, from each class in turn.{beside}"
    return Section(key, title, [Words(words), Gallery(examples)], data)


def _spread(chosen: NDArray[np.intp], truth: NDArray[Any]) -> list[int]:
    """Return at most `SHOWN` of the chosen, of each class in turn."""
    queues = [[int(i) for i in chosen if truth[i] == label] for label in np.unique(truth[chosen])]
    return [i for turn in zip_longest(*queues) for i in turn if i is not None][:SHOWN]


def _thumbnail(pictures: PictureFolder, row: int, *, has_label: bool = False) -> Thumbnail:
    path = pictures[row]
    image = FilePicture(path).in_mode("RGB")
    image.thumbnail((_THUMBNAIL, _THUMBNAIL))
    content = io.BytesIO()
    image.save(content, "PNG")
    caption = str(pictures.labels[row]) if has_label else ""
    return Thumbnail(content.getvalue(), str(path.relative_to(pictures.root)), caption)


def _nearest_support(learner: Any, codes: Any) -> Callable[[int], tuple[int, ...]]:
    """Return a function of a row: the nearest support vectors but itself, by the distance of codes."""
    support = getattr(learner, "support_", None)
    if support is None or codes is None or isinstance(codes, Table):
        return lambda row: ()

    def nearest(row: int) -> tuple[int, ...]:
        others = support[support != row]
        distance = np.square(codes[others] - codes[row]).sum(axis=1)
        return tuple(int(each) for each in others[np.argsort(distance, kind="stable")[:NEIGHBOURS]])

    return nearest


def _mistakes(scored: ScoredPictures) -> Section:
    names, counts = scored.pictures.classes, scored.counts
    blocks: list[Block] = []
    if len(names) <= MOST_CLASSES:
        matrix = [[counts[true, other] for other in names] for true in names]
        blocks.append(Matrix(names, matrix, "Each row is a true class, each column a predicted class."))
    elif scored.confusions:
        rows = [[true, other, f"{n:,}"] for true, other, n in scored.confusions[:MOST_CONFUSIONS]]
        caption = "The most frequent mistakes."
        blocks.append(Grid(["class", "mistaken for", "pictures"], rows, caption, frozenset({2})))
    n_true, n_predicted = Counter(scored.truth.tolist()), Counter(scored.predicted.tolist())
    rows = []
    for name in names:
        shares = [percent(counts[name, name] / n) if n else "–" for n in (n_true[name], n_predicted[name])]
        rows.append([name, f"{n_true[name]:,}", *shares])
    header = ["class", "pictures", "found (recall)", "correct when predicted (precision)"]
    by_class = Grid(header, rows, "", frozenset({1, 2, 3}))
    blocks.append(by_class if len(names) <= MOST_CLASSES else Folded("Each class", [by_class]))
    confusions = [{"class": true, "predicted_as": other, "pictures": n} for true, other, n in scored.confusions]
    return Section("mistakes", "Which classes are confused", blocks, {"confusions": confusions})


def _tree(model: Any, pictures: PictureFolder) -> Section:
    """Show the tests, and the pictures that activate the tested maps most, where maps come out of the network."""
    features, tree = model[0], model[-1]
    rules = str(tree.rules())
    blocks: list[Block] = [
        Words("The tree applies a sequence of tests: how strongly does a map of the network respond to the picture?"),
        drawn_tree(tree),
        Folded("The same as rules", [Listing(rules)]),
    ]
    which = used_maps(tree)[:MOST_MAPS]
    if which and features.has_maps:
        alt = f"For {', '.join(f'map_{k}' for k in which)}: the pictures that activate it most, with a heat map."
        blocks += [Words(_MAPS), Bitmap("What its maps respond to", _drawn_maps(features, pictures, which), alt)]
    return Section("tree", "The tree's tests", blocks, {"rules": rules, "maps": [f"map_{k}" for k in which]})


def _drawn_maps(features: Any, pictures: PictureFolder, which: list[int]) -> bytes:
    import matplotlib.pyplot as plt

    from margrove.plots import plot_feature_maps

    with plt.rc_context():
        plt.switch_backend("Agg")
        figure = plot_feature_maps(features, pictures, pictures.labels, which=which)[0, 0].figure
        content = io.BytesIO()
        figure.savefig(content, format="png", dpi=90, metadata={"Software": None})
        plt.close(figure)
    return content.getvalue()


def _proof(learner: Any, certificate: Certificate, *, is_recomputed: bool) -> Section:
    verdict = verdict_words(certificate, is_saved=not is_recomputed)
    words = [*certificate_words(learner), *([_OF_TRAINING] if isinstance(learner, FineTuned) else [])]
    blocks: list[Block] = [
        Words(f"{verdict}."),
        *map(Words, words),
        note(_UNPROVEN),
        Folded("Every claim, with its numbers", [claims_grid(certificate), *leave_one_out(learner)]),
        Words("To recompute it from the model and the pictures it was trained on:"),
        Listing("margrove certify MODEL FOLDER"),
    ]
    return Section("proof", "What is proven", blocks, certificate.to_dict())


def _course(learner: Any) -> Section:
    """Show fine-tuning, epoch by epoch."""
    has_held_out = any("held_out_loss" in line for line in learner.course_)
    rows = []
    for number, line in enumerate(learner.course_, start=1):
        held_out = [f"{line['held_out_loss']:.3f}", percent(line["held_out_accuracy"])] if has_held_out else []
        rows.append([f"{number}", f"{line['loss']:.3f}", *held_out])
    header = ["epoch", "loss", *(["loss, held out", "accuracy, held out"] if has_held_out else [])]
    kept = ""
    if has_held_out and learner.course_:
        best = 1 + int(np.argmin([line["held_out_loss"] for line in learner.course_]))
        kept = f" The weights after epoch {best} were the best on held-out pictures, and are kept."
    words = f"{len(rows):,} passes over the pictures, of {learner.epochs:,} at most.{kept}"
    blocks: list[Block] = [Words(words), Grid(header, rows, "", frozenset(range(len(header))))]
    return Section("course", "Progress of the training", blocks, {"epochs": [dict(line) for line in learner.course_]})


def _about(first: Any, learner: Any, certificate: Certificate) -> Section:
    seen = first.preparation_
    parameters = plain_parameters(learner)
    facts = [
        ["network", first.network_name_],
        ["its fingerprint", first.network_digest_],
        *([["layer", first.layer_]] if first is not learner else []),
        ["input", f"{seen.size} × {seen.size} pixels, {'grey' if seen.mode == 'L' else 'in colour'}"],
        ["learner", f"{type(learner).__name__}, {certificate.status}"],
        ["made by", f"Margrove {version('margrove')}"],
    ]
    rows = [[name, str(value)] for name, value in parameters.items()]
    blocks: list[Block] = [
        Grid(["", ""], facts),
        Folded("All parameters", [Grid(["parameter", "value"], rows)]),
        Words("To predict other pictures (a folder or one file):"),
        Listing("margrove predict MODEL FOLDER"),
    ]
    data = {
        "network": {"name": first.network_name_, "fingerprint": first.network_digest_},
        "class": type(learner).__name__,
        "parameters": parameters,
        "margrove": version("margrove"),
    }
    return Section("about", "About this page", blocks, data)
