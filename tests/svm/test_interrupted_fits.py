"""Ctrl-C in the middle of a fit, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys

FIT = """
import json, os, signal, warnings
import numpy as np
from margrove import SVC
from margrove.run.progress import watched

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.normal(size=(8000, 20))
y = np.arange(8000) % 4
seen = []

def interrupt(progress):
    seen.append(progress)
    if len(seen) == 2:
        os.kill(os.getpid(), signal.SIGINT)

with watched(interrupt):
    model = SVC(C=1e6, gamma=0.05).fit(X, y)
alpha = np.abs(model.dual_coef_)
print(json.dumps({
    "status": str(model.status_), "largest": float(alpha.max()),
    "predictions": len(model.predict(X[:10])), "holds": model.certificate_.holds,
}))
"""


def test_ctrl_c_keeps_a_feasible_model():
    process = subprocess.run([sys.executable, "-c", FIT], capture_output=True, text=True, timeout=120, check=False)
    assert process.returncode == 0, process.stderr
    found = json.loads(process.stdout)
    assert found["status"] == "interrupted"
    assert found["largest"] <= 1e6
    assert found["predictions"] == 10
    assert found["holds"] is not True
