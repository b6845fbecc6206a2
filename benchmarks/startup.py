"""What it costs to begin: ``import margrove`` beside ``import sklearn.linear_model``, and ``margrove --help``.

    python benchmarks/startup.py

Each run is a fresh process; the sides take turns and the least of several counts. Byte code is written first, as it is
for anybody's second run. To be fair to the peer, the import of ours is measured twice: bare, which loads names on first
use, and with a learner taken.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from measure import interleaved, write


def process(*command: str) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)


def main() -> None:
    script = str(Path(sys.executable).with_name("margrove"))
    sides = {
        "python": lambda: process(sys.executable, "-c", "pass"),
        "peer": lambda: process(sys.executable, "-c", "import sklearn.linear_model"),
        "bare": lambda: process(sys.executable, "-c", "import margrove"),
        "learner": lambda: process(sys.executable, "-c", "from margrove import Perceptron, KernelPerceptron, certify"),
        "help": lambda: process(script, "--help"),
    }
    interleaved(sides, runs=1)  # writes byte code, fills the file cache
    seconds = interleaved(sides, runs=9)
    peer = {"peer": "import sklearn.linear_model", "peer_s": seconds["peer"]}
    cases = [
        {
            "name": "import margrove",
            **peer,
            "ours_s": seconds["bare"],
            "ratio": seconds["peer"] / seconds["bare"],
        },
        {
            "name": "from margrove import Perceptron, KernelPerceptron, certify",
            **peer,
            "ours_s": seconds["learner"],
            "ratio": seconds["peer"] / seconds["learner"],
        },
        {"name": "margrove --help", "peer": "an empty Python", "ours_s": seconds["help"], "peer_s": seconds["python"]},
    ]
    write("startup", "import margrove at most 1.3 × import sklearn.linear_model; --help under 0.5 s", cases, "typer")


if __name__ == "__main__":
    main()
