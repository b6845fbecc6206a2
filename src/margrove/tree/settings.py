"""The parameters of the trees, checked, and what they come to for a given table."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any, get_args

import numpy as np
from sklearn.utils import check_random_state

from margrove.errors import ParameterError, check_choice, check_flag, check_number, check_whole, shown
from margrove.tree.problem import VALUE_CRITERIA, Criterion, Growth, SplitScore, Thresholds
from margrove.tree.prune import RULES
from margrove.tree.significance import check_share

CATEGORICAL = ("auto", "multiway", "subset", "one_vs_rest")
_SAME: dict[str, Criterion] = {"log_loss": "entropy"}  # scikit-learn has both words


def settle_criterion(name: Any, allowed: tuple[Criterion, ...]) -> Criterion:
    """The criterion by its own name."""
    check_choice("criterion", name, (*allowed, *(word for word, own in _SAME.items() if own in allowed)))
    criterion: Criterion = _SAME.get(name, name)
    return criterion


def check_settings(tree: Any) -> None:
    """Everything that can be said without the data."""
    check_choice("split_score", tree.split_score, get_args(SplitScore))
    check_choice("thresholds", tree.thresholds, get_args(Thresholds))
    check_choice("categorical", tree.categorical, CATEGORICAL)
    check_choice("prune", tree.prune, (None, *RULES))
    if tree.max_depth is not None:
        check_whole("max_depth", tree.max_depth, least=1, cure="None means no limit.")
    if tree.max_leaf_nodes is not None:
        check_whole("max_leaf_nodes", tree.max_leaf_nodes, least=2, cure="None means no limit.")
    check_number("min_impurity_decrease", tree.min_impurity_decrease, least=0)
    check_number("min_gain", tree.min_gain, least=0)
    check_number("complexity", tree.complexity, least=0)
    check_number("min_weight_fraction_leaf", tree.min_weight_fraction_leaf, least=0)
    if tree.min_weight_fraction_leaf > 0.5:
        raise ParameterError(f"min_weight_fraction_leaf is {tree.min_weight_fraction_leaf}; it must be 0.5 at most.")
    majority = getattr(tree, "majority", 1.0)
    check_number("majority", majority, above=0)
    if majority > 1:
        raise ParameterError(f"majority is {majority}; it is a share, so 1 at most.")
    check_whole("n_bins", tree.n_bins, least=2)
    check_flag("correct_significance", tree.correct_significance)
    if tree.significance is not None:
        check_share("significance", tree.significance)
    if tree.prune_level is not None:
        check_share("prune_level", tree.prune_level)
    check_share("validation_fraction", tree.validation_fraction)
    if not (isinstance(tree.ccp_alpha, str) and tree.ccp_alpha == "cv"):
        check_number("ccp_alpha", tree.ccp_alpha, least=0, cure="Or 'cv': chosen by cross-validation.")


def check_prune(rule: Any, criterion: Criterion) -> None:
    """Some rules count errors of classes."""
    if rule in ("binomial_test", "pessimistic") and criterion in VALUE_CRITERIA:
        rules = ", ".join(repr(other) for other in RULES if other not in ("binomial_test", "pessimistic"))
        raise ParameterError(f"prune is {rule!r}, which counts errors of classes; for numbers it must be {rules}.")


def settle_seed(random_state: Any) -> int:
    """A number for all that is random in a fit: the same every time where none is given."""
    if random_state is None:
        return 0
    try:
        generator = check_random_state(random_state)
    except ValueError as error:
        raise ParameterError(
            f"random_state is {shown(random_state)}; it must be None, a whole number below 2³², or a RandomState."
        ) from error
    return int(random_state) if isinstance(random_state, (int, np.integer)) else int(generator.randint(2**31 - 1))


class DrawnSeed:
    """What an estimator with a ``random_state`` needs to be random in the same way again, for its certificate."""

    random_state: Any

    def _draw_seed(self) -> None:
        """Take note of what a generator gives: asked again, for the certificate, it would give another number."""
        self.__dict__.pop("_drawn_seed", None)
        seed = settle_seed(self.random_state)
        if not (self.random_state is None or isinstance(self.random_state, Integral)):
            self._drawn_seed = seed

    def _seed(self) -> int:
        """The number for all that is random in this fit."""
        return settle_seed(getattr(self, "_drawn_seed", self.random_state))


def settle_growth(tree: Any, criterion: Criterion, n_rows: int, n_columns: int, weight: float, seed: int) -> Growth:
    """How a tree of this table is grown."""
    return Growth(
        criterion=criterion,
        split_score=tree.split_score,
        thresholds=tree.thresholds,
        max_depth=None if tree.max_depth is None else int(tree.max_depth),
        min_samples_split=max(2, _count("min_samples_split", tree.min_samples_split, n_rows, least=2)),
        min_samples_leaf=_count("min_samples_leaf", tree.min_samples_leaf, n_rows, least=1),
        min_weight_leaf=float(tree.min_weight_fraction_leaf) * weight,
        max_leaf_nodes=None if tree.max_leaf_nodes is None else int(tree.max_leaf_nodes),
        max_features=columns_looked_at(tree.max_features, n_columns),
        min_impurity_decrease=float(tree.min_impurity_decrease),
        min_gain=float(tree.min_gain),
        majority=float(getattr(tree, "majority", 1.0)),
        complexity=float(tree.complexity),
        n_bins=min(int(tree.n_bins), max(2, n_rows)),  # there are no more values to tell apart
        seed=None if tree.random_state is None and tree.max_features is None else seed,
    )


def _count(name: str, value: Any, n_rows: int, *, least: int) -> int:
    """A number of rows, given as such or as a share of all."""
    if isinstance(value, (float, np.floating)) and not float(value).is_integer():
        check_number(name, value, above=0)
        if value > 1:
            raise ParameterError(f"{name} is {value}; a share of the rows is at most 1.0, a number of rows is whole.")
        return max(least if name == "min_samples_leaf" else 2, math.ceil(float(value) * n_rows))
    if isinstance(value, (float, np.floating)):
        if value == 1.0:
            return n_rows  # the share 1.0, as scikit-learn has it
        raise ParameterError(f"{name} is {value}; it must be a whole number ≥ {least}, or a share below 1.")
    check_whole(name, value, least=least, cure="Or a share of the rows, such as 0.01.")
    return min(int(value), n_rows + 1)  # no node has more, and the core may double it


def columns_looked_at(value: Any, n_columns: int) -> int | None:
    """How many columns each node looks at; None: at all."""
    if value is None:
        return None
    if isinstance(value, str):
        check_choice("max_features", value, ("sqrt", "log2"))
        size = math.sqrt(n_columns) if value == "sqrt" else math.log2(n_columns)
        return max(1, int(size))
    if isinstance(value, (float, np.floating)):
        check_number("max_features", value, above=0)
        if value > 1:
            raise ParameterError(f"max_features is {value}; a share of the columns is at most 1.0.")
        return max(1, int(value * n_columns))
    check_whole("max_features", value, least=1, cure="Or 'sqrt', 'log2', or a share of the columns.")
    return min(int(value), n_columns)
