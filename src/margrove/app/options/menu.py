"""The learners that the command line offers, one line each. A new learner is one more line.

Nothing heavy is imported here: the names are needed for ``--help`` and for shell completion.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

AUTO = "auto"  # of ``train``: try several, and take the best
# Of ``compare --schemes``: by 5-fold cross-validation on 23 real tables (all numbers are in docs/guide/command-line.md)
# the support vector machine has the best mean rank, and no fit of them takes 3 s.
DEFAULT = "svm"


TASKS = ("classify", "regress")
_NUMBER_OR_WORD = ("ccp_alpha",)  # parameters that are numbers by default and may be words


@dataclass(frozen=True)
class Learner:
    """One choice of ``--model``."""

    name: str  # as typed after ``--model``
    class_name: str  # the estimator, as `margrove` exports it
    words: str  # what it does, for a reader who knows no mathematics
    defaults: Mapping[str, Any] = field(default_factory=dict)  # in which the command line departs from the class
    is_searched: bool = (
        False  # ``train`` searches its C, and its gamma where it has one (by the class of its name + CV)
    )
    takes_tables: bool = False  # learns from categories and missing cells as they are; others get an encoder in front
    keeps_sparse: bool = False  # a sparse table is left as it is, not scaled
    boosted: Mapping[str, Any] | None = None  # of a vote: parameters of its trees; regression trees estimate numbers
    remark: str = ""  # what ``train`` says of the defaults: what was chosen, and why
    regression: Learner | None = None  # the same learner where the target is a number, if there is one

    def is_as_it_comes(self, params: Mapping[str, Any]) -> bool:
        """Whether none of what the command line settles is settled otherwise."""
        return not params.keys() & {*self.defaults, *(f"estimator__{name}" for name in self.boosted or ())}

    def estimator(self, params: Mapping[str, Any], *, seed: int, time_limit: float | None) -> Any:
        """The unfitted estimator; `ParameterError` for a parameter that it does not have, or one of a wrong type."""
        import margrove

        kind: Any = getattr(margrove, self.class_name)
        voter = {}
        if self.boosted is not None:
            is_of_numbers = issubclass(kind, margrove.AdaBoostRegressor)
            tree = margrove.DecisionTreeRegressor if is_of_numbers else margrove.DecisionTreeClassifier
            voter = {"estimator": tree(**self.boosted)}
        estimator = kind(**voter, **self.defaults)
        own = estimator.get_params()
        for name, value in params.items():
            _check_param(self.name, own, name, value)
        shared = {"random_state": seed, "time_limit": time_limit}
        if self.takes_tables and self.boosted is None:
            # A tree without a random state takes the first of equal columns: nobody wants another for another --seed.
            del shared["random_state"]
        estimator.set_params(**{name: value for name, value in shared.items() if name in own})
        return estimator.set_params(**params)


LEARNERS: dict[str, Learner] = {
    learner.name: learner
    for learner in (
        Learner("basic", "BasicLinearClassifier", "halfway between the class means"),
        Learner("least-squares", "LeastSquaresClassifier", "the plane with the least squared error"),
        # Averaged, because real tables are seldom separable and then the last weights are as good as any. On the 23
        # tables 100 passes are as accurate as 1000 (mean 87.7 and 87.8 %) in a tenth of the time.
        Learner(
            "perceptron", "Perceptron", "corrects its mistakes, averaged", {"variant": "averaged", "max_iter": 100}
        ),
        # Sparse numbers as they are: on reuters (tf-idf) 97.4 % of the test rows at the best C, 97.0 with each column
        # divided by its root mean square, which blows up rare words; on a9a and w8a (zeros and ones) the same.
        Learner(
            "linear",
            "LinearSVC",
            "the widest margin, with a flat boundary",
            is_searched=True,
            keeps_sparse=True,
            # A squared loss and a free intercept: the unit and the zero of the target do not matter.
            regression=Learner(
                "linear",
                "LinearSVR",
                "a weight for each column",
                {"loss": "squared_epsilon_insensitive", "regularize_intercept": False},
                is_searched=True,
                keeps_sparse=True,
                remark="Its loss is squared (loss=squared_epsilon_insensitive) and its intercept free "
                "(regularize_intercept=false), so that the unit and the zero of the target do not matter.",
            ),
        ),
        Learner("kernel-perceptron", "KernelPerceptron", "corrects its mistakes, with a boundary that bends"),
        # Of the prices 0, 0.2, 0.5, 0.7, 1 and six pruning rules this has the best mean, 10-fold cross-validated on 22
        # real tables (docs/guide/trees.md): 90.9 % with 22 leaves; without a price 90.8 % with 38. And a column of very
        # many levels, such as titanic's tickets, cannot win by chance: its questions take many bits to name.
        Learner(
            "tree",
            "DecisionTreeClassifier",
            "one question after the other",
            {"criterion": "entropy", "complexity": 0.7, "prune": "pessimistic"},
            takes_tables=True,
            remark="It asks only what gains more than a price of 0.7 for each bit that the question takes to say "
            "(criterion=entropy, complexity=0.7), and prunes what would not help on new rows (prune=pessimistic): the "
            "best of the rules tried on 22 real tables.",
            # 5-fold on eight real tables the mean R² is 0.32, as good as by cost complexity at a thirtieth of its
            # time; unpruned it is below 0, by description length 0.28.
            regression=Learner(
                "tree",
                "DecisionTreeRegressor",
                "one question after the other, then a mean",
                {"significance": 0.05},
                takes_tables=True,
                remark="It asks only what would hardly come about by chance (significance=0.05).",
            ),
        ),
        # Of depths 1 to 6, 50 to 400 rounds, with and without early stopping: the best mean on 23 real tables, but for
        # settings with more knobs that are within noise of it (docs/guide/boosting.md). Subsets of very many levels,
        # such as titanic's tickets, fit whatever rows weigh most: one level against the rest has 81 % there, not 67.
        Learner(
            "adaboost",
            "AdaBoostClassifier",
            "small trees vote, each on what the ones before got wrong",
            {"n_estimators": 200, "early_stopping": False},
            takes_tables=True,
            boosted={"max_depth": 3, "categorical": "one_vs_rest"},
            remark="It boosts 200 trees, at most three questions deep (n_estimators=200, estimator__max_depth=3), "
            "which ask of a category for one level at a time, and holds no rows out to stop earlier "
            "(early_stopping=true does): the best of what was tried on 23 real tables, but for settings within noise "
            "of it.",
            # 3-fold on nine real tables (1,500 rows at most) the mean R² is 0.44; a tree alone has 0.35, trees of
            # depth 3 or 4 have 0.34, 200 trees of depth 8 0.46 in eight times the time; one level at a time 0.44.
            regression=Learner(
                "adaboost",
                "AdaBoostRegressor",
                "small trees, each on what the ones before got wrong, and their median",
                {"n_estimators": 50},
                takes_tables=True,
                boosted={"max_depth": 6},
                remark="It boosts 50 regression trees, at most six questions deep (n_estimators=50, "
                "estimator__max_depth=6).",
            ),
        ),
        # C = 10 instead of 1 has a better mean yet (91.9 against 91.4 %), but it is worse on noisy tables
        # (german_credit, pima), takes three times as long on the largest, and is not what SVC() means in Python.
        Learner("svm", "SVC", "the widest margin, with a boundary that bends", is_searched=True),
    )
}


def learner_named(name: str, also: Sequence[str] = ()) -> Learner:
    """The learner of that name, or `ParameterError`; ``also`` are words that may stand in its place."""
    from margrove.errors import check_choice

    check_choice("--model", name, (*also, *LEARNERS))
    return LEARNERS[name]


def check_task(task: str | None) -> None:
    """Raise `ParameterError` unless it is one of TASKS, or None: as the target looks."""
    from margrove.errors import check_choice

    if task is not None:
        check_choice("--task", task, TASKS)


def learner_of_numbers(learner: Learner) -> Learner:
    """The same learner for a target that is a number; `ParameterError` if it only tells classes apart."""
    from margrove.errors import ParameterError

    if learner.regression is None:
        able = ", ".join(f"--model {name}" for name, other in LEARNERS.items() if other.regression is not None)
        raise ParameterError(
            f"--task is 'regress', and {learner.name} tells classes apart. What estimates numbers: {able}."
        )
    return learner.regression


def completed_names(incomplete: str) -> list[str]:
    """The learners that a shell may complete this beginning to."""
    return [name for name in LEARNERS if name.startswith(incomplete)]


def completed_choices(incomplete: str) -> list[str]:
    """The same, where the choice may also be left to us."""
    return [name for name in (AUTO, *LEARNERS) if name.startswith(incomplete)]


def parse_params(texts: Sequence[str]) -> dict[str, Any]:
    """``name=value`` pairs; a value is read as JSON, or ``inf``, and as plain text where it is neither.

    Examples
    --------
    >>> from margrove.app.options.menu import parse_params
    >>> parse_params(["max_iter=50", "variant=voted", "tol=null", "C=inf"])
    {'max_iter': 50, 'variant': 'voted', 'tol': None, 'C': inf}
    """
    from margrove.errors import ParameterError

    params: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise ParameterError(f"--param is {text!r}; it must be name=value, such as max_iter=100.")
        if name in params:
            raise ParameterError(f"--param {name} is given twice.")
        try:
            params[name] = json.loads(value)
        except json.JSONDecodeError:
            params[name] = math.inf if value == "inf" else value
    return params


@contextmanager
def parameters_blamed(params: Mapping[str, Any]) -> Iterator[None]:
    """Turn scikit-learn's own words about a ``--param`` that no check of ours foresaw into a `ParameterError`."""
    from margrove.errors import MargroveError, ParameterError

    try:
        yield
    except MargroveError:
        raise
    except (TypeError, ValueError) as error:
        if not params:
            raise
        raise ParameterError(f"the learner refuses --param {', '.join(params)}: {error}") from error


def _check_param(learner: str, own: Mapping[str, Any], name: str, value: Any) -> None:
    """Refuse an unknown name, and a value whose type the estimator could only stumble over."""
    from margrove.errors import ParameterError

    if name not in own:
        raise ParameterError(f"{learner} has no parameter {name!r}; it has {', '.join(own)}.")
    usual = own[name]
    if name in _NUMBER_OR_WORD and isinstance(value, str):
        return
    if isinstance(usual, bool):
        is_right, wanted = isinstance(value, bool), "true or false"
    elif isinstance(usual, int | float):
        is_right, wanted = isinstance(value, int | float) and not isinstance(value, bool), "a number"
    else:
        return
    if not is_right:
        raise ParameterError(f"--param {name} is {value!r}; it must be {wanted} (usually {json.dumps(usual)}).")
