"""The commands. Each is carried out by the module of its name, imported when it is needed.

Only typer and rich may be imported here, so that ``--help`` and shell completion answer at once.
"""

from __future__ import annotations

from typing import Annotated

import typer

from margrove.app.options import typed
from margrove.app.options.budget import DEFAULT_BUDGET, parse_budget
from margrove.app.options.menu import parse_params
from margrove.app.screen.failures import ExitCode, GuardedGroup

app = typer.Typer(
    name="margrove",
    cls=GuardedGroup,
    epilog="Start with:  margrove train   (the embedded penguins)",
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # GuardedGroup prints failures; a defect of ours shows Python's own traceback
    context_settings={"help_option_names": ["-h", "--help"]},
)


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
@typed.spread
def train(
    *,
    file: typed.File = None,
    target: typed.Target = None,
    model: typed.Model = None,
    output: Annotated[
        str | None,
        typed.of_output(
            "--output", "-o", help="Where the model goes; '-' is standard output. None: FILE.margrove, here."
        ),
    ] = None,
    report: Annotated[bool, typed.of_output(help="Write a report beside the model: MODEL.report.html.")] = True,
    prefer: typed.Prefer = "best",
    task: typed.Task = None,
    param: typed.Param = None,
    seed: typed.Seed = 0,
    folds: typed.Folds = 5,
    time_limit: typed.TimeLimit = None,
    budget: typed.BudgetTime = DEFAULT_BUDGET,
    columns: typed.ColumnOptions,
    cells: typed.LabelledCellOptions,
    shown: typed.ShownOptions,
) -> None:
    """Learn from a table: try learners, take the best, estimate, fit, certify, explain and save."""
    from margrove.app.options.training import Training
    from margrove.app.train import train as work

    shown.check_output(output, "model", "model.margrove")
    reading = cells.reading(file, target, without=tuple(columns.without or ()))
    training = Training(
        model,
        parse_params(param or ()),
        seed,
        folds,
        time_limit,
        parse_budget(budget),
        task,
        columns.preparation,
        prefer,
    )
    work(shown.screen(output, outlives_reader=True), reading, training, output, has_report=report)


@app.command(epilog="Example:  margrove predict income.margrove people.csv -o answers.csv")
@typed.spread
def predict(
    *,
    model: typed.ModelFile,
    file: typed.Rows = None,
    output: Annotated[str, typed.of_output("--output", "-o", help="The CSV file; '-' is standard output.")] = "-",
    wanted: typed.WantedOptions,
    cells: typed.CellOptions,
    shown: typed.ShownOptions,
) -> None:
    """Predict the rows of a table; its columns are matched by name, in any order."""
    from margrove.app.predict import predict as work

    work(shown.screen(output), model, cells.reading(file), output, wanted)


@app.command(epilog="Example:  margrove show income.margrove")
@typed.spread
def show(
    *,
    model: typed.ModelFile,
    rules: Annotated[bool, typed.of_output("--rules", help="Only the rules of a tree, nested.")] = False,
    lines: Annotated[bool, typed.of_output("--lines", help="Only the rules of a tree, a line for each.")] = False,
    max_levels: Annotated[
        int | None,
        typed.of_output(help="Levels that a rule names of a longer list; 0 for all. None: 10."),
    ] = None,
    shown: typed.ShownOptions,
) -> None:
    """Show what is in a model file: parameters, certificate, what it learned."""
    from margrove.app.show import show as work
    from margrove.app.show import show_rules

    if rules or lines:
        show_rules(shown.screen(), model, "lines" if lines else "nested", max_levels)
    else:
        work(shown.screen(), model)


@app.command(epilog="Example:  margrove export income.margrove --to onnx -o income.onnx")
@typed.spread
def export(
    *,
    model: typed.ModelFile,
    to: Annotated[
        str,
        typed.of_output(
            metavar="onnx|libsvm|python|sql|c",
            help="Any model as an ONNX graph; a support vector machine as LIBSVM's model file; a tree as code.",
            show_default=False,
        ),
    ],
    output: Annotated[str, typed.of_output("--output", "-o", help="The file; '-' is standard output.")] = "-",
    shown: typed.ShownOptions,
) -> None:
    """Write a model for another program, which then predicts the same."""
    from margrove.app.export import export as work

    work(shown.screen(output), model, to, output)


@app.command(epilog="Example:  margrove report income.margrove people.csv --open")
@typed.spread
def report(
    *,
    model: typed.ModelFile,
    file: typed.Rows = None,
    output: Annotated[
        str | None,
        typed.of_output(
            "--output", "-o", help="The file; '-' is standard output. None: MODEL.report.html, beside the model."
        ),
    ] = None,
    format: Annotated[
        str, typed.of_output(metavar="html|json|md", help="One page that needs nothing else, plain data, or Markdown.")
    ] = "html",
    is_opened: typed.Opened = False,
    cells: typed.CellOptions,
    shown: typed.ShownOptions,
) -> None:
    """Write a page about a model that anybody can read: what it predicts, how well, why."""
    from margrove.app.report.command import report as work

    shown.check_output(output, "report", "report.html")
    work(shown.screen(output), model, cells.reading(file), output, format, is_opened=is_opened)


@app.command(epilog="Example:  margrove certify income.margrove adult.csv   (exit code 0: it holds; 1: it does not)")
@typed.spread
def certify(
    *,
    model: typed.ModelFile,
    file: typed.Rows = None,
    target: typed.Target = None,
    cells: typed.LabelledCellOptions,
    shown: typed.ShownOptions,
) -> None:
    """Recompute from model and data everything the model claims."""
    from margrove.app.certify import certify as work

    if not work(shown.screen(), model, cells.reading(file, target)):
        raise typer.Exit(ExitCode.DOES_NOT_HOLD)


@app.command(epilog="Example:  margrove compare adult.csv --target income")
@typed.spread
def compare(
    *,
    file: typed.File = None,
    target: typed.Target = None,
    task: typed.Task = None,
    seed: typed.Seed = 0,
    folds: typed.Folds = 5,
    time_limit: Annotated[float, typed.of_learning(help="Seconds for each fit.")] = 20.0,
    columns: typed.ColumnOptions,
    cells: typed.LabelledCellOptions,
    shown: typed.ShownOptions,
) -> None:
    """Try every learner on a table: accuracy (or how far off), time, certificate, side by side."""
    from margrove.app.compare import compare as work
    from margrove.app.options.training import Training

    reading = cells.reading(file, target, without=tuple(columns.without or ()))
    training = Training(seed=seed, folds=folds, time_limit=time_limit, task=task, preparation=columns.preparation)
    work(shown.screen(), reading, training)


@app.command(epilog="Example:  margrove images pets/ --model svm --cache codes -o pets.margrove")
@typed.spread
def images(
    *,
    folder: Annotated[str, typer.Argument(help="A folder that holds a folder of pictures for each class.")],
    model: Annotated[
        str,
        typed.of_learning(
            metavar="svm|softmax|tree|finetune",
            help="What learns: on the network's codes, on its maps, or the network itself.",
        ),
    ] = "svm",
    output: Annotated[
        str | None, typed.of_output("--output", "-o", help="Where the model goes. None: FOLDER.margrove, here.")
    ] = None,
    report: Annotated[
        str | None,
        typed.of_output(help="Where the page with examples goes. None: MODEL.report.html, beside the model."),
    ] = None,
    is_opened: typed.Opened = False,
    skips_broken: Annotated[
        bool, typed.of_learning("--skip-broken", help="Leave out files that cannot be opened.")
    ] = False,
    network: typed.NetworkOptions,
    param: typed.Param = None,
    seed: typed.Seed = 0,
    folds: typed.Folds = 5,
    time_limit: typed.TimeLimit = None,
    shown: typed.ShownOptions,
) -> None:
    """Learn from a folder of pictures: a network's codes, a certified model, a page with examples."""
    from margrove.app.images.command import train_on_images
    from margrove.app.images.models import ImageTraining

    params = parse_params(param or ())
    training = ImageTraining(model, params, seed, folds, time_limit, skips_broken, **vars(network))
    train_on_images(shown.screen(outlives_reader=True), folder, training, output, report, is_opened=is_opened)


def main() -> None:
    """Run the command line."""
    app()
