"""Command lines on small tables, and what they print: exit codes, JSON documents, texts, errors."""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
import warnings
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from tests.guards.state import masked
from threadpoolctl import threadpool_limits
from typer.testing import CliRunner

from margrove.app.cli import app

_NOT_RECORDED = re.compile(r".*seconds.*|bytes")  # keys whose values are the machine's

_OTHER_LINES = 0.1  # the share of lines of a text that may differ on another machine
_MODELS = ("basic", "least-squares", "perceptron", "linear", "kernel-perceptron", "tree", "adaboost", "svm")
# A budget that no machine spends: where time is short, other rows and settings are tried.
_FLOWERS = "flowers.csv --target kind --folds 3 --no-report --budget 1h --json"
_LENGTHS = "lengths.csv --task regress --folds 3 --no-report --budget 1h --json"
_FEW_ROUNDS = " --param n_estimators=5"


def _classify(model: str) -> list[str]:
    options = _FEW_ROUNDS if model == "adaboost" else ""
    return [
        f"train {_FLOWERS} --model {model} -o m.margrove{options}",
        "show m.margrove --json",
        "certify m.margrove flowers.csv --json",
        "certify m.margrove other.csv --json",
        "predict m.margrove flowers.csv --json -o p.csv",
        "predict m.margrove other.csv --scores --keep colour,petal",
        *(["report m.margrove other.csv --format md -o -"] if model in ("linear", "tree") else []),
    ]


def _regress(model: str) -> list[str]:
    options = _FEW_ROUNDS if model == "adaboost" else ""
    return [
        f"train {_LENGTHS} --model {model} -o m.margrove{options}",
        "show m.margrove --json",
        "certify m.margrove lengths.csv --json",
        "predict m.margrove lengths.csv",
    ]


# Each script runs in a folder of its own, its commands one after the other.
SCRIPTS: dict[str, list[str]] = {
    **{f"classify, {model}": _classify(model) for model in _MODELS},
    **{f"regress, {model}": _regress(model) for model in ("linear", "tree", "adaboost")},
    "auto": [
        f"train {_FLOWERS}",
        "show flowers.margrove --json",
        "report flowers.margrove flowers.csv --format json -o -",
        "report flowers.margrove flowers.csv --json",
    ],
    "auto, numbers": [
        "train short.csv --prefer simple --json --no-report --budget 1h",
        "report short.margrove short.csv --format json -o -",
    ],
    "compare": [
        "compare few.csv --target kind --folds 2 --time-limit 600 --json",
        "compare short.csv --task regress --folds 2 --time-limit 600 --json",
    ],
    "options": [
        "train flowers.csv --target kind --model svm --budget 0 --folds 0 --param C=10 --json --no-report",
        f"train {_FLOWERS} --model linear --without colour --seed 3",
        "train notes.csv --text words --model linear --folds 2 --budget 1h --json --no-report",
        "predict notes.margrove notes.csv --keep none --probabilities",
        "train notes.csv --text words --text-features hashing --model basic --folds 2 --json --no-report",
        "train - --target kind --model basic --folds 2 --json --no-report -o piped.margrove < flowers.csv",
        "train bare.csv --no-header --delimiter ; --model tree --folds 0 --json --no-report",
        "train flowers.csv --target kind --model basic --missing red --folds 0 --json --no-report",
        "train unlabelled.csv --model basic --drop-unlabelled --folds 0 --json --no-report",
        "train flowers.csv --target kind --model svm --param probability=true --folds 0 --budget 0 --json --no-report",
        "predict flowers.margrove other.csv --probabilities --json -o p.csv",
    ],
    "exports": [
        "train flowers.csv --target kind --model tree --folds 0 --no-report --json",
        "show flowers.margrove --rules",
        "show flowers.margrove --lines --json",
        "export flowers.margrove --to sql",
        "export flowers.margrove --to python",
        "export flowers.margrove --to c",
        "export flowers.margrove --to onnx -o t.onnx --json",
        "export flowers.margrove --to libsvm",
        "train flowers.csv --target kind --model svm --folds 0 --no-report --budget 0 --json",
        "export flowers.margrove --to libsvm",
        "export flowers.margrove --to libsvm -o m.libsvm --json",
        "export flowers.margrove --to sql",
        "show flowers.margrove --rules",
    ],
    "errors": [
        "train absent.csv",
        "train flowers.csv --target absent",
        "train flowers.csv --model absent",
        "train flowers.csv --absent",
        "train flowers.csv --model basic --param absent=1",
        "train flowers.csv --model svm --param C=none",
        "train flowers.csv --target kind --model svm --param C=-1 --folds 0 --budget 0",
        "train flowers.csv --target kind --model basic --task regress",
        "train flowers.csv --target kind --budget soon",
        "train flowers.csv --target kind --folds 1",
        "train empty.csv",
        "train ragged.csv",
        "train unlabelled.csv --model basic",
        "train one.csv --model basic",
        "train flowers.csv -o absent/m.margrove",
        "train flowers.csv --json -o -",
        "compare flowers.csv --model svm",
        "predict absent.margrove flowers.csv",
        "predict flowers.csv flowers.csv",
        "train flowers.csv --target kind --model basic --folds 0 --no-report --json",
        "predict flowers.margrove lengths.csv",
        "predict flowers.margrove flowers.csv --probabilities",
        "predict flowers.margrove flowers.csv --keep absent",
        "certify flowers.margrove lengths.csv",
        "export flowers.margrove --to pascal",
        "show empty.csv",
        "report flowers.margrove flowers.csv --format pdf",
        "absent",
    ],
    "images": [
        "images stripes --network edges.onnx --model svm --folds 2 --json",
        "show stripes.margrove --json",
        "predict stripes.margrove stripes",
        "images absent --network edges.onnx",
    ],
}


def write_tables() -> None:
    """The files that the scripts read, in the current folder."""
    rng = np.random.default_rng(2026)
    kinds = np.array(["daisy", "tulip", "aster"])[np.arange(45) % 3]
    petal = np.round((np.arange(45) % 3) + rng.normal(0, 0.5, 45), 2)
    colour = np.where(rng.random(45) < 0.7, np.array(["red", "white", "blue"])[np.arange(45) % 3], "red")
    height = [f"{value:.1f}" if rng.random() > 0.1 else "" for value in 10 * petal + rng.normal(0, 5, 45)]
    flowers = [",".join(map(str, row)) for row in zip(kinds, petal, colour, height, strict=True)]
    lengths = [
        f"{a},{c},{2 * a + (c == 'red') + e:.3f}" for a, c, e in zip(petal, colour, petal[::-1] / 9, strict=True)
    ]
    words = ("good bright warm", "bad dark cold", "good cold", "bad warm dark")
    texts = {
        "flowers.csv": ["kind,petal,colour,height", *flowers],
        "few.csv": ["kind,petal,colour,height", *flowers[:24]],
        "other.csv": ["kind,petal,colour,height", *flowers[10:30], "aster,9.5,green,"],
        "lengths.csv": ["width,colour,length", *lengths],
        "short.csv": ["width,colour,length", *lengths[:24]],
        "notes.csv": ["words,verdict", *(f"{words[i % 4]} {i % 5},{'no' if i % 2 else 'yes'}" for i in range(24))],
        "bare.csv": [f"{a};{b}" for a, b in zip(petal, kinds, strict=True)],
        "unlabelled.csv": ["a,b,kind", *(f"{i},{i * i % 7},{'x' if i % 3 else ''}" for i in range(6)), "3,4,y"],
        "one.csv": ["a,kind", "1,x", "2,x", "3,x"],
        "empty.csv": [],
        "ragged.csv": ["a,b,kind", "1,2,x", "3,4,5,6,y"],
    }
    for name, lines in texts.items():
        Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _write_pictures() -> None:
    from margrove.transfer.tiny import write_tiny_network, write_tiny_pictures

    write_tiny_network("edges.onnx")
    write_tiny_pictures("stripes", n=6)


@contextlib.contextmanager
def _in_new_folder() -> Iterator[None]:
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def observed_script(name: str) -> dict[str, dict[str, Any]]:
    """What each command of a script gives."""
    with _in_new_folder(), threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the commands tell their own
        write_tables()
        if name == "images":
            _write_pictures()
        return {f"{number}: {line}": _typed(line) for number, line in enumerate(SCRIPTS[name], 1)}


def observed_commands() -> dict[str, dict[str, Any]]:
    """All scripts."""
    return {name: observed_script(name) for name in SCRIPTS}


def _typed(line: str) -> dict[str, Any]:
    words, _, source = line.partition(" < ")
    given = Path(source).read_bytes() if source else None
    result = CliRunner(env={"COLUMNS": "200", "TERM": "dumb", "NO_COLOR": "1"}).invoke(
        app, words.split(), input=given, prog_name="margrove"
    )
    told: dict[str, Any] = {"exit": result.exit_code}
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        told["exception"] = repr(result.exception)
    if result.exit_code and not result.stdout.startswith("{"):
        told["stderr"] = masked(result.stderr) if result.stderr.startswith("margrove: ") else "usage"  # of click
    elif result.stdout.startswith("{"):
        told["json"] = _plain(json.loads(result.stdout))
    else:
        told["text"] = result.stdout
    written = re.search(r" -o (\S+\.csv)", line)
    if written and not result.exit_code:
        told["file"] = Path(written[1]).read_text(encoding="utf-8")
    return told


def _plain(value: Any) -> Any:
    """The document without what only the clock knows."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items() if not _NOT_RECORDED.fullmatch(key)}
    return [_plain(each) for each in value] if isinstance(value, list) else value


def documents_differ(was: Any, now: Any, *, is_exact: bool, where: str = "") -> Iterator[str]:
    """Where two documents differ: anywhere; or in keys, in types and in texts but for their numbers."""
    if isinstance(was, dict) and isinstance(now, dict):
        if was.keys() != now.keys():
            failure = now.get("exception", now.get("stderr", ""))
            yield f"{where}: the keys were {list(was)}, are {list(now)} {failure}"
        for key in was.keys() & now.keys():
            yield from documents_differ(was[key], now[key], is_exact=is_exact, where=f"{where}.{key}")
    elif isinstance(was, list) and isinstance(now, list):
        if is_exact and len(was) != len(now):
            yield f"{where}: {len(was)} items were there, {len(now)} are"
        for index, (a, b) in enumerate(zip(was, now, strict=False)):
            yield from documents_differ(a, b, is_exact=is_exact, where=f"{where}[{index}]")
    elif is_exact or where == ".exit":
        if was != now:
            yield f"{where} was {was!r}, is {now!r}"
    elif isinstance(was, str) and isinstance(now, str):
        pairs = list(zip_longest(masked(was).splitlines(), masked(now).splitlines()))
        wrong = [(a, b) for a, b in pairs if a != b]
        if len(wrong) > _OTHER_LINES * len(pairs):
            yield f"{where}: {wrong}"
    elif type(was) is not type(now) and None not in (was, now):
        yield f"{where} was {was!r}, is {now!r}"
