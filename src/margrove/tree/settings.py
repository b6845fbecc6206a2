"""The parameters of the trees: their checks, and their values for a given table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, Literal, cast, get_args

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from margrove.advice import Advice, Parameter, Value
from margrove.engine.estimator import RunsOnEngine
from margrove.errors import (
    ParameterError,
    check_choice,
    check_flag,
    check_number,
    check_seed,
    check_share,
    check_whole,
    shown,
)
from margrove.estimator import checked, estimator, fixed
from margrove.run.effort import check_time_limit
from margrove.tree.problem import Criterion, Growth, SplitScore, Thresholds
from margrove.tree.prune import RULES, Rule

Categorical = Literal["auto", "multiway", "subset", "one_vs_rest"]
_NO_LIMIT = Advice(Value(None), " means no limit.")
# Words of scikit-learn's. For two branches, friedman_mse prefers the same splits as the squared error.
_SAME = {"log_loss": "entropy", "friedman_mse": "squared_error"}


def settle_criterion(name: str, allowed: tuple[Criterion, ...]) -> Criterion:
    """The criterion by its own name."""
    check_choice("criterion", name, words_of(allowed))
    return cast(Criterion, _SAME.get(name, name))


def words_of(criteria: tuple[Criterion, ...]) -> tuple[str, ...]:
    """Return the names of some criteria, scikit-learn's included."""
    return *criteria, *(word for word, own in _SAME.items() if own in criteria)


def settle_seed(random_state: int | np.random.RandomState | None) -> int:
    """A number for all that is random in a fit: the same every time where none is given."""
    if random_state is None:
        return 0
    check_seed("random_state", random_state)
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


@estimator
class DrawnSeed:
    """An estimator with a ``random_state`` that draws the same numbers again for its certificate. Base class."""

    random_state: int | np.random.RandomState | None = None

    def _draw_seed(self) -> None:
        """Keep the number that a generator gives: the next one, for the certificate, would be another."""
        self.__dict__.pop("_drawn_seed", None)
        seed = settle_seed(self.random_state)
        if not (self.random_state is None or isinstance(self.random_state, Integral)):
            self._drawn_seed = seed

    def _seed(self) -> int:
        return settle_seed(getattr(self, "_drawn_seed", self.random_state))


@estimator
class TreeParameters(DrawnSeed, RunsOnEngine):
    """The parameters of a tree. Base class."""

    criterion: str = "gini"
    split_score: SplitScore = checked(check_choice, allowed=get_args(SplitScore), default="gain")
    splitter: str = checked(check_choice, allowed=("best", "random"), default="best")
    thresholds: Thresholds = checked(
        check_choice, allowed=("exact", "histogram", "gaussian", "logistic"), default="exact"
    )
    categorical: Categorical = checked(check_choice, allowed=get_args(Categorical), default="auto")
    categorical_features: ArrayLike | None = "from_dtype"
    split_values: Mapping[Any, Sequence[float]] | None = None
    max_depth: int | None = checked(check_whole, least=1, cure=_NO_LIMIT, default=None)
    min_samples_split: int | float = 2
    min_samples_leaf: int | float = 1
    min_weight_fraction_leaf: float = checked(check_number, least=0, most=0.5, default=0.0)
    max_features: int | float | str | None = None
    max_leaf_nodes: int | None = checked(check_whole, least=2, cure=_NO_LIMIT, default=None)
    min_impurity_decrease: float = checked(check_number, least=0, default=0.0)
    min_gain: float = checked(check_number, least=0, default=0.0)
    majority: float = fixed(1.0)
    complexity: float = checked(check_number, least=0, default=0.0)
    significance: float | None = checked(check_share, default=None)
    correct_significance: bool = checked(check_flag, default=True)
    prune: Rule | None = checked(check_choice, allowed=(None, *RULES), default=None)
    prune_level: float | None = checked(check_share, default=None)
    validation_fraction: float = checked(check_share, default=0.25)
    ccp_alpha: float | str = checked(
        check_number, least=0, cure="Or 'cv', to choose it by cross-validation.", also=("cv",), default=0.0
    )
    monotonic_cst: ArrayLike | Mapping[Any, int] | None = None
    n_bins: int = checked(check_whole, least=2, default=255)
    time_limit: float | None = checked(check_time_limit, default=None)

    def _growth(self, criterion: Criterion, n_rows: int, n_columns: int, weight: float) -> Growth:
        """Return how a tree of a table with so many rows and columns is grown."""
        is_random = self.splitter == "random"
        if is_random and self.thresholds != "exact":
            raise ParameterError(f"splitter is 'random' and thresholds is {self.thresholds!r}. Use one of the two.")
        is_drawn = is_random or self.random_state is not None or self.max_features is not None
        return Growth(
            criterion=criterion,
            split_score=self.split_score,
            thresholds="random" if is_random else self.thresholds,
            max_depth=None if self.max_depth is None else int(self.max_depth),
            min_samples_split=max(2, _count("min_samples_split", self.min_samples_split, n_rows, least=2)),
            min_samples_leaf=_count("min_samples_leaf", self.min_samples_leaf, n_rows, least=1),
            min_weight_leaf=float(self.min_weight_fraction_leaf) * weight,
            max_leaf_nodes=None if self.max_leaf_nodes is None else int(self.max_leaf_nodes),
            max_features=columns_looked_at(self.max_features, n_columns),
            min_impurity_decrease=float(self.min_impurity_decrease),
            min_gain=float(self.min_gain),
            majority=float(self.majority),
            complexity=float(self.complexity),
            n_bins=min(int(self.n_bins), max(2, n_rows)),  # there are no more distinct values
            seed=self._seed() if is_drawn else None,
        )


def _count(name: str, value: int | float, n_rows: int, *, least: int) -> int:
    """A number of rows, given as such or as a share of all."""
    if isinstance(value, (float, np.floating)) and not float(value).is_integer():
        check_number(name, value, above=0)
        if value > 1:
            raise ParameterError(f"{name} is {value}; it must be a share of the rows ≤ 1.0 or a whole number of rows.")
        return max(least if name == "min_samples_leaf" else 2, math.ceil(float(value) * n_rows))
    if isinstance(value, (float, np.floating)):
        if value == 1.0:
            return n_rows  # the share 1.0, as scikit-learn has it
        raise ParameterError(f"{name} is {value}; it must be a whole number ≥ {least}, or a share below 1.")
    check_whole(name, value, least=least, cure="Or a share of the rows, such as 0.01.")
    return min(int(value), n_rows + 1)  # no node has more, and the core may double it


def columns_looked_at(value: int | float | str | None, n_columns: int) -> int | None:
    """Return the number of columns that each node draws; None for all."""
    if value is None:
        return None
    if isinstance(value, str) and value in ("sqrt", "log2"):
        return max(1, int(math.sqrt(n_columns) if value == "sqrt" else math.log2(n_columns)))
    if isinstance(value, (float, np.floating)) and 0 < value <= 1:
        return max(1, int(value * n_columns))
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value >= 1:
        return min(int(value), n_columns)
    wanted = "'sqrt', 'log2', a whole number ≥ 1, a share of the columns > 0 and ≤ 1.0, or "
    found = f" is {shown(value)}; it must be "
    raise ParameterError(Advice(Parameter("max_features"), found, wanted, Value(None), "."))
