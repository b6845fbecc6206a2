"""scikit-learn's own test files, run with our classes in the place of its own (`sklearn_suites/swap.py`).

The tests that may fail are listed in `sklearn_suites/exceptions.toml`, each with its reason: a test that fails without
one, or passes although it is listed, fails here. Only tests that construct one of our classes count.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import sklearn

SUITES = {
    "test_svm": "sklearn.svm.tests.test_svm",
    "test_perceptron": "sklearn.linear_model.tests.test_perceptron",
    "test_weight_boosting": "sklearn.ensemble.tests.test_weight_boosting",
    "test_tree": "sklearn.tree.tests.test_tree",
    "test_multiclass": "sklearn.tests.test_multiclass",
    "test_forest": "sklearn.ensemble.tests.test_forest",
}
KINDS = ("message", "random", "private", "deprecated", "difference")
ROOT = Path(__file__).parents[2]
EXCEPTIONS = tomllib.loads((ROOT / "tests/peers/sklearn_suites/exceptions.toml").read_text(encoding="utf-8"))
OF_VERSION = (1, 9)  # the scikit-learn whose tests the list names


def test_every_exception_has_a_known_kind_and_a_reason():
    assert set(EXCEPTIONS) <= set(SUITES)
    for suite in EXCEPTIONS.values():
        for name, exception in suite.items():
            assert exception["kind"] in KINDS, name
            assert len(exception["reason"]) > 20, name


@pytest.mark.slow
@pytest.mark.parametrize("suite", SUITES)
def test_suite_passes_but_for_listed_exceptions(suite, tmp_path, capsys):
    if tuple(map(int, sklearn.__version__.split(".")[:2])) != OF_VERSION:
        pytest.skip(f"the exceptions are those of scikit-learn {OF_VERSION[0]}.{OF_VERSION[1]}")
    outcomes = tmp_path / "outcomes.json"
    options = ["-q", "-c", os.devnull, "-p", "no:cacheprovider", "-p", "tests.peers.sklearn_suites.swap"]
    command = [sys.executable, "-m", "pytest", *options, "--pyargs", SUITES[suite]]
    environment = {**os.environ, "MARGROVE_OUTCOMES": str(outcomes)}
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=1800, check=False)
    assert outcomes.exists(), run.stdout[-2000:] + run.stderr[-2000:]
    found = json.loads(outcomes.read_text(encoding="utf-8"))
    ours = {name.split("::", 1)[1]: each for name, each in found.items() if each.get("ours")}
    listed = EXCEPTIONS.get(suite, {})

    def reason(name):
        return listed.get(name) or listed.get(name.partition("[")[0])

    failed = {name for name, each in ours.items() if each["outcome"] == "failed"}
    n_random = sum(reason(name)["kind"] == "random" for name in failed if reason(name))
    with capsys.disabled():
        share = 1 - len(failed) / len(ours)
        print(f"\n{suite}: {len(ours) - len(failed)} of {len(ours)} pass with our classes, {100 * share:.1f} %")
    messages = {name: ours[name]["message"][-300:] for name in sorted(failed) if not reason(name)}
    assert not messages, f"fail without a reason: {messages}"
    assert {name for name in ours if reason(name)} <= failed, "pass although they are listed"
    covered = {key for key in listed for name in ours if key in (name, name.partition("[")[0])}
    assert set(listed) <= covered, "listed, but not there"
    assert share >= 0.93
    assert n_random <= 0.03 * len(ours)
