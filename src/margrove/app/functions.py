"""`auto` and `report`: ``margrove train`` and ``margrove report`` for tables in memory."""

from __future__ import annotations

import re
import time
import warnings
from pathlib import Path
from typing import Any

from margrove.app.estimate.words import never_words
from margrove.app.files import write_content
from margrove.app.models import target_of
from margrove.app.options.menu import AUTO
from margrove.app.options.table import Reading
from margrove.app.options.training import Training
from margrove.app.report.writing import check_format, in_format, report_of
from margrove.app.screen.console import Screen
from margrove.app.train import learn
from margrove.data import Table, as_table
from margrove.data.columns import column_from_objects
from margrove.errors import MargroveWarning, ParameterError


def auto(
    X: Any,
    y: Any = None,
    *,
    target: str | None = None,
    model: str = AUTO,
    metric: str | None = None,
    balanced: bool = False,
    probabilities: bool = False,
    task: str | None = None,
    prefer: str = "best",
    budget: float = 60.0,
    random_state: int = 0,
    verbose: bool = False,
) -> Any:
    """Choose, fit and certify a model of a table, as ``margrove train`` does.

    Parameters
    ----------
    X : data frame, Table, array or list of rows
    y : array of shape (n,), optional
        The target, if it is not a column of X.
    target : str, optional
        The column of X to predict.
    model : str, default="auto"
        "auto" tries several learners; or one of them, such as "svm", "linear" or "tree".
    metric : str, optional
        What models are chosen and judged by: "accuracy", "balanced_accuracy", "f1", "roc_auc", "average_precision",
        "log_loss" or costs such as "cost:Yes>No=10"; of numbers "r2", "mae", "rmse" or "pinball:0.9". None is "r2";
        or "accuracy", and "balanced_accuracy" where a class is rare.
    balanced : bool, default=False
        Give all classes the same weight in training.
    probabilities : bool, default=False
        Give the model probabilities of its classes, calibrated on held-out rows.
    task : {"classify", "regress"}, optional
        None: as the target looks.
    prefer : {"best", "simple"}, default="best"
        The learner with the best score, or the simplest within one standard error of it.
    budget : float, default=60
        Seconds for all of it.
    random_state : int, default=0
        The seed of folds and samples.
    verbose : bool, default=False
        Print what the command line prints.

    Returns
    -------
    fitted estimator or Pipeline
        With its certificate (``certificate_`` of the last step) and ``training_record_``: the learners tried, the
        choice and the estimate on unseen rows, for `margrove.report`.

    Examples
    --------
    >>> import margrove
    >>> model = margrove.auto(margrove.load_penguins(), model="tree", budget=10)
    >>> f"{model.training_record_['estimate']['value']:.2f}"
    '0.98'
    """
    table = _with_target(X, y, target)
    if target is not None and y is None and table.target is None:
        table[target]  # raises, naming the columns there are
    try:
        training = Training(
            model,
            {},
            random_state,
            budget=budget,
            task=task,
            prefer=prefer,
            metric=metric,
            is_balanced=balanced,
            has_probabilities=probabilities,
        )
        training.check()
        trained, _ = learn(Screen(is_quiet=not verbose), Reading(held=table), training, time.monotonic())
    except ParameterError as error:
        raise ParameterError(_in_python(str(error))) from None
    never = trained.decision.estimate.never
    for text in () if verbose else (*trained.facts.leaks, *trained.warnings, *([never_words(never)] if never else [])):
        warnings.warn(_in_python(text), MargroveWarning, stacklevel=2)
    return trained.model


def report(model: Any, X: Any, y: Any = None, path: str | Path | None = None, *, format: str = "html") -> str:
    """Write a report of a fitted model on a table, for a reader without mathematics.

    Parameters
    ----------
    model : a fitted estimator of Margrove's, or a ``Pipeline`` of a `TableEncoder` and one
        Of a model of `margrove.auto` the report also describes the training.
    X : data frame, Table, array or list of rows
    y : array of shape (n,), optional
        The true values, if they are known and not a column of X.
    path : str or Path, optional
        The file to write. None: only the text is returned.
    format : {"html", "json", "md"}

    Returns
    -------
    str
        The report.

    Examples
    --------
    >>> import margrove
    >>> penguins = margrove.load_penguins()
    >>> model = margrove.DecisionTreeClassifier(max_depth=2).fit(penguins, penguins.labels())
    >>> margrove.report(model, penguins, format="md").splitlines()[0]
    "# How 'species' is predicted"
    """
    check_format(format)
    table = _with_target(X, y, None if y is not None else target_of(model))
    content = in_format(report_of(model, table), format)
    if path is not None:
        write_content(content, path)
    return content.decode()


def _with_target(X: Any, y: Any, target: str | None) -> Table:
    table = as_table(X)
    if y is not None:
        if target is not None:
            raise ParameterError("y and target are both given; leave one of them out.")
        name = getattr(y, "name", None)
        labels = column_from_objects("target" if name is None else str(name), y.tolist() if hasattr(y, "tolist") else y)
        return table.with_target(labels)
    if target is not None and target in table:
        return table.without(target).with_target(table[target])
    return table


def _in_python(text: str) -> str:
    """Return a message with the names of parameters in place of options."""
    return re.sub(r"--([a-z]+(?:-[a-z]+)*)", lambda match: match[1].replace("-", "_"), text)
