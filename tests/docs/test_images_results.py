"""The table of the images benchmark tells every bar that is missed."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs"))
import images_results


def result(svm=0.73, raw=0.41, ratio=1.2):
    def line(case, test):
        return {"case": case, "model": "SVC(C=2)", "codes": "head", "cross_validated": 0.5, "test": test, "holds": True}

    speed = {
        "case": "codes",
        "pictures": 96,
        "batch": 32,
        "threads": 2,
        "margrove": 1.0,
        "plain_loop": ratio,
        "times_as_fast": ratio,
        "largest_difference": 1e-6,
    }
    memory = [{"case": "memory", "pictures": n, "batch": 16, "peak_mb": 500.0} for n in (64, 640)]
    parts = {"accuracy": [line("svm, raw pixels", raw), line("svm", svm)], "speed": [speed], "memory": memory}
    return {"benchmark": "images", "parts": {name: {"cases": cases} for name, cases in parts.items()}}


def test_no_bar_is_missed():
    text = images_results.section(result())
    assert text.endswith("No bar is missed.")
    assert "0.730" in text
    assert "640 pictures: 500 MB" in text
    assert images_results.summary(result())[0][-1] == "1.2 ×"


def test_each_missed_bar_is_reported():
    assert "0.690 of the test pictures" in images_results.section(result(svm=0.69))
    assert "0.200 above raw pixels" in images_results.section(result(raw=0.53))
    assert "0.80 times as fast" in images_results.section(result(ratio=0.8))
