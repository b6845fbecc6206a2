"""Mutated model files, in child processes: damaged bytes, and headers and arrays that were forged with a right digest.

    python -m tests.attack.model_files --cases 5000 --seed 1
    python -m tests.attack.model_files --seed 1 --case 137

The originals are the files of tests/store/golden. Damaged bytes must be refused. A forged file must be refused, or give
a model that predicts, whose certificate can be printed and asked for, and that `margrove show` can show. Verdicts:

======== ======================================================================================= =======
refused  a ModelFileError
harmless a model that does all of the above, or refuses it with a MargroveError
loaded   damaged bytes were loaded                                                                fault
crash    the process died                                                                         fault
hang     a phase took longer than `children.SILENCE`                                              fault
raw      any exception that is no MargroveError                                                   fault
======== ======================================================================================= =======
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from tests.attack import children

GOLDEN = children.ROOT / "tests" / "store" / "golden"
FAULTS = ("crash", "hang", "raw", "loaded")
Rng = np.random.Generator


@cache
def _originals() -> tuple[Path, ...]:
    return tuple(sorted(GOLDEN.glob("*.margrove")))


# ---- damaged bytes


def _flipped(raw: bytearray, rng: Rng) -> bytearray:
    for place in rng.integers(0, len(raw), size=rng.integers(1, 9)):
        raw[place] ^= 1 << rng.integers(0, 8)
    return raw


def _overwritten(raw: bytearray, rng: Rng) -> bytearray:
    start, piece = int(rng.integers(0, len(raw))), rng.bytes(int(rng.integers(1, 64)))
    return raw[:start] + piece + raw[start + len(piece) :]


def _cut(raw: bytearray, rng: Rng) -> bytearray:
    return raw[: rng.integers(0, len(raw))]


def _shortened(raw: bytearray, rng: Rng) -> bytearray:
    start = int(rng.integers(0, len(raw)))
    return raw[:start] + raw[start + int(rng.integers(1, 100)) :]


def _doubled(raw: bytearray, rng: Rng) -> bytearray:
    start = int(rng.integers(0, len(raw)))
    return raw[:start] + raw[start : start + 50] + raw[start:]


def _spliced(raw: bytearray, rng: Rng) -> bytearray:
    """The head of one file, the tail of another."""
    other = _originals()[rng.integers(len(_originals()))].read_bytes()
    return raw[: rng.integers(0, len(raw))] + other[rng.integers(0, len(other)) :]


def _of_another_length(raw: bytearray, rng: Rng) -> bytearray:
    """A header that declares another length of itself."""
    length = int(rng.choice([0, 1, 2**24, 2**31, 2**63 - 1, int.from_bytes(raw[:8], "little") + 1]))
    return length.to_bytes(8, "little") + raw[8:]


def _laid_out_otherwise(raw: bytearray, rng: Rng) -> bytearray:
    """A safetensors header whose shapes, types or places lie; such a file may declare terabytes."""
    length = int.from_bytes(raw[:8], "little")
    layout = json.loads(raw[8 : 8 + length])
    names = [name for name in layout if name != "__metadata__"]
    if names:
        entry = layout[names[rng.integers(len(names))]]
        key = ["dtype", "shape", "data_offsets"][rng.integers(3)]
        lies = {
            "dtype": ["F16", "F64", "I8", "BOOL", "X", 3, None],
            "shape": [[], [0], [2**62], [2**31, 2**31], [-1], ["a"], None, [1] * 100],
            "data_offsets": [[0, 2**62], [0, 0], [5, 3], [-8, 0], [0], None, ["a", "b"], [0.5, 1.5]],
        }[key]
        entry[key] = lies[rng.integers(len(lies))]
    else:
        layout["x"] = {"dtype": "F64", "shape": [9 * 2**40], "data_offsets": [0, 72 * 2**40]}
    text = json.dumps(layout).encode()
    return bytearray(len(text).to_bytes(8, "little") + text + raw[8 + length :])


_DAMAGE: tuple[Callable[[bytearray, Rng], bytearray], ...] = (
    *(_flipped, _overwritten, _cut, _shortened, _doubled, _spliced, _of_another_length, _laid_out_otherwise),
)


# ---- forgeries: anything at all, and a digest that is right


def _places(record: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = record.items() if isinstance(record, dict) else enumerate(record) if isinstance(record, list) else ()
    for key, value in items:
        yield (*before, key)
        yield from _places(value, (*before, key))


def _nonsense(rng: Rng, known: Any) -> Any:
    """A JSON value: something odd, or near to what was there."""
    odd = [
        *(
            None,
            True,
            False,
            0,
            -1,
            1,
            2,
            3,
            2**31,
            2**63,
            10**400,
            0.5,
            -0.0,
            1e308,
            5e-324,
            "",
            "a",
            "native",
            "x" * 99,
        ),
        *("\x1b[31m\x07", "\ud800", [], [0], [[]], ["a", "a"], {}, {"a": 1}, {"class": "SVC"}, [None] * 50),
    ]
    if rng.random() < 0.3 and isinstance(known, list) and known:
        return [known[1:], known + known[:1], known[::-1]][rng.integers(3)]
    if rng.random() < 0.3 and isinstance(known, int | float) and not isinstance(known, bool):
        return [known + 1, -known, known * 1000, float(known), str(known)][rng.integers(5)]
    return odd[rng.integers(len(odd))]


def _forge_header(header: dict[str, Any], tensors: dict[str, Any], rng: Rng) -> str:
    for _ in range(int(rng.choice([1, 1, 1, 2, 5]))):
        places = list(_places(header))
        path = places[rng.integers(len(places))]
        inner = header
        for key in path[:-1]:
            inner = inner[key]
        if rng.random() < 0.15:
            del inner[path[-1]]
        elif rng.random() < 0.1 and isinstance(inner, dict):
            inner["extra"] = _nonsense(rng, None)
        else:
            inner[path[-1]] = _nonsense(rng, inner[path[-1]])
    return f"header at {'.'.join(map(str, path))}"


def _forge_tensor(header: dict[str, Any], tensors: dict[str, Any], rng: Rng) -> str:
    if not tensors:
        return "nothing"
    names = list(tensors)
    name = names[rng.integers(len(names))]
    array, kind = tensors[name], rng.integers(9)
    if kind == 0:
        del tensors[name]
    elif kind == 1:
        tensors["extra"] = array
    elif kind == 2:
        tensors[name] = tensors[names[rng.integers(len(names))]]
    elif kind == 3:
        tensors[name] = array.astype([np.float32, np.int8, np.int64, np.float64][rng.integers(4)])
    elif kind == 4:
        tensors[name] = np.ascontiguousarray(
            [array.T, array.ravel(), array[None], array[:0], array[:-1]][rng.integers(5)]
        )
    elif kind == 5:
        tensors[name] = np.concatenate([array, array])
    elif array.size:
        array = array.copy()
        values = [np.nan, np.inf, -1, 1e308, 2**31 - 1, -(2**31), 0, 7, 127]
        with np.errstate(all="ignore"):
            spot = rng.integers(array.size)
            array.flat[spot] = np.array(values[rng.integers(len(values))]).astype(array.dtype)
            if kind == 8:
                array = np.full_like(array, array.flat[spot])
        tensors[name] = array
    return f"array {name}, way {kind}"


# ---- one case


def drawn(seed: int, number: int) -> tuple[bytes, str, bool, Any]:
    """The file, what was done to it, whether it must be refused, and points to predict."""
    from margrove.store.container import pack, unpack

    rng = np.random.default_rng([seed, number])
    path = _originals()[rng.integers(len(_originals()))]
    whole, points = path.read_bytes(), json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))["points"]
    way = rng.integers(3)
    if way == 0:
        damage = _DAMAGE[rng.integers(len(_DAMAGE))]
        raw = bytes(damage(bytearray(whole), rng))
        return raw, f"{path.stem}: {damage.__name__[1:]}", raw != whole, points
    header, tensors = unpack(io.BytesIO(whole))
    del header["sha256"]
    what = (_forge_header if way == 1 else _forge_tensor)(header, tensors, rng)
    try:
        raw = bytes(pack(header, tensors))
    except Exception:  # no such file can be written
        raw = whole
    return raw, f"{path.stem}: {what}", False, points


def attack(seed: int, number: int, tell: children.Tell) -> dict[str, Any]:
    """Load the file of a case, and use the model."""
    import margrove
    from margrove.errors import MargroveError, ModelFileError

    tell("drawing")
    raw, about, must_be_refused, points = drawn(seed, number)
    phase = "load"
    try:
        tell(phase)
        model = margrove.load(io.BytesIO(raw))
        if must_be_refused:
            return {"verdict": "loaded", "about": about}
        X = _table(points)
        uses: dict[str, Callable[[], Any]] = {
            "predict": lambda: model.predict(X),
            "repr": lambda: f"{model!r} {getattr(model, 'certificate_', '')}",
            "certify": lambda: margrove.certify(model, X, model.predict(X)),
            "save": lambda: margrove.save(model, io.BytesIO()),
            "show": lambda: _shown(raw),
        }
        for phase, use in uses.items():
            tell(phase)
            try:
                use()
            except MargroveError:
                continue
            except ValueError as error:
                if not children.is_of_scikit_learns_checks(error):
                    raise
    except ModelFileError as error:
        return {"verdict": "refused", "about": about, "detail": str(error)[:200]}
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        place = next((frame for frame in reversed(frames) if "/margrove/" in frame.filename), frames[-1])
        where = f"{place.filename.rsplit('/margrove/')[-1]}:{place.lineno}"
        return {
            "verdict": "raw",
            "about": about,
            "detail": f"in {phase}, at {where}: {type(error).__name__}: {str(error)[:200]}",
        }
    return {"verdict": "harmless", "about": about}


def _table(points: Any) -> Any:
    if not isinstance(points, dict):
        return np.array(points)
    import pyarrow

    import margrove

    return margrove.as_table(pyarrow.table(points))


def _shown(raw: bytes) -> None:
    """`margrove show`; an error that the command does not tell escapes."""
    from typer.testing import CliRunner

    from margrove.app.cli import app

    with tempfile.NamedTemporaryFile(suffix=".margrove") as file:
        file.write(raw)
        file.flush()
        result = CliRunner().invoke(app, ["show", file.name])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    if "\x1b[31m\x07" in result.output:
        raise RuntimeError("show sends control characters of the file to the terminal")


# ---- the run


def fuzz(cases: list[int], seed: int, workers: int = 2) -> list[children.Outcome]:
    """Run the cases in child processes."""
    return children.run("tests.attack.model_files", cases, ["--seed", str(seed)], workers=workers)


def report(outcomes: list[children.Outcome], seed: int) -> str:
    """Counts of each verdict, and a paragraph for each fault."""
    counts = Counter(outcome.verdict for outcome in outcomes)
    lines = [f"{len(outcomes)} files, seed {seed}: " + ", ".join(f"{n} {key}" for key, n in counts.most_common())]
    for outcome in outcomes:
        if outcome.verdict in FAULTS:
            about = outcome.about or drawn(seed, outcome.case)[1]
            command = f"python -m tests.attack.model_files --seed {seed} --case {outcome.case}"
            lines.append(f"{outcome.verdict}: {outcome.detail}\n    {about}\n    {command}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--case", type=int, help="run this one case, in this process")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    if asked.child:
        import margrove.app.show  # noqa: F401 imports most of the library before the first case

        children.serve(lambda number, tell: attack(asked.seed, number, tell))
        return 0
    if asked.case is not None:
        print(attack(asked.seed, asked.case, lambda phase: print(f"({phase})", flush=True)))
        return 0
    outcomes = fuzz(list(range(asked.cases)), asked.seed, asked.workers)
    print(report(outcomes, asked.seed))
    return int(any(outcome.verdict in FAULTS for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
