"""The commands. Each is carried out by the module of its name, imported when it is needed.

Only typer and rich may be imported here, so that ``--help`` and shell completion are quick.
"""

from __future__ import annotations

from time import monotonic
from typing import Annotated

import typer

from margrove.app.options import typed
from margrove.app.options.budget import DEFAULT_BUDGET, parse_budget
from margrove.app.options.menu import parse_params
from margrove.app.screen.failures import ExitCode, GuardedGroup

app = typer.Typer(
    name="margrove",
    cls=GuardedGroup,
    epilog="Start with:  margrove train   (on the embedded penguins dataset)",
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
    """Train classifiers and regressions on a table; each model comes with a certificate that anyone can recompute."""


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
            "--output",
            "-o",
            help="The model file to write; '-' is standard output. Default: FILE.margrove in the current folder.",
        ),
    ] = None,
    report: Annotated[bool, typed.of_output(help="Write a report next to the model: MODEL.report.html.")] = True,
    prefer: typed.Prefer = "best",
    metric: typed.Metric = None,
    balanced: typed.Balanced = False,
    probabilities: typed.Probabilities = False,
    task: typed.Task = None,
    param: typed.Param = None,
    seed: typed.Seed = 0,
    folds: typed.Folds = 5,
    time_limit: typed.TimeLimit = None,
    budget: typed.BudgetTime = DEFAULT_BUDGET,
    cluster: typed.Cluster = None,
    columns: typed.ColumnOptions,
    cells: typed.LabelledCellOptions,
    shown: typed.ShownOptions,
) -> None:
    """Train a model on a table: try several learners, choose the best, estimate its score, fit, certify and save it."""
    began = monotonic()  # the imports are part of the budget
    from margrove.app.options.training import Training
    from margrove.app.train import train as work

    shown.check_output(output, "model", "model.margrove")
    reading = cells.reading(file, target, without=tuple(columns.without or ()), cluster=cluster)
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
        metric=metric,
        is_balanced=balanced,
        has_probabilities=probabilities,
    )
    work(shown.screen(output, outlives_reader=True), reading, training, output, began, has_report=report)


@app.command(epilog="Example:  margrove predict income.margrove people.csv -o predictions.csv")
@typed.spread
def predict(
    *,
    model: typed.ModelFile,
    file: typed.Rows = None,
    output: Annotated[
        str, typed.of_output("--output", "-o", help="The CSV file to write; '-' is standard output.")
    ] = "-",
    wanted: typed.WantedOptions,
    cells: typed.CellOptions,
    shown: typed.ShownOptions,
) -> None:
    """Predict the target of each row of a table. Columns are matched by name, in any order."""
    from margrove.app.predict import predict as work

    work(shown.screen(output), model, cells.reading(file), output, wanted)


@app.command(epilog="Example:  margrove show income.margrove")
@typed.spread
def show(
    *,
    model: typed.ModelFile,
    rules: Annotated[bool, typed.of_output("--rules", help="Print only the rules of a tree, nested.")] = False,
    lines: Annotated[bool, typed.of_output("--lines", help="Print only the rules of a tree, one per line.")] = False,
    max_levels: Annotated[
        int | None,
        typed.of_output(help="The number of levels that a list in a rule names; 0 for all. Default: 10."),
    ] = None,
    shown: typed.ShownOptions,
) -> None:
    """Show the contents of a model file: parameters, certificate and what the model learned."""
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
            help="The format: onnx for any model, libsvm for a support vector machine, the others for a single tree.",
            show_default=False,
        ),
    ],
    output: Annotated[str, typed.of_output("--output", "-o", help="The file to write; '-' is standard output.")] = "-",
    shown: typed.ShownOptions,
) -> None:
    """Export a model for another program, which then makes the same predictions."""
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
            "--output",
            "-o",
            help="The file to write; '-' is standard output. Default: MODEL.report.html next to the model.",
        ),
    ] = None,
    format: Annotated[
        str, typed.of_output(metavar="html|json|md", help="A self-contained page, plain data or Markdown.")
    ] = "html",
    metric: typed.Metric = None,
    is_opened: typed.Opened = False,
    cells: typed.CellOptions,
    shown: typed.ShownOptions,
) -> None:
    """Write a report about a model in plain language: what it predicts, how well and why."""
    from margrove.app.report.command import report as work

    shown.check_output(output, "report", "report.html")
    work(shown.screen(output), model, cells.reading(file), output, format, metric, is_opened=is_opened)


@app.command(
    epilog="Example:  margrove certify income.margrove adult.csv   (exit code 0: the certificate holds; 1: it does not)"
)
@typed.spread
def certify(
    *,
    model: typed.ModelFile,
    file: typed.Rows = None,
    target: typed.Target = None,
    cluster: typed.Cluster = None,
    cells: typed.LabelledCellOptions,
    shown: typed.ShownOptions,
) -> None:
    """Recompute every claim of a model's certificate from the model and the data."""
    from margrove.app.certify import certify as work

    if not work(shown.screen(), model, cells.reading(file, target, cluster=cluster)):
        raise typer.Exit(ExitCode.DOES_NOT_HOLD)


@app.command(epilog="Example:  margrove compare adult.csv --target income")
@typed.spread
def compare(
    *,
    file: typed.File = None,
    target: typed.Target = None,
    metric: typed.Metric = None,
    balanced: typed.Balanced = False,
    task: typed.Task = None,
    seed: typed.Seed = 0,
    folds: typed.Folds = 5,
    time_limit: Annotated[float, typed.of_learning(help="The time limit of each fit, in seconds.")] = 20.0,
    budget: Annotated[
        str,
        typed.of_learning("--budget", metavar="TIME", help="The time limit of the whole run: 60s, 5m, 1h; 0: none."),
    ] = "0",
    columns: typed.ColumnOptions,
    cells: typed.LabelledCellOptions,
    shown: typed.ShownOptions,
) -> None:
    """Compare all learners on a table: score, time of the fit and certificate."""
    began = monotonic()
    from margrove.app.compare import compare as work
    from margrove.app.options.training import Training

    reading = cells.reading(file, target, without=tuple(columns.without or ()))
    training = Training(
        seed=seed,
        folds=folds,
        time_limit=time_limit,
        budget=parse_budget(budget),
        task=task,
        preparation=columns.preparation,
        metric=metric,
        is_balanced=balanced,
    )
    work(shown.screen(), reading, training, began)


@app.command(epilog="Example:  margrove images pets/ --model svm --cache codes -o pets.margrove")
@typed.spread
def images(
    *,
    folder: Annotated[str, typer.Argument(help="A folder with one subfolder of pictures for each class.")],
    model: Annotated[
        str,
        typed.of_learning(
            metavar="svm|softmax|tree|finetune",
            help="The learner: a model of the network's codes, or the network itself (finetune).",
        ),
    ] = "svm",
    output: Annotated[
        str | None,
        typed.of_output(
            "--output", "-o", help="The model file to write. Default: FOLDER.margrove in the current folder."
        ),
    ] = None,
    report: Annotated[
        str | None,
        typed.of_output(help="The page with examples to write. Default: MODEL.report.html next to the model."),
    ] = None,
    is_opened: typed.Opened = False,
    skips_broken: Annotated[bool, typed.of_learning("--skip-broken", help="Skip files that cannot be opened.")] = False,
    network: typed.NetworkOptions,
    param: typed.Param = None,
    seed: typed.Seed = 0,
    folds: typed.Folds = 5,
    time_limit: typed.TimeLimit = None,
    shown: typed.ShownOptions,
) -> None:
    """Train a certified model on features that a pretrained network computes from a folder of pictures."""
    from margrove.app.images.command import train_on_images
    from margrove.app.images.models import ImageTraining

    params = parse_params(param or ())
    training = ImageTraining(model, params, seed, folds, time_limit, skips_broken, **vars(network))
    train_on_images(shown.screen(outlives_reader=True), folder, training, output, report, is_opened=is_opened)


def main() -> None:
    """Run the command line."""
    app()
