"""Names that strangers chose never command the terminal: control characters are shown, in every command."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.text import Text

from margrove import DecisionTreeClassifier, read_table
from margrove.app.screen.console import Screen, aside
from margrove.app.screen.failures import failures_reported
from margrove.app.screen.progress import metered
from margrove.errors import InputError

ESCAPE = "\x1b]0;owned\x07"
CLASSES = ("yes\x1b[31m\x9b2J", "no\u202e[red]\nCertificate holds", "may\x1bbe")
COLUMNS = (f"size{ESCAPE}", "colour\x1b[2J\u2066\x7f", "kind\r\x08")
LEVELS = ("red\x1b[H", "[bold]blue\u202e")
CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
TABLE = f"evil\x1b[31m{CLASSES[0][:3]}.csv"


@pytest.fixture
def evil(folder: Path) -> str:
    """A table whose name, columns, categories and classes hold escape sequences."""
    text = io.StringIO(newline="")
    rows = [[f"{(i % 3) * 5 + i / 40:.2f}", LEVELS[i % 2], CLASSES[i % 3]] for i in range(45)]
    csv.writer(text).writerows([COLUMNS, *rows])
    (folder / TABLE).write_text(text.getvalue(), newline="")
    return TABLE


def assert_clean(text: str) -> None:
    found = CONTROLS.search(text)
    assert found is None, repr(text[max(0, found.start() - 60) : found.end() + 20])
    assert "\nCertificate holds\n" not in text.replace("  ", "")  # no name begins a line of its own


@pytest.mark.parametrize("learner", ["tree", "adaboost", "svm", "linear", "perceptron", "basic"])
def test_no_command_sends_control_characters(run: Any, evil: str, learner: str) -> None:
    model = "m\x1b[31m.margrove"
    commands = [
        ("train", evil, "--model", learner, "--folds", "2", "--budget", "1s", "-o", model),
        ("show", model),
        ("show", model, "--json"),
        ("certify", model, evil),
        ("predict", model, evil, "-o", "out.csv"),
        ("predict", model, evil, "--json"),
        ("report", model, evil, "--format", "md", "-o", "-"),
        ("report", model, evil, "--format", "json", "-o", "-"),
        ("report", model, evil),
    ]
    if learner in ("tree", "adaboost"):
        commands += [("show", model, "--rules"), ("show", model, "--lines"), ("show", model, "--rules", "--json")]
    if learner == "svm":
        commands += [("export", model, "--to", "libsvm", "-o", "m.model")]
    for words in commands:
        result = run(*words)
        assert result.exit_code in (0, 1), (words, result.output)
        assert_clean(result.output)
        if "--json" in words:
            assert repr(CLASSES[1])[1:-1] in str(json.loads(result.stdout)), words
    page = Path("m\x1b[31m.report.html").read_text()
    texts = re.sub(r"<script.*?</script>|<style.*?</style>", "", page, flags=re.DOTALL)
    assert_clean(texts)
    assert "[red]" in texts


@pytest.mark.parametrize("words", [("compare", "--folds", "2"), ("train",)])
def test_no_comparison_sends_control_characters(run: Any, evil: str, words: tuple[str, ...]) -> None:
    result = run(words[0], evil, *words[1:], *(["--budget", "1s", "--folds", "2"] if words == ("train",) else []))
    assert result.exit_code == 0, result.output
    assert_clean(result.output)


@pytest.mark.parametrize(
    "words",
    [
        ("train", "no\x1b[31m such.csv"),
        ("train", "t.csv", "--target", "no\x1b[31m"),
        ("train", "t.csv", "--model", "no\x1b[31m"),
        ("train", "t.csv", "one\x1b[31m", "two\x1b[2J"),
        ("predict", f"x{ESCAPE}"),
    ],
)
def test_no_error_sends_control_characters(run: Any, folder: Path, words: tuple[str, ...]) -> None:
    (folder / "t.csv").write_text(f"a{ESCAPE},b\n1,x\n2,y\n3,x\n")
    result = run(*words)
    assert result.exit_code == 2
    assert "\\x1b" in result.output
    assert_clean(result.output)


def test_rules_show_control_characters_to_whoever_prints_them(evil: str) -> None:
    table = read_table(evil)
    rules = DecisionTreeClassifier().fit(table, table.labels()).rules()
    for text in (str(rules), *map(str, rules.rules)):
        assert_clean(text)
    assert rules.rules[0].prediction in CLASSES  # data stays data


def test_what_is_printed_keeps_its_own_style_only(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen()
    screen.say(Text(f"a{ESCAPE}b\x1b[31m"))
    screen.say(f"[red]c\x07{ESCAPE}\n")
    aside(f"d\r{ESCAPE}")
    printed = capsys.readouterr()
    assert printed.out == "a\\x1b]0;ownedb\\x1b[31m\n[red]c\\x07\\x1b]0;owned\\x07\\n\n"
    assert printed.err == "d\\r\\x1b]0;owned\\x07\n"


def test_a_failure_inside_a_command_is_shown_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit), failures_reported():
        raise InputError("is gone", file=f"a{ESCAPE}\nb")
    assert capsys.readouterr().err == "margrove: error: a\\x1b]0;owned\\x07 b: is gone\n"


def test_the_bar_shows_control_characters(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("margrove.app.screen.progress.PATIENCE", 0.0)
    monkeypatch.setattr(Screen, "shows_progress", True)
    with metered(Screen(), f"fit{ESCAPE}") as meter:
        time.sleep(0.2)
        meter.advance()
    assert "\x1b]0;" not in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_predictions_on_a_terminal_show_control_characters_and_a_pipe_gets_them_raw(run: Any, evil: str) -> None:
    import pty

    assert run("train", evil, "--model", "tree", "--folds", "0", "-o", "m.margrove").exit_code == 0
    words = [sys.executable, "-m", "margrove", "predict", "m.margrove", evil, "--quiet"]
    leader, follower = pty.openpty()
    with subprocess.Popen(words, stdout=follower, stderr=subprocess.DEVNULL) as command:
        os.close(follower)
        seen = bytearray()
        try:
            while chunk := os.read(leader, 4096):
                seen += chunk
        except OSError:  # how Linux says that the other end has gone
            pass
    os.close(leader)
    assert command.returncode == 0
    assert_clean(seen.decode().replace("\r\n", "\n"))
    piped = subprocess.run(words, capture_output=True, check=True).stdout
    assert CLASSES[0].encode() in piped
