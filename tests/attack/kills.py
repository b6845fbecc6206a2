"""Processes killed while they train, save or keep a checkpoint. Afterwards every file is the old one or the new one.

    python -m tests.attack.kills --random 200 --seed 1

Each piece of work runs in a forked child, over the files of an earlier run. The child is killed (SIGKILL)

- at a call of the operating system: before or after it opens, half writes, flushes, renames or removes a file, or
- after a random time, drawn from the seed, up to the time that the whole work takes; if the work ends sooner than that,
  once more after half the time, until the child is killed.

Then the folder is inspected: the model and its report are those of before or those of after, byte for byte; whatever
else lies there is a temporary file under a name of its own; a checkpoint loads, and the fit goes on from it.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

CALLS = ("open", "write", "fsync", "replace", "unlink")
Work = Callable[[Path, bool], None]


# ---- the pieces of work: each takes a folder, and whether it is the new run


def save(folder: Path, is_new: bool) -> None:
    """Save a model of some hundred kB in the place of another one."""
    import margrove

    rng = np.random.default_rng(int(is_new))
    X = rng.normal(size=(400, 50))
    model = margrove.KernelPerceptron(kernel="linear", max_iter=1, random_state=0, n_jobs=1).fit(X, np.arange(400) % 2)
    margrove.save(model, folder / "model.margrove")


def train(folder: Path, is_new: bool) -> None:
    """`margrove train` over an earlier model and its report."""
    from margrove.app.cli import app

    rng = np.random.default_rng(int(is_new))
    rows = [f"{a:.3f},{b:.3f},{'pq'[i % 2]}" for i, (a, b) in enumerate(rng.normal(size=(40, 2)))]
    table = folder / "table.csv"
    table.write_text("\n".join(["a,b,y", *rows]), encoding="utf-8")
    options = ["--model", "linear", "--folds", "2", "--budget", "0"]
    app(["train", str(table), *options, "-o", str(folder / "model.margrove")], standalone_mode=False)


def checkpoint(folder: Path, is_new: bool) -> None:
    """A fit that writes down what it has come to as often as it can; an earlier run leaves nothing."""
    if is_new:
        _fitted(folder)


def _fitted(folder: Path) -> Any:
    import margrove
    from margrove.run import slices

    slices.SLICE = 1e-3  # seconds between two occasions to write
    X, y = np.random.default_rng(3).normal(size=(300, 4)), np.arange(300) % 2
    kept = margrove.Checkpoint(folder / "fit.checkpoint", interval=0)
    return margrove.SVC(C=100.0, gamma=0.3, tol=1e-4, n_jobs=1, checkpoint=kept).fit(X, y), X, y


WORKS: dict[str, Work] = {"save": save, "train": train, "checkpoint": checkpoint}


# ---- a child that dies


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _arm(call: str, nth: int, is_after: bool) -> Callable[[], int]:
    """Make the nth call of an operation on files the last thing that the process does; return how to ask for the
    number of calls so far. With nth = 0 nothing happens to the process."""
    count = 0

    def wrapped(original: Callable[..., Any], is_counted: Callable[..., bool] = lambda *_, **__: True) -> Any:
        def act(*arguments: Any, **options: Any) -> Any:
            nonlocal count
            if not is_counted(*arguments, **options):
                return original(*arguments, **options)
            count += 1
            is_last = count == nth
            if is_last and not is_after:
                _die()
            result = original(*arguments, **options)
            if is_last:
                _die()
            return result

        return act

    if call == "write":
        fdopen, ask = os.fdopen, wrapped(lambda: None)

        def half_written(*arguments: Any, **options: Any) -> Any:
            file = fdopen(*arguments, **options)
            return _HalfWriter(file, ask) if "w" in arguments[1] else file

        os.fdopen = half_written
    elif call == "open":
        os.open = wrapped(os.open, lambda path, flags, *_: bool(flags & os.O_CREAT))
    else:
        setattr(os, call, wrapped(getattr(os, call)))
    return lambda: count


class _HalfWriter(io.RawIOBase):
    """A file that writes half of what it is given, and then asks whether to die."""

    def __init__(self, file: Any, ask: Callable[[], None]) -> None:
        self._file, self._ask = file, ask

    def write(self, content: Any) -> int:
        half = len(content) // 2
        self._file.write(content[:half])
        self._file.flush()
        self._ask()
        self._file.write(content[half:])
        return len(content)

    def flush(self) -> None:
        if not self._file.closed:
            self._file.flush()

    def fileno(self) -> int:
        return self._file.fileno()

    def close(self) -> None:
        self._file.close()


def _in_child(work: Callable[[], None], seconds: float | None = None) -> tuple[int, float]:
    """Run the work in a fork, killed after so many seconds; return its wait status and how long it took."""
    sys.stdout.flush()
    started, child = time.monotonic(), os.fork()
    if child == 0:
        code = 1
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            work()
            code = 0
        finally:
            os._exit(code)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return status, time.monotonic() - started


# ---- what is left behind


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def _is_same(file: str, content: bytes, other: bytes | None) -> bool:
    """Whether two files say the same: a model that was trained, and its report, also tell when that was."""
    import margrove

    if other is None or content == other:
        return content == other
    if file.endswith(".html"):
        return re.sub(rb"\d+", b"0", content) == re.sub(rb"\d+", b"0", other)  # dates and times differ
    one, two = (margrove.load(io.BytesIO(each)) for each in (content, other))
    return hasattr(one, "steps") and np.array_equal(one[-1].coef_, two[-1].coef_)


def _inspect(name: str, folder: Path, old: dict[str, bytes], new: dict[str, bytes]) -> Iterator[str]:
    """What is wrong with the folder."""
    import margrove

    left = _files(folder)
    for file, content in left.items():
        if file.startswith(".margrove-") or file in ("table.csv", "fit.checkpoint"):
            continue
        if not any(_is_same(file, content, other.get(file)) for other in (old, new)):
            yield f"{file} is neither the old one nor the new one"
    for file in old:
        if file not in left:
            yield f"{file} is gone"
    if name == "checkpoint":
        model, X, y = _fitted(folder)
        if model.status_ != "converged" or not margrove.certify(model, X, y).holds:
            yield f"the fit that went on is {model.status_}"
        if (folder / "fit.checkpoint").exists():
            yield "the checkpoint is left after the fit has ended"


def _moments(name: str, folder: Path, few: bool) -> Iterator[tuple[str, int, bool]]:
    """The calls that the work makes, counted in a child that does not die; of like ones the first, second and last."""
    with tempfile.TemporaryDirectory() as place:
        copy, counts = Path(place, "copy"), Path(place, "counts")
        shutil.copytree(folder, copy)

        def counted() -> None:
            asked = {call: _arm(call, 0, False) for call in CALLS}
            WORKS[name](copy, True)
            found = {call: ask() for call, ask in asked.items()}
            counts.write_text(json.dumps(found), encoding="utf-8")

        assert _in_child(counted)[0] == 0
        for call, count in json.loads(counts.read_text(encoding="utf-8")).items():
            for nth in sorted({1, 2, count} & set(range(1, count + 1)))[: 1 if few else None]:
                for is_after in (False,) if call == "write" else (False, True):
                    yield call, nth, is_after


def attack(name: str, *, seed: int, n_random: int, few: bool) -> dict[str, Any]:
    """Kill one kind of work at its calls and at random moments; return how often, and what was found wrong."""
    rng, faults, kills = np.random.default_rng(seed), [], 0
    with tempfile.TemporaryDirectory() as place:
        before, after = Path(place, "old"), Path(place, "new")
        before.mkdir()
        assert _in_child(lambda: WORKS[name](before, False))[0] == 0
        shutil.copytree(before, after)
        status, takes = _in_child(lambda: WORKS[name](after, True))
        assert status == 0
        old, new = _files(before), _files(after)

        def one(what: str, work: Callable[[Path], None], seconds: float | None = None) -> bool:
            """Run the work once and inspect the folder; return whether the child was killed."""
            nonlocal kills
            folder = Path(place, "now")
            shutil.copytree(before, folder)
            status, _ = _in_child(lambda: work(folder), seconds)
            is_killed = os.WIFSIGNALED(status)
            kills += is_killed
            try:
                faults.extend(f"{name}, killed {what}: {words}" for words in _inspect(name, folder, old, new))
            except Exception as error:
                faults.append(f"{name}, killed {what}: {type(error).__name__}: {error}")
            shutil.rmtree(folder)
            return is_killed

        for call, nth, is_after in _moments(name, before, few):
            what = f"{'after' if is_after else 'before'} call {nth} of {call}"
            one(what, lambda folder, at=(call, nth, is_after): (_arm(*at), WORKS[name](folder, True)))
        for _ in range(n_random):
            seconds = float(rng.uniform(0, takes))
            while not one(f"after {seconds:.4f} of {takes:.2f} s", lambda folder: WORKS[name](folder, True), seconds):
                seconds /= 2
    return {"work": name, "kills": kills, "faults": faults}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--random", type=int, default=3, help="kills at random moments, of each kind of work")
    parser.add_argument("--few", action="store_true", help="of several like calls only the first")
    parser.add_argument("--only", choices=sorted(WORKS))
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    import margrove.app.report
    import margrove.app.train  # noqa: F401

    found = [
        attack(name, seed=asked.seed, n_random=asked.random, few=asked.few)
        for name in WORKS
        if asked.only in (None, name)
    ]
    print(json.dumps(found))
    return int(any(each["faults"] for each in found))


if __name__ == "__main__":
    sys.exit(main())
