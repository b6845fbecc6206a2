"""Ctrl-C at any moment of a command is one line and the exit code 130, or the work is kept; never a traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from margrove.app.screen.interrupts import LINE

Run = Callable[..., Result]

# The process interrupts itself at its n-th import after the first line of the entry point, or while it shuts down.
_SELF = """
import atexit, os, signal, sys
from margrove.__main__ import main
from margrove.app.screen import interrupts

place, count = int(sys.argv.pop(1)), 0

class Finder:
    def find_spec(self, name, path=None, target=None):
        global count
        count += 1
        if count == place:
            os.kill(os.getpid(), signal.SIGINT)

def shut_down():
    print(f"imports {count}", file=sys.stderr)
    if place == 0:
        os.kill(os.getpid(), signal.SIGINT)

atexit.register(shut_down)
begin = interrupts.begin

def begun():
    begin()
    sys.meta_path.insert(0, Finder())

interrupts.begin = begun
main()
"""


def _interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


_TRAIN = ["train", "--model", "tree", "--folds", "2", "-o", "m.margrove"]


def interrupted_at(place: int, folder: Path, words: list[str]) -> tuple[int, str]:
    command = [sys.executable, "-c", _SELF, str(place), *words]
    child = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    return child.returncode, child.stderr


def assert_one_line(code: int, complaint: str, at: object) -> None:
    assert code == 130, (at, code, complaint)
    assert [line for line in complaint.splitlines() if not line.startswith("imports ")] == [LINE], (at, complaint)


@pytest.mark.parametrize("n", [8, pytest.param(80, marks=pytest.mark.slow)])
def test_an_interrupted_import_is_one_line(folder: Path, n: int) -> None:
    code, complaint = interrupted_at(0, folder, _TRAIN)
    assert code == 0
    assert complaint.startswith("imports "), complaint  # and nothing of an interrupt while Python shut down
    (folder / "m.margrove").unlink()
    last = int(complaint.split()[1])
    for place in range(1, last, last // n):
        code, complaint = interrupted_at(place, folder, _TRAIN)
        if (folder / "m.margrove").exists():  # it was the report that was being written
            assert code in (0, 130)
            assert "the model is saved" in complaint
            (folder / "m.margrove").unlink()
        else:
            assert_one_line(code, complaint, place)


def _train(run: Run, flowers: str, *words: str) -> Result:
    return run("train", flowers, "--model", "tree", "--folds", "2", "-o", "m.margrove", *words)


@pytest.mark.parametrize("place", ["margrove.app.train._tell_saved", "margrove.app.train.Trained.document"])
def test_after_the_model_is_saved_the_line_says_so(
    run: Run, flowers: str, folder: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setattr(place, _interrupt)
    result = _train(run, flowers)
    assert (folder / "m.margrove").exists()
    assert (result.exit_code, result.stderr) == (130, "margrove: interrupted; the model is saved: m.margrove\n")


@pytest.mark.parametrize("is_done", [True, False])
def test_the_file_tells_whether_an_interrupted_save_was_done(
    run: Run, flowers: str, folder: Path, monkeypatch: pytest.MonkeyPatch, is_done: bool
) -> None:
    assert _train(run, flowers).exit_code == 0  # an earlier model is not mistaken for the new one
    before, replace = (folder / "m.margrove").read_bytes(), os.replace
    monkeypatch.setattr("os.replace", lambda *paths: (is_done and replace(*paths), _interrupt()))
    result = _train(run, flowers, "--param", "max_depth=1")
    assert ((folder / "m.margrove").read_bytes() != before) == is_done
    words = "margrove: interrupted; the model is saved: m.margrove" if is_done else LINE
    assert (result.exit_code, result.stderr.splitlines()[-1:]) == (130, [words])


def test_the_report_is_imported_before_the_model_is_saved(
    run: Run, flowers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    monkeypatch.delitem(sys.modules, "margrove.app.report", raising=False)
    monkeypatch.setattr("margrove.app.train.write_model", lambda *_: seen.append("margrove.app.report" in sys.modules))
    assert _train(run, flowers, "--report").exit_code == 0
    assert seen == [True]


def test_a_report_that_is_not_written_leaves_word_of_the_model(
    run: Run, flowers: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = os.replace

    def full(source: Path, target: Path) -> None:
        if target.suffix == ".html":
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr("os.replace", full)
    result = _train(run, flowers, "--report")
    words = "it cannot be written: No space left on device; the model is saved, its report is not."
    cure = "Write it: margrove report m.margrove flowers.csv"
    assert (result.exit_code, result.stderr) == (2, f"margrove: error: m.report.html: {words} {cure}\n")
    assert sorted(path.name for path in folder.iterdir()) == ["flowers.csv", "m.margrove"]


@pytest.mark.parametrize("words", [["--help"], ["show", "m.margrove"], ["predict", "m.margrove"], ["compare"]])
def test_every_command_can_be_interrupted_at_its_first_import(folder: Path, words: list[str]) -> None:
    assert_one_line(*interrupted_at(1, folder, words), words)
    assert_one_line(*interrupted_at(40, folder, words), words)


@pytest.mark.parametrize("entry", [["-m", "margrove"], ["-c", "from margrove.__main__ import main; main()"]])
def test_a_signal_from_outside_is_one_line_whenever_it_comes(folder: Path, entry: list[str]) -> None:
    (folder / "t.csv").write_text("x,y\n" + "".join(f"{i},{label}\n" for i in range(300) for label in "ab"))
    words = ["train", "t.csv", "--model", "perceptron", "--param", "max_iter=2000000000"]  # it never ends by itself
    for delay in (0.0, 0.3, 1.0):
        # Verbose imports say when the entry point has begun: what comes before is Python's own.
        with subprocess.Popen(
            [sys.executable, "-X", "importtime", *entry, *words],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        ) as command:
            assert command.stderr is not None
            for line in command.stderr:
                if line.endswith(" typer\n") or "typer._" in line:
                    break
            time.sleep(delay)
            command.send_signal(signal.SIGINT)
            complaint = command.stderr.read()
        said = [line for line in complaint.splitlines() if not line.startswith("import time:")]
        assert (command.returncode, said) == (130, [LINE]), delay
    assert [path.name for path in folder.iterdir()] == ["t.csv"]
