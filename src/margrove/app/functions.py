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
from margrove.data.columns import column_from_objects, named
from margrove.errors import InputError, MargroveWarning, ParameterError


def auto(
    X: Any,
    target: Any = None,
    *,
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
    target : str or array of shape (n,), optional
        The column of X to predict, or the values to predict. None: the target that a Table has.
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
    try:
        table = _with_target(X, target)
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
    except (InputError, ParameterError) as error:
        raise type(error)(_in_python(str(error))) from None
    facts, never = trained.facts, trained.decision.estimate.never
    texts = [*facts.leaks, *trained.warnings]
    if facts.left_out:
        texts.append(
            f"{facts.source}: columns of which nearly every cell is different are left out: {named(facts.left_out)}."
        )
    texts += [never_words(never)] if never else []
    for text in () if verbose else texts:
        warnings.warn(_in_python(text), MargroveWarning, stacklevel=2)
    return trained.model


def report(
    model: Any,
    X: Any,
    y: Any = None,
    path: str | Path | None = None,
    *,
    format: str = "html",
    metric: str | None = None,
) -> str:
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
    metric : str, optional
        As of `margrove.auto`. None: that of the training, or the default for these classes or numbers.

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
    known = target_of(model)
    table = as_table(X)
    if y is not None or (known is not None and known in table):
        table = _with_target(table, known if y is None else y)
    try:
        content = in_format(report_of(model, table, metric), format)
    except ParameterError as error:
        raise ParameterError(_in_python(str(error))) from None
    if path is not None:
        write_content(content, path)
    return content.decode()


def _with_target(X: Any, target: Any) -> Table:
    """Return the table with a target: a column of it, or values; None: as it is."""
    table = as_table(X)
    if target is None:
        return table
    if isinstance(target, str):
        is_own = table.target is not None and table.target.name == target
        return table if is_own else table.with_target(table[target]).without(target)
    values = target.tolist() if hasattr(target, "tolist") else target
    name = getattr(target, "name", None)
    return table.with_target(column_from_objects("target" if name is None else str(name), values))


def _in_python(text: str) -> str:
    """Return a message with the names of parameters in place of options."""
    return re.sub(r"--([a-z]+(?:-[a-z]+)*)", lambda match: match[1].replace("-", "_"), text)
