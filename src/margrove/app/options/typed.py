"""Options that several commands share, one by one and in groups. As in `margrove.app.cli`, no heavy import is made."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import partial, wraps
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from margrove.app.options.menu import AUTO, choices, completed_choices

if TYPE_CHECKING:
    from margrove.app.options.table import Reading, TablePreparation
    from margrove.app.screen.console import Screen

# By the panel of ``--help`` that lists an option.
of_table = partial(typer.Option, rich_help_panel="Table")
of_learning = partial(typer.Option, rich_help_panel="Training")
of_output = partial(typer.Option, rich_help_panel="Output")

_FORMATS = (
    "CSV, Excel, OpenDocument, Parquet, Arrow, JSON lines, ARFF, LIBSVM or .npz, also compressed; SQLite or DuckDB; "
    "FILE::NAME is a sheet or a table; '-' is standard input"
)
File = Annotated[str | None, typer.Argument(help=f"{_FORMATS}. Default: the embedded penguins dataset.")]
Rows = Annotated[
    str | None,
    typer.Argument(help=f"{_FORMATS}; or a picture, or a folder of pictures. Default: the embedded penguins dataset."),
]
ModelFile = Annotated[
    str, typer.Argument(help="A model file written by 'margrove train' or 'margrove images'; '-' is standard input.")
]
Target = Annotated[str | None, of_table(help="The column to predict. Default: the last one.")]
Model = Annotated[
    str | None,
    of_learning(
        help=f"The learner: {AUTO} (tries several and chooses the best), {', '.join(choices())}. Default: {AUTO}.",
        autocompletion=completed_choices,
    ),
]
Prefer = Annotated[
    str,
    of_learning(
        metavar="best|simple",
        help="How auto chooses: the best score, or the simplest learner within one standard error of it.",
    ),
]
Task = Annotated[
    str | None,
    of_learning(
        metavar="classify|regress",
        help="Whether the target is a class or a number. Default: inferred.",
    ),
]
Param = Annotated[
    list[str] | None,
    of_learning(metavar="NAME=VALUE", help="A parameter of the learner, such as C=10; may be repeated."),
]
Metric = Annotated[
    str | None,
    of_learning(
        metavar="NAME",
        help="What models are chosen and judged by: accuracy, balanced_accuracy, f1, roc_auc, average_precision, "
        "log_loss, or costs such as cost:Yes>No=10,No>Yes=1; of numbers r2, mae, rmse or pinball:0.9. Default: r2; "
        "accuracy, or balanced_accuracy where a class is rare; of a report that of the training.",
    ),
]
Balanced = Annotated[
    bool, of_learning("--balanced", help="Give all classes the same weight in training, however few rows they have.")
]
Probabilities = Annotated[
    bool,
    of_learning("--probabilities", help="Give the model probabilities of its classes, calibrated on held-out rows."),
]
Seed = Annotated[int, of_learning(help="The seed for the order of rows and for the folds.", min=0, max=2**32 - 1)]
Folds = Annotated[int, of_learning(help="The number of cross-validation folds; 0 for no cross-validation.")]
TimeLimit = Annotated[float | None, of_learning(help="The time limit of each fit, in seconds.")]
Cluster = Annotated[
    str | None,
    of_learning(
        metavar="ADDRESS",
        help="Work on a Dask cluster: the address of its scheduler, or local for all cores of this machine. FILE may "
        "be a pattern such as 'data/*.parquet'. Trains linear, tree and forest.",
    ),
]
BudgetTime = Annotated[
    str,
    of_learning(
        "--budget",
        metavar="TIME",
        help="The time limit of auto, or of the search of C (linear, svm) and gamma (svm): 60s, 5m, 1h; 0: no search.",
    ),
]
Opened = Annotated[bool, of_output("--open", help="Open the page in a browser.")]


@dataclass(frozen=True)
class CellOptions:
    """The format of a file's cells."""

    missing: Annotated[list[str] | None, of_table(help="A text that marks a missing cell; may be repeated.")] = None
    no_header: Annotated[bool, of_table("--no-header", help="The first line is data, not a header.")] = False
    delimiter: Annotated[str, of_table(help="The character between cells.")] = "auto"
    encoding: Annotated[str, of_table(help="The encoding of a text file.")] = "auto"
    skip: Annotated[int, of_table(metavar="N", help="Leave out the first N lines.", min=0)] = 0
    header_row: Annotated[
        int | None, of_table(metavar="LINE", help="The line with the column names. Default: detected.", min=1)
    ] = None

    category: Annotated[
        list[str] | None,
        of_table(metavar="COL", help="A column of categories, such as codes with digits; may be repeated."),
    ] = None
    number: Annotated[
        list[str] | None,
        of_table(
            metavar="COL[:.|:,]",
            help="A column of numbers, such as 1.234,50 €, perhaps with their decimal sign; may be repeated.",
        ),
    ] = None
    date: Annotated[
        list[str] | None,
        of_table(
            metavar="COL[:dmy|mdy|ymd]",
            help="A column of dates, optionally with the order of day, month and year; may be repeated.",
        ),
    ] = None

    def reading(self, file: str | None, target: str | None = None, **more: Any) -> Reading:
        from margrove.app.options.table import Reading, kinds_of_columns

        own = {**vars(self), "missing": tuple(self.missing or ())}
        own["kinds"] = kinds_of_columns(*(own.pop(kind) or () for kind in ("category", "number", "date")))
        return Reading(file, target, has_header=not own.pop("no_header"), **own, **more)


@dataclass(frozen=True)
class LabelledCellOptions(CellOptions):
    """The same for a file with a target."""

    drop_unlabelled: Annotated[bool, of_table("--drop-unlabelled", help="Leave out rows without a target.")] = False


@dataclass(frozen=True)
class ColumnOptions:
    """The columns that are learned from, and their text."""

    without: Annotated[
        list[str] | None, of_table("--without", "--ignore", help="A column to leave out; may be repeated.")
    ] = None
    text: Annotated[
        list[str] | None,
        of_table(metavar="COL", help="A column of free text, whose words become features; may be repeated."),
    ] = None
    text_features: Annotated[
        str,
        of_table(
            metavar="tfidf|hashing",
            help="The features of a text: word counts weighted by rarity, or hashed word counts without a vocabulary.",
        ),
    ] = "tfidf"

    @property
    def preparation(self) -> TablePreparation:
        from margrove.app.options.table import TablePreparation

        return TablePreparation(tuple(self.text or ()), self.text_features)


@dataclass(frozen=True)
class WantedOptions:
    """The columns beside the predictions."""

    scores: Annotated[
        bool, of_output("--scores", help="Add the decision value of each machine, or the probability of each class.")
    ] = False
    probabilities: Annotated[
        bool, of_output("--probabilities", help="Add the probability of each class, if the model has them.")
    ] = False
    explain: Annotated[bool, of_output("--explain", help="Add the reason for each prediction, in a phrase.")] = False
    keep: Annotated[
        str,
        of_output(metavar="all|none|COL,COL", help="Columns of the file to copy in front of the predictions."),
    ] = "none"
    raw: Annotated[bool, of_output("--raw", help="Write text even where a spreadsheet would run it.")] = False

    @property
    def columns(self) -> list[str] | None:
        """The columns to keep; None for all."""
        if self.keep == "all":
            return None
        return [] if self.keep == "none" else list(dict.fromkeys(name for name in self.keep.split(",") if name))


@dataclass(frozen=True)
class NetworkOptions:
    """The network that makes codes of pictures."""

    network: Annotated[
        str | None,
        of_learning(
            help="An .onnx file, torchvision:NAME or timm:NAME. Default: efficientnet_lite0, which is built in."
        ),
    ] = None
    layer: Annotated[
        str | None,
        of_learning(help="The layer whose output is the code. Default: the one that feeds the last linear layer."),
    ] = None
    size: Annotated[
        int | None, of_learning(help="The side length of the network's input in pixels. Default: its own.", min=1)
    ] = None
    cache: Annotated[str | None, of_learning(help="A folder that stores the codes for later runs.")] = None
    device: Annotated[str, of_learning(metavar="cpu|cuda|auto", help="The device that runs the network.")] = "cpu"
    download: Annotated[bool, of_learning("--download", help="Let torchvision or timm download weights.")] = False


@dataclass(frozen=True)
class ShownOptions:
    """The amount of output."""

    as_json: Annotated[bool, of_output("--json", help="Print one JSON document and nothing else.")] = False
    quiet: Annotated[bool, of_output("--quiet", "-q", help="Print only the result.")] = False

    def screen(self, output: str | None = None, *, outlives_reader: bool = False) -> Screen:
        """Return the screen of a command whose result goes to ``output``."""
        from margrove.app.screen.console import Screen

        is_taken = output == "-"
        return Screen(
            is_json=self.as_json, is_quiet=self.quiet, is_output_taken=is_taken, outlives_reader=outlives_reader
        )

    def check_output(self, output: str | None, what: str, place: str) -> None:
        """Raise `ParameterError` if a result and a JSON document would both go to standard output."""
        from margrove.errors import ParameterError

        if self.as_json and output == "-":
            raise ParameterError(
                f"--json and -o - both write to standard output. Write the {what} to a file: -o {place}."
            )


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """Spread each group of options that a command takes, a dataclass, over the signature that typer reads."""
    groups, parameters = {}, []
    hints = get_type_hints(command, include_extras=True)
    for name, parameter in inspect.signature(command).parameters.items():
        if is_dataclass(hints[name]):
            groups[name] = hints[name]
            of_group = get_type_hints(hints[name], include_extras=True)
            defaults = {each.name: (each.default, of_group[each.name]) for each in fields(hints[name])}
        else:
            defaults = {name: (parameter.default, hints[name])}
        for each, (default, hint) in defaults.items():
            if default is None:  # the help text says what None means
                hint.__metadata__[0].show_default = False
            parameters.append(inspect.Parameter(each, parameter.KEYWORD_ONLY, default=default, annotation=hint))

    @wraps(command)
    def work(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{each.name: given.pop(each.name) for each in fields(group)})
        command(**given)

    work.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    work.__annotations__ = {each.name: each.annotation for each in parameters}
    return work
