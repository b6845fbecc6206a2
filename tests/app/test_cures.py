"""What the library advises in Python is said as options."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from margrove.app.screen.cures import error_in_shell, in_shell
from margrove.errors import InputError
from margrove.status import Status

Run = Callable[..., Result]

PYTHON = re.compile(r"\w+=(True|False|None|'|\[)|\w\(\)")  # header=False, encoding='latin-1', K.toarray()

FILES = {
    "no rows": (b"x,y\n", [], "If the first line is a row and not names, say --no-header."),
    "wrong encoding": ("x,y\n1,gr\u00fcn\n".encode("latin-1"), [], "such as --encoding latin-1."),
    "wrong encoding named": (
        b"x,y\n1,\xff\n",
        ["--encoding", "ascii"],
        "such as --encoding utf-8 or --encoding latin-1.",
    ),
    "no such encoding": (b"x,y\n1,a\n", ["--encoding", "klingon"], "error: --encoding is 'klingon'"),
    "wrong delimiter": (b"x,y\n1,a\n", ["--delimiter", "xx"], "error: --delimiter is 'xx'"),
    "binary": (bytes(range(256)) * 20, [], "say --encoding utf-16-le."),
    "one column": (b"y\na\nb\n", [], "name the delimiter: --delimiter."),
    "unlabelled": (b"x,y\n1,a\n2,\n", [], "leave those rows out with --drop-unlabelled."),
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
    ("python", "shell"),
    [
        ("Name one: target='...'.", "Name one: --target."),
        ("Leave target out, or say target='y'.", "Leave --target out, or say --target y."),
        ("Pass K.toarray().", "A Gram matrix is for Python; choose another --param kernel=…."),
        ("Pass a dense table (X.toarray()).", "Give a table of the format that it was trained on."),
        ("Use variant='averaged'.", "Use --param variant=averaged."),
        (Status.MAX_ITER.advice, "train with more: --param max_iter=…, or accept the model as it is"),
        (Status.TIME_LIMIT.advice, "raise --time-limit, or accept the model as it is"),
        ("it must be a number ≥ 0. None goes on to max_iter.", "it must be a number ≥ 0. null goes on to max_iter."),
        (
            "n_jobs is 0; it must be a number of threads, or None.",
            "n_jobs is 0; it must be a number of threads, or null.",
        ),
        ("shuffle is 1; it must be True or False.", "shuffle is 1; it must be true or false."),
        ("Use a finite C, or another kernel.", "Use a finite --param C=…, or another --param kernel=…."),
        (
            "decision_function_shape='ovo' goes with multiclass='ovo'; machine_decision gives the machines' values.",
            "--param decision_function_shape=ovo goes with --param multiclass=ovo; `margrove predict --scores` gives "
            "the machines' values.",
        ),
    ],
)
def test_python_becomes_shell(python: str, shell: str) -> None:
    assert in_shell(python) == shell


def test_only_the_cure_is_translated() -> None:
    error = InputError("no such file", file="header=False.csv", cure="Say header=False.")
    assert error_in_shell(error) == "header=False.csv: no such file. Say --no-header."


def test_a_solve_that_ended_early_names_the_option(run: Run, folder: Path) -> None:
    (folder / "mixed.csv").write_text("x,y\n1,a\n1,b\n2,a\n2,b\n")
    said = run("train", "mixed.csv", "--folds", "0", "--model", "perceptron", "--param", "variant=last").stdout
    assert "--param max_iter=…" in said
    assert "raise max_iter" not in said


def test_a_stray_word_comes_with_its_option(run: Run, folder: Path) -> None:
    rows = "".join(f"{x},{x % 7},{'ab'[x % 2]}\n" for x in range(30))
    (folder / "t.csv").write_text(f"age,x,y\n{rows}unknown,3,a\n")
    assert "say --missing 'unknown'." in run("train", "t.csv", "--folds", "0", "--model", "basic").stderr
    assert run("train", "t.csv", "--folds", "0", "--model", "basic", "--missing", "unknown").stderr == ""
