"""Advice is rendered as Python by the library and as options by the command line."""

from __future__ import annotations

import ast
import copy
import pickle
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.testing import Result

import margrove
from margrove.advice import Advice, InPython, Parameter, Part, Row, Setting, Value
from margrove.app.cli import app
from margrove.app.options.menu import choices
from margrove.app.screen.advice import OPTIONS, error_in_shell, in_shell
from margrove.errors import InputError
from margrove.status import Status

Run = Callable[..., Result]

PYTHON = re.compile(r"\w+=(True|False|None|'|\[)|\w\(\)")  # header=False, encoding='latin-1', K.toarray()

FILES = {
    "no rows": (b"x,y\n", [], "If the first line is a row of data and not column names, set --no-header."),
    "unknown encoding": (b"x,y\n1,gr\xf7n\n", [], "such as --encoding cp1252."),
    "wrong encoding named": (
        b"x,y\n1,\xff\n",
        ["--encoding", "ascii"],
        "such as --encoding utf-8 or --encoding cp1252.",
    ),
    "no such encoding": (b"x,y\n1,a\n", ["--encoding", "klingon"], "error: --encoding is 'klingon'"),
    "wrong delimiter": (b"x,y\n1,a\n", ["--delimiter", "xx"], "error: --delimiter is 'xx'"),
    "binary": (bytes(range(256)) * 20, [], "set --encoding utf-16-le."),
    "one column": (b"y\na\nb\n", [], "name the delimiter: --delimiter."),
    "unlabelled": (b"x,y\n1,a\n2,\n", [], "leave this row out with --drop-unlabelled."),
    "all constant": (b"x,y\n1,a\n1,b\n1,a\n1,b\n", ["--model", "svm"], "Add rows or columns."),
    "a label in front": (b"1 1:2\n2 1:3\n", ["--target", "y"], "Leave --target out."),
    "sparse kernel": (
        b"1 1:2\n2 1:3\n1 1:1 2:4\n",
        ["--param", "kernel=precomputed", "--folds", "0"],
        "--param kernel",
    ),
}


@pytest.mark.parametrize("case", FILES)
def test_an_error_advises_options(run: Run, folder: Path, case: str) -> None:
    content, options, said = FILES[case]
    (folder / "t.txt").write_bytes(content)
    learner = ["--model", "kernel-perceptron"] if case == "sparse kernel" else []
    result = run("train", "t.txt", *options, *learner)
    assert result.exit_code == 2
    assert said in result.stderr
    assert not PYTHON.search(result.stderr)


@pytest.mark.parametrize(
    ("advice", "python", "shell"),
    [
        (Setting("header", False), "header=False", "--no-header"),
        (Setting("drop_unlabelled", True), "drop_unlabelled=True", "--drop-unlabelled"),
        (Setting("target", "..."), "target='...'", "--target"),
        (Setting("layer", ...), "layer=…", "--layer"),
        (Setting("target", "y"), "target='y'", "--target y"),
        (Setting("text", "note"), "text='note'", "--text 'note'"),
        (Setting("text", "Ann's note"), 'text="Ann\'s note"', "--text 'Ann'\"'\"'s note'"),
        (Setting("number", "price"), "number='price'", "--number price"),
        (Setting("kernel", ...), "kernel=…", "--param kernel=…"),
        (Setting("variant", "averaged"), "variant='averaged'", "--param variant=averaged"),
        (Setting("early_stopping", False), "early_stopping=False", "--param early_stopping=false"),
        (Parameter("time_limit"), "time_limit", "--time-limit"),
        (Parameter("shuffle"), "shuffle", "shuffle"),
        (Value(None), "None", "null"),
        (Row(0), "0", "1"),
        (InPython(", or read_chunks"), ", or read_chunks", ""),
        (
            InPython("Pass K.toarray()", "Choose another ", Setting("kernel", ...)),
            "Pass K.toarray()",
            "Choose another --param kernel=…",
        ),
        (
            Status.MAX_ITER.advice,
            "raise max_iter, or accept the model as it is",
            "train with more: --param max_iter=…, or accept the model as it is",
        ),
        (
            Status.TIME_LIMIT.advice_on("table"),
            "raise time_limit, or accept the table as it is",
            "raise --time-limit, or accept the table as it is",
        ),
    ],
)
def test_advice_in_python_and_in_the_shell(advice: Part, python: str, shell: str) -> None:
    said = Advice("Do ", advice, ".")
    assert (said, in_shell(said)) == (f"Do {python}.", f"Do {shell}.")


@pytest.mark.parametrize("sent", [copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
def test_errors_keep_their_advice_when_they_are_sent(sent: Callable[[InputError], InputError]) -> None:
    error = sent(InputError("no rows", file="t.csv", cure=Advice("Say ", Setting("header", False), ".")))
    assert str(error) == "t.csv: no rows. Say header=False."
    assert error_in_shell(error) == "t.csv: no rows. Say --no-header."


def test_text_of_users_is_left_unchanged() -> None:
    error = InputError("no such file", file="header=False.csv", cure="Say header=False.")
    assert error_in_shell(error) == str(error)


def test_every_setting_has_a_form_for_the_shell() -> None:
    """An option of a command, or a parameter of a learner, which --param takes."""
    commands = typer.main.get_command(app).commands.values()  # type: ignore[attr-defined]
    options = {
        option for command in commands for each in command.params for option in (*each.opts, *each.secondary_opts)
    }
    assert set(OPTIONS.values()) | {"--no-header", "--param"} <= options
    makers = [*choices().values(), *(each.regression for each in choices().values() if each.regression is not None)]
    classes = [getattr(margrove, maker.described.name) for maker in makers] + [margrove.FineTuned]
    of_learners = {name for each in classes for name in each().get_params()}
    settings = settings_in_sources()
    assert {"encoding", "kernel", "early_stopping"} <= settings
    assert settings - OPTIONS.keys() - of_learners == {"header"}  # --no-header


def settings_in_sources() -> set[str]:
    """Return the name in every ``Setting("name", …)``."""
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in Path(margrove.__file__).parent.rglob("*.py"))
    calls = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call))
    return {
        str(call.args[0].value)
        for call in calls
        if getattr(call.func, "id", "") == "Setting" and isinstance(call.args[0], ast.Constant)
    }


def test_a_solve_that_ended_early_names_the_option(run: Run, folder: Path) -> None:
    (folder / "mixed.csv").write_text("x,y\n1,a\n1,b\n2,a\n2,b\n")
    said = run("train", "mixed.csv", "--folds", "0", "--model", "perceptron", "--param", "variant=last").stdout
    assert "--param max_iter=…" in said
    assert "raise max_iter" not in said


def test_stray_text_in_numbers_names_the_option(run: Run, folder: Path) -> None:
    rows = "".join(f"{x},{x % 7},{'ab'[x % 2]}\n" for x in range(80))
    (folder / "t.csv").write_text(f"age,x,y\n{rows}elderly,3,a\n")
    found = run("train", "t.csv", "--folds", "0", "--model", "basic").stdout
    assert "Column 'age': 'elderly' is not a number and is read as missing." in found
    (folder / "t.csv").write_text("age,x,y\n" + rows + "elderly,3,a\n" * 8)  # too many to be slips
    said = run("train", "t.csv", "--folds", "0", "--model", "basic")
    words = (
        "8 of 88 cells are no numbers or dates, such as 'elderly'. If they mark missing cells, set --missing 'elderly'"
    )
    assert words in said.stdout
    assert said.stderr == ""  # not told twice
    assert run("train", "t.csv", "--folds", "0", "--model", "basic", "--missing", "elderly").stderr == ""
