"""Small real pictures: codes of EfficientNet-Lite0 under an SVM, softmax and a tree; fine-tuning; the speed of codes.

    python benchmarks/images.py                      all parts (half an hour on 2 idle cores)
    python benchmarks/images.py --only speed         one part: accuracy, finetune, speed or memory; the others stay
    python benchmarks/images.py --cache FOLDER       codes are kept there

cifar10_small: 2,000 training and 600 test pictures of 32 × 32 pixels in 10 classes, brought to 224 × 224. Every setting
is chosen by 3-fold cross-validation on the training pictures; the test pictures choose nothing. Of fine-tuning
nothing is searched.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import torch
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import normalize

from margrove import SVC, ConvFeatures, DecisionTreeClassifier, FineTuned, SoftmaxClassifier, certify
from margrove.transfer.named_networks import efficientnet_lite0
from margrove.transfer.pictures import as_pictures
from measure import RESULTS, interleaved, keep, machine
from svm import DATA

BAR = (
    "codes + SVM: test accuracy ≥ 0.70 and ≥ 0.25 above the same SVM on raw pixels; codes no slower than a plain torch "
    "loop with the same batches; memory bounded by the batch"
)
FOLDS = 3
LAYERS: dict[str, str | None] = {"head": None}  # what the classifier is given
PRICES = (0.5, 2.0, 8.0)  # C of the SVM
SOFT_PRICES = (0.01, 0.1)
SPEED_PICTURES, BATCH, RUNS = 96, 32, 5
MEMORY_PICTURES = (64, 640)
TUNING: dict[str, Any] = {"n_blocks": 3, "epochs": 3, "size": 96, "batch_size": 32, "random_state": 0}


def pictures() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training and test pictures with their classes."""
    with np.load(DATA / "cifar10_small.npz") as z:
        return z["X_train"].reshape(-1, 32, 32, 3), z["y_train"], z["X_test"].reshape(-1, 32, 32, 3), z["y_test"]


def chosen(makers: dict[str, Callable[[], Any]], views: dict[str, np.ndarray], y: np.ndarray) -> tuple[str, str, float]:
    """The learner and the view of the pictures that cross-validate best."""
    scores = {
        (maker, view): float(cross_val_score(make(), X, y, cv=FOLDS).mean())
        for (maker, make), (view, X) in product(makers.items(), views.items())
    }
    best = max(scores, key=lambda key: scores[key])
    for key, score in scores.items():
        print("   ", *key, f"{score:.4f}", flush=True)
    return (*best, scores[best])


def accuracy(cache: str | None) -> list[dict[str, Any]]:
    """A line for each learner: what was chosen, and how often it is right."""
    X, y, X_test, y_test = pictures()
    views, tests = {}, {}
    for name, layer in LAYERS.items():
        features = ConvFeatures(layer=layer, flip=True, batch_size=BATCH, cache=cache).fit(X)
        codes, test_codes = features.transform(X), features.transform(X_test)
        for words, change in (("", lambda c: c), (", length 1", normalize)):
            views[name + words], tests[name + words] = change(codes), change(test_codes)
    raw = {"raw pixels": X.reshape(len(X), -1) / 255}
    raw_tests = {"raw pixels": X_test.reshape(len(X_test), -1) / 255}
    svms = {f"SVC(C={C:g})": lambda C=C: SVC(C=C) for C in PRICES}
    soft = {f"SoftmaxClassifier(C={C:g})": lambda C=C: SoftmaxClassifier(C=C) for C in SOFT_PRICES}
    plain = {"head": views["head"]}
    trees = {
        f"DecisionTreeClassifier({thresholds}, pruned)": lambda t=thresholds: DecisionTreeClassifier(
            criterion="entropy", thresholds=t, prune="pessimistic"
        )
        for thresholds in ("exact", "gaussian")
    }
    lines = []
    for title, makers, seen, unseen in (
        ("svm, raw pixels", svms, raw, raw_tests),
        ("svm", svms, views, tests),
        ("softmax", soft, plain, tests),
        ("tree", trees, plain, tests),
    ):
        maker, view, score = chosen(makers, seen, y)
        started = time.perf_counter()
        model = makers[maker]().fit(seen[view], y)
        seconds = time.perf_counter() - started
        lines.append(
            {
                "case": title,
                "model": maker,
                "codes": view,
                "cross_validated": score,
                "test": float(model.score(unseen[view], y_test)),
                "fit_seconds": seconds,
                "holds": certify(model, seen[view], y).holds,
            }
        )
        print(lines[-1], flush=True)
    return lines


def finetune(_: str | None) -> list[dict[str, Any]]:
    """The network trained on; the new layer and the last blocks."""
    X, y, X_test, y_test = pictures()
    started = time.perf_counter()
    model = FineTuned(**TUNING).fit(X, y)
    seconds = time.perf_counter() - started
    words = ", ".join(f"{name}={value}" for name, value in TUNING.items() if name != "random_state")
    return [
        {
            "case": "finetune",
            "model": f"FineTuned({words})",
            "codes": "",
            "cross_validated": model.course_[-1]["held_out_accuracy"],
            "test": float(model.score(X_test, y_test)),
            "fit_seconds": seconds,
            "epochs": model.n_iter_,
            "holds": certify(model, X, y).holds,
        }
    ]


def speed(_: str | None) -> list[dict[str, Any]]:
    """Codes by `ConvFeatures` and by the loop that everybody writes; the same batches, the same preparation."""
    X = pictures()[0][:SPEED_PICTURES]
    features = ConvFeatures(batch_size=BATCH).fit(X)
    net = efficientnet_lite0().module.eval()
    mean, std = (
        torch.tensor(each).view(1, 3, 1, 1) for each in (features.preparation_.mean, features.preparation_.std)
    )

    def plain_loop() -> np.ndarray:
        found = []
        with torch.no_grad():
            for start in range(0, len(X), BATCH):
                pixels = features.preparation_.pixels(as_pictures(X[start : start + BATCH]))
                batch = (torch.from_numpy(pixels.transpose(0, 3, 1, 2).copy()).float() / 255 - mean) / std
                maps = net.head(net.blocks(net.stem(batch)))
                found.append(maps.mean(dim=(2, 3)).relu().numpy())
        return np.concatenate(found)

    def ours() -> np.ndarray:
        return features.transform(X)

    off = float(np.abs(ours() - plain_loop()).max() / np.abs(plain_loop()).max())
    best = interleaved({"margrove": ours, "plain_loop": plain_loop}, RUNS)
    case = {"case": "codes", "pictures": len(X), "batch": BATCH, "threads": torch.get_num_threads(), **best}
    return [{**case, "times_as_fast": best["plain_loop"] / best["margrove"], "largest_difference": off}]


def memory(_: str | None) -> list[dict[str, Any]]:
    """The largest memory of a process that computes the codes of so many pictures, files on disk, at the same batch."""
    lines = []
    for n in MEMORY_PICTURES:
        code = (
            "import sys, tempfile; import numpy as np; from PIL import Image; from pathlib import Path\n"
            "from margrove import ConvFeatures\n"
            f"folder = Path(tempfile.mkdtemp()); rng = np.random.default_rng(0)\n"
            f"for i in range({n}):\n"
            "    Image.fromarray(rng.integers(0, 256, (256, 256, 3), dtype=np.uint8)).save(folder / f'{i:05}.png')\n"
            "ConvFeatures(size=64, batch_size=16).fit_transform(folder)\n"
            "told = Path('/proc/self/status').read_text().split('VmHWM:')[1]\n"  # ru_maxrss counts the parent's too
            "print(int(told.split()[0]) / 1024)\n"
        )
        told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        lines.append({"case": "memory", "pictures": n, "batch": 16, "peak_mb": float(told.stdout)})
    return lines


PARTS = {"accuracy": accuracy, "finetune": finetune, "speed": speed, "memory": memory}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--cache", default=os.environ.get("MARGROVE_BENCH_CACHE"))
    given = parser.parse_args()
    path = RESULTS / "images.json"
    for name, part in PARTS.items():
        if given.only in (None, name):
            found = part(given.cache)
            parts = json.loads(path.read_text("utf-8"))["parts"] if path.is_file() else {}
            parts[name] = {"machine": machine("torch"), "cases": found}
            keep({"benchmark": "images", "bar": BAR, "machine": parts[name]["machine"], "parts": parts})
            for case in parts[name]["cases"]:
                print(case, flush=True)


if __name__ == "__main__":
    main()
