"""What only a real process shows: pipes, signals, terminals, start-up time. Each start costs a second or two."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

MARGROVE = [sys.executable, "-m", "margrove"]


def _run(words: list[str], folder: Path, stdin: bytes = b"", **environment: str) -> subprocess.CompletedProcess[bytes]:
    # Not a terminal: CI may set variables that make rich believe otherwise.
    plain = {name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "COLUMNS")}
    return subprocess.run(
        [*MARGROVE, *words],
        cwd=folder,
        input=stdin,
        capture_output=True,
        env=plain | environment,
        timeout=60,
        check=False,
    )


def test_help_is_quick_and_imports_nothing_heavy(folder: Path, record_property: pytest.RecordProperty) -> None:
    started = time.perf_counter()
    result = _run(["--help"], folder)
    record_property("seconds", time.perf_counter() - started)  # a bar of the benchmarks; here only written down
    assert result.returncode == 0
    assert b"train" in result.stdout
    code = "import sys, margrove.app.cli; print([m for m in ('numpy', 'sklearn', 'pyarrow') if m in sys.modules])"
    imports = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert imports.stdout.strip() == b"[]"


def test_a_chain_of_pipes_trains_and_predicts(folder: Path, flowers_text: str) -> None:
    trained = _run(["train", "-", "--folds", "0", "--model", "svm", "-o", "-"], folder, flowers_text.encode())
    assert trained.returncode == 0
    assert b"Certificate holds" in trained.stderr
    (folder / "new.csv").write_text("height,colour,petal\n10,red,1.0\n31,yellow,3.1\n")
    predicted = _run(["predict", "-", "new.csv"], folder, trained.stdout)
    assert predicted.stdout == b"kind\ndaisy\ntulip\n"
    assert predicted.stderr == b""
    assert [path.name for path in folder.iterdir()] == ["new.csv"]


def test_broken_pipe_ends_quietly(folder: Path) -> None:
    command = subprocess.Popen([*MARGROVE, "compare"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert command.stdout is not None
    assert command.stderr is not None
    command.stdout.readline()
    command.stdout.close()
    complaint = command.stderr.read()
    command.stderr.close()
    assert command.wait(60) == 141
    assert complaint == b""


def _unread(words: list[str], folder: Path, *, with_stderr: bool = False) -> tuple[int, bytes]:
    """Run a command whose standard output, and perhaps standard error, nobody reads: the exit code and the rest."""
    reader, writer = os.pipe()
    os.close(reader)
    errors = writer if with_stderr else subprocess.PIPE
    with subprocess.Popen([*MARGROVE, *words], cwd=folder, stdout=writer, stderr=errors) as command:
        os.close(writer)
        _, complaint = command.communicate(timeout=60)
    return command.returncode, complaint or b""


@pytest.mark.parametrize("with_stderr", [False, True])
def test_model_is_written_after_a_broken_pipe(folder: Path, flowers_text: str, with_stderr: bool) -> None:
    (folder / "t.csv").write_text(flowers_text.replace("colour", "constant").replace("white", "red"))
    code, complaint = _unread(["train", "t.csv", "--folds", "2"], folder, with_stderr=with_stderr)
    assert code == 141
    assert complaint == b""
    assert _run(["certify", "t.margrove", "t.csv"], folder).returncode == 0


@pytest.mark.parametrize("words", [["--help"], ["train", "--help"], ["--version"]])
def test_help_into_a_broken_pipe_is_no_failure(folder: Path, words: list[str]) -> None:
    assert _unread(words, folder) == (141, b"")


def test_an_ascii_terminal_is_no_obstacle(folder: Path) -> None:
    (folder / "t.csv").write_text("größe,art\n1,Gänseblümchen\n2,Gänseblümchen\n8,Tulpe\n9,Tulpe\n")
    words = _run(["train", "t.csv", "--folds", "2"], folder, PYTHONIOENCODING="ascii")
    assert words.returncode == 0, words.stderr
    assert b"+/-" in words.stdout
    words.stdout.decode("ascii")
    document = _run(["show", "t.margrove", "--json"], folder, PYTHONIOENCODING="ascii")
    assert json.loads(document.stdout.decode("ascii"))["classes"] == ["Gänseblümchen", "Tulpe"]


def _endless(folder: Path, learner: str) -> list[str]:
    """What to type for a fit that never ends by itself, nor within any time that a test has."""
    if learner == "perceptron":  # every point has both labels
        rows = "".join(f"{i},{label}\n" for i in range(300) for label in "ab")
        penalty = []
    else:  # labels at random, and a penalty for which every one of them has to be right
        rows = "".join(f"{(i * 7919) % 1009 / 1009},{'ab'[i * i % 7 % 2]}\n" for i in range(900))
        penalty = ["--param", "C=1e9", "--param", "gamma=scale"]  # and nothing to search
    (folder / "noise.csv").write_text(f"x,y\n{rows}")
    return ["train", "noise.csv", "--no-report", "--model", learner, "--param", "max_iter=2000000000", *penalty]


def _begun(words: list[str], folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*MARGROVE, *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def _interrupt_after(command: subprocess.Popen[bytes], said: bytes) -> tuple[bytes, bytes]:
    assert command.stdout is not None
    patience = threading.Timer(60, command.kill)  # a line that never comes ends the test
    patience.start()
    found = any(said in line for line in command.stdout)
    patience.cancel()
    assert found, command.communicate()[1]
    time.sleep(2)  # into the solve that comes next, also on a busy machine
    command.send_signal(signal.SIGINT)
    return command.communicate(timeout=60)


@pytest.mark.parametrize("learner", ["perceptron", "svm"])
def test_ctrl_c_before_there_is_a_model_writes_nothing(folder: Path, learner: str) -> None:
    command = _begun(_endless(folder, learner), folder)
    _, complaint = _interrupt_after(command, b"Learner: ")
    assert command.returncode == 130
    assert complaint == b"margrove: interrupted; nothing was written\n"
    assert [path.name for path in folder.iterdir()] == ["noise.csv"]


@pytest.mark.parametrize("learner", ["perceptron", "svm"])
def test_ctrl_c_during_the_fit_keeps_the_model(folder: Path, learner: str) -> None:
    command = _begun([*_endless(folder, learner), "--folds", "0"], folder)
    output, complaint = _interrupt_after(command, b"always predicting")
    assert command.returncode == 0, complaint
    assert b"interrupted" in complaint
    assert b"status 'interrupted'" in output
    assert (folder / "noise.margrove").exists()


def test_ctrl_c_during_the_search_goes_on_to_the_fit(folder: Path) -> None:
    words = [word for word in _endless(folder, "svm") if word != "gamma=scale"]
    words = words[:-1]  # the --param of it
    command = _begun([*words, "--time-limit", "0.5"], folder)
    output, complaint = _interrupt_after(command, b"Searching gamma")
    assert command.returncode == 0, complaint
    assert b"Interrupted: the best cell so far is kept and fitted." in output
    assert b"status 'time_limit'" in output  # of the fit, not of the search
    assert (folder / "noise.margrove").exists()


def test_ctrl_c_while_learners_are_tried_keeps_the_best_so_far(folder: Path) -> None:
    rows = "".join(f"{(i * 7919) % 1009 / 1009},{(i * i) % 97},{'ab'[i * i % 7 % 2]}\n" for i in range(4000))
    (folder / "noise.csv").write_text(f"x,z,y\n{rows}")
    command = _begun(["train", "noise.csv", "--budget", "1h"], folder)
    assert command.stdout is not None
    for line in command.stdout:
        if b"is chosen (--prefer best)" in line:
            break
    time.sleep(4)  # the first few take less, and all of them more
    command.send_signal(signal.SIGINT)
    output, complaint = command.communicate(timeout=120)
    assert command.returncode in (0, 130), complaint  # 130: this machine is so slow that nothing was scored
    if command.returncode == 0:
        assert b"Chosen: " in output
        assert b"Certificate holds" in output
        assert (folder / "noise.margrove").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize(("learner", "objective"), [("perceptron", "mistakes in the pass"), ("svm", ", target 0.001")])
def test_a_terminal_gets_a_bar_with_the_objective_and_no_color_is_respected(
    folder: Path, learner: str, objective: str
) -> None:
    import pty

    leader, follower = pty.openpty()
    words = [*_endless(folder, learner), "--folds", "0", "--time-limit", "2"]
    environment = os.environ | {"NO_COLOR": "1", "TERM": "xterm", "COLUMNS": "100"}
    command = subprocess.Popen([*MARGROVE, *words], cwd=folder, stdout=follower, stderr=follower, env=environment)
    os.close(follower)
    seen = bytearray()
    try:
        while chunk := os.read(leader, 4096):
            seen += chunk
    except OSError:  # how Linux says that the other end of a pseudo-terminal has gone
        pass
    os.close(leader)
    assert command.wait(60) == 0
    text = seen.decode()
    assert objective in text
    assert "status 'time_limit'" in text
    assert "\x1b[31m" not in text
