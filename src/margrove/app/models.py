"""Where a model goes to and comes from, and the table it wants."""

from __future__ import annotations

import io
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from margrove.app.options.menu import Learner
from margrove.app.options.preparation import AS_USUAL, Preparation
from margrove.app.options.table import STANDARD_STREAM
from margrove.app.screen.console import put
from margrove.app.screen.advice import warnings_in_shell
from margrove.data import Table, TableEncoder
from margrove.data.inspection import is_identifier
from margrove.errors import ConvergenceWarning, DataWarning, InputError, ModelFileError
from margrove.store import describe, load, save
from margrove.store.fault import FaultError
from margrove.store.files import write


def build_model(
    learner: Learner,
    params: dict[str, Any],
    *,
    seed: int,
    time_limit: float | None,
    preparation: Preparation = AS_USUAL,
) -> Any:
    """The unfitted model: numbers are made of the table, unless the learner takes it as it is, then learned from."""
    from sklearn.pipeline import Pipeline

    estimator = learner.estimator(params, seed=seed, time_limit=time_limit)
    if learner.takes_tables:
        return estimator
    return Pipeline([("encode", preparation.encoder()), ("learn", estimator)])


def table_for(learner: Learner, table: Table) -> Table:
    """What the learner learns from. An encoder leaves columns out that name the rows; a learner without one gets none.

    Raises
    ------
    InputError
        If no column is left.
    """
    if not learner.takes_tables or table.sparse is not None or table.block is not None:
        return table
    names = [column.name for column in table if not is_identifier(column)]
    if not names:
        problem = "no column is left to learn from: each names the rows"
        raise InputError(problem, file=table.source, cure="Add columns that say something of several rows.")
    return table.select(names) if len(names) < table.n_columns else table


def fit_model(model: Any, table: Table) -> list[str]:
    """Fit on all rows; the answer is what the user should be warned of, each thing once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for told in (DataWarning, ConvergenceWarning):  # odd columns by `facts_of`, the status by `tell_verdict`
            warnings.simplefilter("ignore", told)
        model.fit(table, table.labels())
    return warnings_in_shell(caught)


def target_of(model: Any) -> str | None:
    """The name of the column that the model predicts; None where the model was not made by the command line."""
    encoder = encoder_of(model)
    if encoder is None and is_coded(model):
        return target_of(learner_of(model).estimators_[0])
    target: str | None = getattr(learner_of(model) if encoder is None else encoder, "target_", None)
    return target


def encoder_of(model: Any) -> TableEncoder | None:
    """The encoder in front, where there is one."""
    first = model[0] if hasattr(model, "steps") else None
    return first if isinstance(first, TableEncoder) else None


def check_destination(path: str) -> bool:
    """Refuse, before any work is done, a place that a model cannot be written to. True: it replaces a model.

    Raises
    ------
    InputError
        If the folder is not there or may not be written to, or the file is something other than a model, or a terminal.
    """
    if path == STANDARD_STREAM:
        if sys.stdout.isatty():
            raise InputError("a model is no text for a terminal", file="-o -", cure="Send it on: -o - | …, or -o FILE.")
        return False
    check_folder(path, "model.margrove")
    if not Path(path).is_file():
        return False  # not there yet; or a pipe or a device, to be written into
    try:
        describe(path)
    except ModelFileError as error:
        problem = "there is such a file already and it is not a Margrove model, so it is not overwritten"
        raise InputError(problem, file=path, cure="Choose another name: -o.") from error
    return True


def check_folder(path: str, example: str, option: str = "-o") -> None:
    """Refuse a path whose folder cannot take a file; `example` is the name of one that would do, and `option` what
    names another.

    Raises
    ------
    InputError
        If it is a folder itself, or its folder is not there or may not be written to.
    """
    file = Path(path)
    folder = file.parent
    if file.is_dir():
        raise InputError("is a folder", file=path, cure=f"Add the name of a file, such as {example}.")
    if file.exists() and not file.is_file():
        return  # a pipe or a device: its folder stays as it is
    if not folder.is_dir():
        raise InputError(
            f"there is no folder {str(folder)!r}", file=path, cure=f"Make it first, or choose another: {option}."
        )
    if not os.access(folder, os.W_OK):
        raise InputError(
            f"the folder {str(folder)!r} may not be written to", file=path, cure=f"Choose another: {option}."
        )


def check_output(output: str, example: str, *inputs: str | None) -> None:
    """Refuse, before any work, a place that cannot be written to (see `check_folder`), or that is being read."""
    if output == STANDARD_STREAM:
        return
    check_folder(output, example)
    for path in filter(None, inputs):
        is_read = path != STANDARD_STREAM and os.path.exists(path) and os.path.exists(output)
        if is_read and os.path.samefile(path, output):
            raise InputError("is what is being read, so it is not overwritten", file=output, cure="Choose another: -o.")


def write_content(content: bytes, path: str | Path) -> None:
    """Write a file, all of it or nothing; one that is there keeps its permissions."""
    try:
        write(path, content)
    except FaultError as error:
        raise InputError(error.problem, file=str(path), cure="Choose another place: -o.") from error


def write_model(model: Any, path: str) -> None:
    """Save the model, or send it down the pipe."""
    if path != STANDARD_STREAM:
        save(model, path)
        return
    # In memory first: a pipe gets all of it or nothing.
    content = io.BytesIO()
    save(model, content)
    put(content.getvalue())


def read_model(path: str) -> Any:
    """Load the model from a file, or from the pipe."""
    if path == STANDARD_STREAM:
        return load(io.BytesIO(sys.stdin.buffer.read()))
    return load(path)


def learner_of(model: Any) -> Any:
    """The learner itself."""
    return model[-1] if hasattr(model, "steps") else model


def is_classifier(learner: Any) -> bool:
    """Whether it tells classes apart; a file may hold a regression or a one-class machine too."""
    return hasattr(learner, "classes_")


def is_tree(model: Any) -> bool:
    """Whether it is a decision tree, alone or at the end of a pipeline."""
    return hasattr(learner_of(model), "tree_")


def is_coded(model: Any) -> bool:
    """Whether it is a scheme for many classes, of several machines, alone or at the end of a pipeline."""
    return hasattr(learner_of(model), "code_")


def is_boosted(model: Any) -> bool:
    """Whether it is a vote of learners, alone or at the end of a pipeline."""
    return hasattr(learner_of(model), "estimator_weights_")


def has_rules(model: Any) -> bool:
    """Whether it is a tree of ours, or trees of ours that vote."""
    return is_tree(model) or (is_boosted(model) and learner_of(model).model_ is not None)


def takes_tables(model: Any) -> bool:
    """Whether it predicts from a table as it is: an encoder in front, or trees of named columns, or machines such."""
    if is_coded(model) and encoder_of(model) is None:
        return takes_tables(learner_of(model).estimators_[0])
    return encoder_of(model) is not None or (has_rules(model) and hasattr(model, "feature_names_in_"))


def features_of(model: Any, table: Table) -> Any:
    """The table in the form the model takes: as it is, or as an array for a model that was trained on one."""
    if takes_tables(model):
        return table
    names = [str(name) for name in getattr(model, "feature_names_in_", table.names)]
    if len(names) != model.n_features_in_:
        found = f"has {len(names)} columns, and the model takes {model.n_features_in_}"
        raise InputError(
            found, file=table.source, cure="This model was trained on an array, whose columns have no names."
        )
    chosen = table.select(names)
    if chosen.sparse is not None or chosen.block is not None:
        return chosen.block if chosen.sparse is None else chosen.sparse
    for column in chosen:
        if column.kind != "numeric":
            cure = "This model was trained on numbers, without an encoder."
            raise InputError(f"is a {column.kind}, not numbers", file=table.source, column=column.name, cure=cure)
    return np.column_stack([column.values for column in chosen])
