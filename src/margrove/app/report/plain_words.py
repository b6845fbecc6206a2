"""Models and numbers in the words of somebody who knows no mathematics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from margrove.app.models import is_boosted, is_classifier, is_coded, is_tree, learner_of
from margrove.app.report.measures import Quality
from margrove.app.summary import learned
from margrove.data.columns import clip
from margrove.status import Status

_MOST_DECIMALS = 6  # beyond them a number is written with an exponent
_LISTED = 6  # names in a sentence
# How learning ended, for a reader who does not know the solvers; the last two are of the leaderboard.
_ENDS: dict[str, str] = {
    Status.CONVERGED: "it learned all it could",
    Status.TIME_LIMIT: "its time was over before it had learned all it could",
    Status.MAX_ITER: "it was still learning when its steps were used up",
    Status.INTERRUPTED: "somebody stopped it",
    Status.STALLED: "it came to a point where it could not learn further",
    Status.NONFINITE: "its numbers grew too large",
    Status.PERFECT_LEARNER: "one of its parts makes no mistake, so no more were needed",
    Status.NO_BETTER_THAN_CHANCE: "a further part would have been no better than guessing",
    Status.BOUND_REACHED: "its mistakes on the training rows are as few as was asked for",
    Status.EARLY_STOPPED: "more rounds did not help on rows held out",
    Status.IMPORTED: "another program taught it",
    "not tried": "not tried",
    "failed": "could not be fitted",
}


def status_words(status: str) -> str:
    """How learning ended, in plain words.

    Examples
    --------
    >>> from margrove.app.report.plain_words import status_words
    >>> status_words("converged")
    'it learned all it could'
    """
    return _ENDS.get(str(status), str(status).replace("_", " "))


def share_words(share: float) -> str:
    """A share in per cent; 100 and 0 only if it is all or nothing."""
    if 0 < share < 0.001 or 0.999 < share < 1:
        return f"{100 * share:.2f} %"
    return f"{100 * share:.0f} %" if share in (0.0, 1.0) else f"{100 * share:.1f} %"


def interval_words(quality: Quality) -> str:
    """Where the true value lies with a confidence of 95 %."""
    if quality.low is None or quality.high is None:
        return ""
    if quality.measure != "accuracy":
        return f"{quality.low:.2f} to {quality.high:.2f}"
    return f"{100 * quality.low:.1f} to {100 * quality.high:.1f} %"


def signed(amount: float, most: float) -> str:
    """What something adds or takes away, with as many decimals as the largest amount beside it needs for three digits.

    Examples
    --------
    >>> from margrove.app.report.plain_words import signed
    >>> [signed(amount, 11.5) for amount in (-11.5, 2.213, 0.004, -0.004)]
    ['−11.5', '+2.2', '0.0', '0.0']
    """
    decimals = max(0, 2 - math.floor(math.log10(most))) if most > 0 else 0
    text = f"{amount:+,.{decimals}f}" if decimals <= _MOST_DECIMALS else f"{amount:+.3g}"
    if not any(digit in text for digit in "123456789"):
        return text[1:]
    return f"−{text[1:]}" if amount < 0 else text


def listed(names: Sequence[str], last: str = "or") -> str:
    """A few names as a sentence has them."""
    shown = [clip(name, 40) for name in names[:_LISTED]]
    if len(names) > _LISTED:
        return f"{', '.join(shown)} … ({len(names):,} in all)"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} {last} {shown[-1]}"


def counted(n: int, noun: str) -> str:
    """A number and its noun."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def sentence(text: str) -> str:
    """Words of another part as a sentence: a capital first, a full stop last.

    Examples
    --------
    >>> from margrove.app.report.plain_words import sentence
    >>> sentence("a final hold-out: 200 rows")
    'A final hold-out: 200 rows.'
    """
    text = text.strip()
    return text if not text else text[0].upper() + text[1:] + ("" if text[-1] in ".!?…" else ".")


def kind_words(model: Any) -> str:
    """What kind of model it is, in a sentence."""
    learner = learner_of(model)
    if is_boosted(model) and learner.model_ is None:  # a vote of other learners than trees
        return f"A vote of {learner.n_estimators_:,}: each looked hardest at what the ones before got wrong (AdaBoost)."
    found = learned(model)
    if is_tree(model):
        return f"A decision tree: it asks one question after the other and ends at one of {found.size_words}."
    if is_boosted(model):
        return f"A vote of {found.size_words}: each looked hardest at what the ones before got wrong (AdaBoost)."
    if is_coded(model):
        return (
            f"{found.size_words} that decide together, each between two groups of classes ({type(learner).__name__})."
        )
    is_number = not is_classifier(learner) and not hasattr(learner, "offset_")
    if found.kind == "rows":
        of_all = f" of {found.n_training_rows:,}" if found.n_training_rows else ""
        shape = "A curve that may bend" if is_number else "A boundary that bends, with as wide a margin as possible"
        return (
            f"{shape}: it compares a row with the "
            f"{found.size:,}{of_all} training rows that it remembers ({_name(learner)})."
        )
    if found.kind == "votes":
        return f"A vote of {found.size:,} straight boundaries ({_name(learner)})."
    shape = "A weighted sum" if is_number else "A straight boundary"
    return f"{shape}: it adds up the columns, each with its own weight ({_name(learner)})."


_NAMES = {
    "SVC": "a support vector machine",
    "NuSVC": "a support vector machine",
    "SVR": "a support vector regression",
    "NuSVR": "a support vector regression",
    "LinearSVC": "a linear support vector machine",
    "LinearSVR": "a linear support vector regression",
    "OneClassSVM": "a one-class support vector machine",
    "BasicLinearClassifier": "the basic linear classifier, halfway between the class means",
    "LeastSquaresClassifier": "least squares",
    "Perceptron": "a perceptron",
    "KernelPerceptron": "a kernel perceptron",
    "DecisionTreeClassifier": "a decision tree",
    "DecisionTreeRegressor": "a regression tree",
    "DecisionStump": "a tree of one question",
    "AdaBoostClassifier": "AdaBoost",
    "AdaBoostRegressor": "AdaBoost",
    "OneVsRestClassifier": "one machine for each class",
    "OneVsOneClassifier": "one machine for each pair of classes",
    "BitStringClassifier": "machines by bit strings",
    "SoftmaxClassifier": "softmax, the usual last layer of a network",
    "FineTuned": "a network that was trained on",
}


def _name(learner: Any) -> str:
    return _NAMES.get(type(learner).__name__, type(learner).__name__)


def learner_name(model: Any) -> str:
    """What people call this kind of model."""
    return _name(learner_of(model))
