"""The commands: what can be typed. The work is done in the module of each command's name, imported when it is needed.

Only typer and rich may be imported here, so that ``--help`` and shell completion answer at once.
"""

from __future__ import annotations

from typing import Annotated

import typer

from margrove.app.options.budget import DEFAULT_BUDGET, parse_budget
from margrove.app.options.menu import AUTO, DEFAULT, LEARNERS, completed_choices, completed_names, parse_params
from margrove.app.screen.failures import ExitCode, GuardedGroup

app = typer.Typer(
    name="margrove",
    cls=GuardedGroup,
    epilog="Start with:  margrove train   (the embedded penguins)",
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # failures are told by GuardedGroup; a defect of ours shows Python's own traceback
    context_settings={"help_option_names": ["-h", "--help"]},
)

_TABLE = "The table"
_LEARNING = "The learning"
_OUTPUT = "The output"

File = Annotated[
    str | None,
    typer.Argument(
        help="CSV, Parquet, Arrow, ARFF, LIBSVM or .npz, also compressed; '-' is standard input. "
        "None: the embedded penguins.",
        show_default=False,
    ),
]
ModelFile = Annotated[
    str, typer.Argument(help="A file that 'margrove train' or 'margrove images' made; '-' is standard input.")
]
Rows = Annotated[
    str | None,
    typer.Argument(
        help="CSV, Parquet, Arrow, ARFF, LIBSVM or .npz, also compressed; '-' is standard input; for a model of "
        "pictures a folder of them, or one. None: the embedded penguins.",
        show_default=False,
    ),
]
Target = Annotated[
    str | None,
    typer.Option(help="The column to be predicted. None: the last one.", show_default=False, rich_help_panel=_TABLE),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(help="Another word for a missing cell; may be repeated.", show_default=False, rich_help_panel=_TABLE),
]
NoHeader = Annotated[bool, typer.Option("--no-header", help="The first line is a row.", rich_help_panel=_TABLE)]
Delimiter = Annotated[str, typer.Option(help="Between the cells.", rich_help_panel=_TABLE)]
Encoding = Annotated[str, typer.Option(help="Of a text file.", rich_help_panel=_TABLE)]
DropUnlabelled = Annotated[
    bool, typer.Option("--drop-unlabelled", help="Leave out rows without a target.", rich_help_panel=_TABLE)
]
Without = Annotated[
    list[str] | None,
    typer.Option(help="A column to leave out; may be repeated.", show_default=False, rich_help_panel=_TABLE),
]
TextColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--text",
        metavar="COL",
        help="A column of free text: its words become numbers; may be repeated.",
        show_default=False,
        rich_help_panel=_TABLE,
    ),
]
TextFeatures = Annotated[
    str,
    typer.Option(
        metavar="tfidf|hashing",
        help="What becomes of words: counts, rare ones heavier; or counts by hash, without a vocabulary.",
        rich_help_panel=_TABLE,
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        help=f"One of {AUTO} (tries several, takes the best), {', '.join(LEARNERS)}. None: {AUTO}.",
        autocompletion=completed_choices,
        show_default=False,
        rich_help_panel=_LEARNING,
    ),
]
Prefer = Annotated[
    str,
    typer.Option(
        metavar="best|simple",
        help="Of auto: the best score, or the simplest learner within one standard error of it.",
        rich_help_panel=_LEARNING,
    ),
]
Task = Annotated[
    str | None,
    typer.Option(
        metavar="classify|regress",
        help="Whether the target is a class or a number (--model auto, linear, tree, adaboost). None: as it looks.",
        show_default=False,
        rich_help_panel=_LEARNING,
    ),
]
Param = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="A parameter of the learner, such as C=10; may be repeated.",
        show_default=False,
        rich_help_panel=_LEARNING,
    ),
]
Seed = Annotated[int, typer.Option(help="Of the order of rows and of the folds.", min=0, rich_help_panel=_LEARNING)]
Folds = Annotated[int, typer.Option(help="Of the cross-validation; 0 for none.", rich_help_panel=_LEARNING)]
TimeLimit = Annotated[
    float | None, typer.Option(help="Seconds for each fit.", show_default=False, rich_help_panel=_LEARNING)
]
BudgetTime = Annotated[
    str,
    typer.Option(
        "--budget",
        metavar="TIME",
        help="For everything auto does, or the search of C (linear, svm) and gamma (svm): 60s, 5m, 1h; 0: no search.",
        rich_help_panel=_LEARNING,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document and nothing else.", rich_help_panel=_OUTPUT)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Only the essential.", rich_help_panel=_OUTPUT)]


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        from importlib.metadata import version

        typer.echo(f"margrove {version('margrove')}")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Classifiers that come with their proof: a table goes in, a model and its certificate come out."""


@app.command(epilog="Example:  margrove train adult.csv --target income --budget 2m -o income.margrove")
def train(
    file: File = None,
    target: Target = None,
    model: Model = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            help="Where the model goes; '-' is standard output. None: FILE.margrove, here.",
            show_default=False,
            rich_help_panel=_OUTPUT,
        ),
    ] = None,
    report: Annotated[
        bool, typer.Option(help="Write a report beside the model: MODEL.report.html.", rich_help_panel=_OUTPUT)
    ] = True,
    prefer: Prefer = "best",
    task: Task = None,
    param: Param = None,
    seed: Seed = 0,
    folds: Folds = 5,
    time_limit: TimeLimit = None,
    budget: BudgetTime = DEFAULT_BUDGET,
    without: Without = None,
    text: TextColumns = None,
    text_features: TextFeatures = "tfidf",
    missing: Missing = None,
    no_header: NoHeader = False,
    delimiter: Delimiter = "auto",
    encoding: Encoding = "auto",
    drop_unlabelled: DropUnlabelled = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Learn from a table: try learners, take the best, estimate, fit, certify, explain and save."""
    from margrove.app.options.preparation import Preparation
    from margrove.app.options.table import Reading
    from margrove.app.options.training import Training
    from margrove.app.screen.console import Screen
    from margrove.app.train import train as work
    from margrove.errors import ParameterError

    if as_json and output == "-":
        raise ParameterError("--json and -o - both want standard output. Give the model a file: -o model.margrove.")
    reading = Reading(
        file, target, tuple(missing or ()), not no_header, delimiter, encoding, drop_unlabelled, tuple(without or ())
    )
    preparation = Preparation(tuple(text or ()), text_features)
    training = Training(
        model, parse_params(param or ()), seed, folds, time_limit, parse_budget(budget), task, preparation, prefer
    )
    screen = Screen(is_json=as_json, is_quiet=quiet, is_output_taken=output == "-", outlives_reader=True)
    work(screen, reading, training, output, has_report=report)


@app.command(epilog="Example:  margrove predict income.margrove people.csv -o answers.csv")
def predict(
    model: ModelFile,
    file: Rows = None,
    output: Annotated[
        str, typer.Option("--output", "-o", help="The CSV file; '-' is standard output.", rich_help_panel=_OUTPUT)
    ] = "-",
    scores: Annotated[
        bool,
        typer.Option(
            "--scores",
            help="Add the decision value of each machine, or the probability of each class.",
            rich_help_panel=_OUTPUT,
        ),
    ] = False,
    probabilities: Annotated[
        bool,
        typer.Option(
            "--probabilities", help="Add the probability of each class, where it has them.", rich_help_panel=_OUTPUT
        ),
    ] = False,
    keep: Annotated[
        str,
        typer.Option(
            metavar="all|none|COL,COL",
            help="Columns of the file to write before the prediction, as they stand there.",
            rich_help_panel=_OUTPUT,
        ),
    ] = "none",
    raw: Annotated[
        bool, typer.Option("--raw", help="Write text cells unchanged, including formulas.", rich_help_panel=_OUTPUT)
    ] = False,
    missing: Missing = None,
    no_header: NoHeader = False,
    delimiter: Delimiter = "auto",
    encoding: Encoding = "auto",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Predict the rows of a table; its columns are matched by name, in any order."""
    from margrove.app.options.table import Reading
    from margrove.app.predict import Wanted
    from margrove.app.predict import predict as work
    from margrove.app.screen.console import Screen

    reading = Reading(file, None, tuple(missing or ()), not no_header, delimiter, encoding)
    screen = Screen(is_json=as_json, is_quiet=quiet, is_output_taken=output == "-")
    work(screen, model, reading, output, Wanted(scores, probabilities, keep, raw))


@app.command(epilog="Example:  margrove show income.margrove")
def show(
    model: ModelFile,
    rules: Annotated[
        bool, typer.Option("--rules", help="Only the rules of a tree, nested.", rich_help_panel=_OUTPUT)
    ] = False,
    lines: Annotated[
        bool, typer.Option("--lines", help="Only the rules of a tree, a line for each.", rich_help_panel=_OUTPUT)
    ] = False,
    code: Annotated[
        str | None,
        typer.Option(
            metavar="LANGUAGE",
            help="Only the tree as code: python, sql or c.",
            show_default=False,
            rich_help_panel=_OUTPUT,
        ),
    ] = None,
    max_levels: Annotated[
        int | None,
        typer.Option(
            help="Levels that a rule names of a longer list; 0 for all. None: 10. --code always has all.",
            show_default=False,
            rich_help_panel=_OUTPUT,
        ),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Show what is in a model file: parameters, certificate, what it learned."""
    from margrove.app.screen.console import Screen
    from margrove.app.show import show as work
    from margrove.app.show import show_code, show_rules
    from margrove.errors import ParameterError

    screen = Screen(is_json=as_json, is_quiet=quiet)
    if code is not None and (rules or lines):
        raise ParameterError("--code and --rules both want all of the output. Give one of them.")
    if code is not None:
        show_code(screen, model, code)
    elif rules or lines:
        show_rules(screen, model, "lines" if lines else "nested", max_levels)
    else:
        work(screen, model)


@app.command(epilog="Example:  margrove export income.margrove --to onnx -o income.onnx")
def export(
    model: ModelFile,
    to: Annotated[
        str,
        typer.Option(
            metavar="onnx|libsvm|python|sql|c",
            help="Any model as an ONNX graph; a support vector machine as LIBSVM's model file; a tree as code.",
            show_default=False,
            rich_help_panel=_OUTPUT,
        ),
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", help="The file; '-' is standard output.", rich_help_panel=_OUTPUT)
    ] = "-",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write a model for another program, which then predicts the same."""
    from margrove.app.export import export as work
    from margrove.app.screen.console import Screen

    screen = Screen(is_json=as_json, is_quiet=quiet, is_output_taken=output == "-")
    work(screen, model, to, output)


@app.command(epilog="Example:  margrove report income.margrove people.csv --open")
def report(
    model: ModelFile,
    file: Rows = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            help="The file; '-' is standard output. None: MODEL.report.html, beside the model.",
            show_default=False,
            rich_help_panel=_OUTPUT,
        ),
    ] = None,
    format: Annotated[
        str,
        typer.Option(
            metavar="html|json|md",
            help="One page that needs nothing else, plain data, or Markdown.",
            rich_help_panel=_OUTPUT,
        ),
    ] = "html",
    is_opened: Annotated[
        bool, typer.Option("--open", help="Open the page in a browser.", rich_help_panel=_OUTPUT)
    ] = False,
    missing: Missing = None,
    no_header: NoHeader = False,
    delimiter: Delimiter = "auto",
    encoding: Encoding = "auto",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write a page about a model that anybody can read: what it predicts, how well, why."""
    from margrove.app.options.table import Reading
    from margrove.app.report.command import report as work
    from margrove.app.screen.console import Screen
    from margrove.errors import ParameterError

    if as_json and output == "-":
        raise ParameterError("--json and -o - both want standard output. Give the report a file: -o report.html.")
    reading = Reading(file, None, tuple(missing or ()), not no_header, delimiter, encoding)
    screen = Screen(is_json=as_json, is_quiet=quiet, is_output_taken=output == "-")
    work(screen, model, reading, output, format, is_opened=is_opened)


@app.command(epilog="Example:  margrove certify income.margrove adult.csv   (exit code 0: it holds; 1: it does not)")
def certify(
    model: ModelFile,
    file: Rows = None,
    target: Target = None,
    missing: Missing = None,
    no_header: NoHeader = False,
    delimiter: Delimiter = "auto",
    encoding: Encoding = "auto",
    drop_unlabelled: DropUnlabelled = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Recompute from model and data everything the model claims."""
    from margrove.app.certify import certify as work
    from margrove.app.options.table import Reading
    from margrove.app.screen.console import Screen

    reading = Reading(file, target, tuple(missing or ()), not no_header, delimiter, encoding, drop_unlabelled)
    if not work(Screen(is_json=as_json, is_quiet=quiet), model, reading):
        raise typer.Exit(ExitCode.DOES_NOT_HOLD)


@app.command(epilog="Example:  margrove compare adult.csv --target income")
def compare(
    file: File = None,
    target: Target = None,
    task: Task = None,
    seed: Seed = 0,
    folds: Folds = 5,
    time_limit: Annotated[float, typer.Option(help="Seconds for each fit.", rich_help_panel=_LEARNING)] = 20.0,
    schemes: Annotated[
        bool,
        typer.Option(
            "--schemes",
            help="One learner (--model) by itself, one-vs-rest, one-vs-one and bit strings, instead of all learners.",
            rich_help_panel=_LEARNING,
        ),
    ] = False,
    model: Annotated[
        str | None,
        typer.Option(
            help=f"Of --schemes: one of {', '.join(LEARNERS)}. None: {DEFAULT}.",
            autocompletion=completed_names,
            show_default=False,
            rich_help_panel=_LEARNING,
        ),
    ] = None,
    without: Without = None,
    text: TextColumns = None,
    text_features: TextFeatures = "tfidf",
    missing: Missing = None,
    no_header: NoHeader = False,
    delimiter: Delimiter = "auto",
    encoding: Encoding = "auto",
    drop_unlabelled: DropUnlabelled = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Try every learner on a table: accuracy (or how far off), time, certificate, side by side."""
    from margrove.app.compare import compare as work
    from margrove.app.options.preparation import Preparation
    from margrove.app.options.table import Reading
    from margrove.app.screen.console import Screen
    from margrove.errors import ParameterError

    reading = Reading(
        file, target, tuple(missing or ()), not no_header, delimiter, encoding, drop_unlabelled, tuple(without or ())
    )
    screen = Screen(is_json=as_json, is_quiet=quiet)
    preparation = Preparation(tuple(text or ()), text_features)
    if schemes and task == "regress":
        raise ParameterError(
            "--task is 'regress', and --schemes are ways to tell classes apart. Leave one of them out."
        )
    if schemes:
        from margrove.app.options.menu import learner_named
        from margrove.app.schemes import compare_schemes

        learner = learner_named(model or DEFAULT)
        compare_schemes(
            screen, reading, learner, folds=folds, seed=seed, time_limit=time_limit, preparation=preparation
        )
        return
    if model is not None:
        raise ParameterError("--model of compare goes with --schemes; without it all learners are compared.")
    work(screen, reading, task=task, folds=folds, seed=seed, time_limit=time_limit, preparation=preparation)


@app.command(epilog="Example:  margrove images pets/ --model svm --cache codes -o pets.margrove")
def images(
    folder: Annotated[str, typer.Argument(help="A folder that holds a folder of pictures for each class.")],
    model: Annotated[
        str,
        typer.Option(
            metavar="svm|softmax|tree|finetune",
            help="What learns: on the network's codes, on its maps, or the network itself.",
            rich_help_panel=_LEARNING,
        ),
    ] = "svm",
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            help="Where the model goes. None: FOLDER.margrove, here.",
            show_default=False,
            rich_help_panel=_OUTPUT,
        ),
    ] = None,
    report: Annotated[
        str | None,
        typer.Option(
            help="Where the page with examples goes. None: MODEL.report.html, beside the model.",
            show_default=False,
            rich_help_panel=_OUTPUT,
        ),
    ] = None,
    is_opened: Annotated[
        bool, typer.Option("--open", help="Open the page in a browser.", rich_help_panel=_OUTPUT)
    ] = False,
    skips_broken: Annotated[
        bool,
        typer.Option("--skip-broken", help="Leave out files that cannot be opened.", rich_help_panel=_LEARNING),
    ] = False,
    network: Annotated[
        str | None,
        typer.Option(
            help="An .onnx file, torchvision:NAME or timm:NAME. None: efficientnet_lite0, which is built in.",
            show_default=False,
            rich_help_panel=_LEARNING,
        ),
    ] = None,
    layer: Annotated[
        str | None,
        typer.Option(
            help="Whose answer is the code. None: what the last linear layer is given.",
            show_default=False,
            rich_help_panel=_LEARNING,
        ),
    ] = None,
    size: Annotated[
        int | None,
        typer.Option(
            help="Pixels of each side of what the network sees. None: its own.",
            show_default=False,
            min=1,
            rich_help_panel=_LEARNING,
        ),
    ] = None,
    cache: Annotated[
        str | None,
        typer.Option(
            help="A folder that keeps codes, so that a second run is quick.",
            show_default=False,
            rich_help_panel=_LEARNING,
        ),
    ] = None,
    device: Annotated[
        str, typer.Option(metavar="cpu|cuda|auto", help="Where the network runs.", rich_help_panel=_LEARNING)
    ] = "cpu",
    download: Annotated[
        bool,
        typer.Option("--download", help="Let torchvision or timm fetch weights.", rich_help_panel=_LEARNING),
    ] = False,
    param: Param = None,
    seed: Seed = 0,
    folds: Folds = 5,
    time_limit: TimeLimit = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Learn from a folder of pictures: a network's codes, a certified model, a page with examples."""
    from margrove.app.images.command import train_on_images
    from margrove.app.images.models import ImageTraining
    from margrove.app.screen.console import Screen

    training = ImageTraining(
        model,
        parse_params(param or ()),
        network,
        layer,
        size,
        device,
        download,
        cache,
        seed,
        folds,
        time_limit,
        skips_broken,
    )
    screen = Screen(is_json=as_json, is_quiet=quiet, outlives_reader=True)
    train_on_images(screen, folder, training, output, report, is_opened=is_opened)


def main() -> None:
    """Run the command line."""
    app()
