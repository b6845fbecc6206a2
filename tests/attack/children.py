"""Run numbered cases in child processes, so that a crash, a hang or a huge allocation ends one case and not the run.

A child is ``python -m MODULE --child OPTION...``. It reads one case number per line, and writes JSON lines:
``{"phase": ...}`` whenever it begins something that may crash or hang, and ``{"verdict": ..., ...}`` when the case is
done. The parent attributes the death of a child, or its silence, to the case and the phase, and starts another child.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import queue
import resource
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
SILENCE = 20.0  # seconds that one phase of a case may take before the child is killed
START = 120.0  # seconds until a child has imported everything
MEMORY = 6 << 30  # bytes of address space of a child

PEER = "scikit-learn's"  # how the phases begin in which another library is asked what it raises

Tell = Callable[[str], None]


class Outcome(NamedTuple):
    """What became of a case."""

    case: int
    verdict: str
    detail: str
    about: str


def run(module: str, cases: Iterable[int], options: Iterable[str] = (), *, workers: int = 2) -> list[Outcome]:
    """Run the cases in ``workers`` children at a time; return their outcomes in the order of the cases."""
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for case in cases:
        waiting.put(case)
    outcomes: list[Outcome] = []
    command = [sys.executable, "-W", "ignore", "-m", module, "--child", *options]
    threads = [threading.Thread(target=_work, args=(command, waiting, outcomes)) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if not waiting.empty():
        raise RuntimeError(f"a child did not start: {' '.join(command)}")
    return sorted(outcomes)


def serve(attack: Callable[[int, Tell], dict[str, Any]]) -> None:
    """Be a child: run the cases named on standard input. Whatever a case prints is dropped."""
    report = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def tell(phase: str) -> None:
        report.write(json.dumps({"phase": phase}) + "\n")

    tell("ready")
    for line in sys.stdin:
        report.write(json.dumps(attack(int(line), tell)) + "\n")


def is_of_scikit_learns_checks(error: BaseException) -> bool:
    """Whether scikit-learn's own validation of what the caller gave raised the error, as it does for estimators of its
    own. A metric that complains was given numbers that the library made."""
    frames = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    is_of_a_metric = any("/sklearn/metrics/" in frame for frame in frames)
    return "/sklearn/" in frames[-1] and not is_of_a_metric and isinstance(error, ValueError | TypeError)


class _Child:
    """A child process and the lines it writes."""

    def __init__(self, command: list[str]) -> None:
        self._errors: BinaryIO = tempfile.TemporaryFile()  # noqa: SIM115 it lives as long as the child
        threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            cwd=ROOT,
            env={**os.environ, **threads},
        )
        self._buffer = b""
        self.phase = "start"
        self.phase = self._line(START).get("phase", "start")

    def attack(self, case: int) -> Outcome:
        """Run one case; the child is dead afterwards if the verdict is crash or hang."""
        assert self._process.stdin is not None
        self.phase = "start"
        try:
            self._process.stdin.write(f"{case}\n".encode())
            self._process.stdin.flush()
            about = ""
            while True:
                line = self._line(SILENCE)
                about = line.get("about", about)
                if "verdict" in line:
                    return Outcome(case, line["verdict"], line.get("detail", ""), about)
                self.phase = line["phase"]
        except TimeoutError:
            self.end()
            return self._dead(case, "hang", f"silent for {SILENCE:g} s")
        except (EOFError, BrokenPipeError):
            code = self._process.wait()
            reason = signal.Signals(-code).name if code < 0 else f"exit {code}"
            self._errors.seek(0)
            lines = self._errors.read().decode(errors="replace").splitlines()
            trace = "\n".join([line for line in lines if line.startswith(("  File", "Fatal", "terminate"))][:8])
            self.end()
            return self._dead(case, "crash", f"{reason}\n{trace}")

    def _dead(self, case: int, verdict: str, reason: str) -> Outcome:
        """The outcome of a case that ended its child. Of a peer's own death the library is not guilty."""
        return Outcome(case, "raw" if self.phase.startswith(PEER) else verdict, f"in {self.phase}: {reason}", "")

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def end(self) -> None:
        """Kill the child, if it lives, and release what it held."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            assert stream is not None
            with contextlib.suppress(BrokenPipeError):
                stream.close()

    def _line(self, seconds: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        pipe, deadline = self._process.stdout.fileno(), time.monotonic() + seconds
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError
            piece = os.read(pipe, 1 << 16)
            if not piece:
                raise EOFError
            self._buffer += piece
        line, self._buffer = self._buffer.split(b"\n", 1)
        found: dict[str, Any] = json.loads(line)
        return found


def _work(command: list[str], waiting: queue.SimpleQueue[int], outcomes: list[Outcome]) -> None:
    child: _Child | None = None
    before: list[int] = []  # cases that the child has run
    while True:
        try:
            case = waiting.get_nowait()
        except queue.Empty:
            break
        try:
            child = child or _Child(command)
        except (EOFError, TimeoutError):
            waiting.put(case)
            return
        outcome = child.attack(case)
        if outcome.verdict == "crash" and before:  # perhaps of an earlier case, which damaged the memory
            child = _Child(command)
            alone = child.attack(case)
            words = f"{outcome.detail}\nalone it is {alone.verdict}: suspect the cases before, {before[-5:]}"
            outcome = alone if alone.verdict == "crash" else outcome._replace(detail=words)
        outcomes.append(outcome)
        before.append(case)
        if not child.is_alive:
            child, before = None, []
    if child is not None:
        child.end()
