"""A process that is killed while it trains, saves or keeps a checkpoint leaves the old files or the new ones, whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from tests.attack.children import ROOT
from tests.attack.kills import WORKS

pytestmark = pytest.mark.skipif(os.name != "posix", reason="fork and SIGKILL")


def killed(name: str, *options: str) -> dict:
    command = [sys.executable, "-W", "ignore", "-m", "tests.attack.kills", "--only", name, *options]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=600, check=False)
    assert done.stdout, done.stderr
    (found,) = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", WORKS)
def test_a_kill_at_any_call_or_moment_leaves_whole_files(name):
    found = killed(name, "--few", "--random", "3", "--seed", "20261116")
    assert found["faults"] == []
    assert found["kills"] >= 7 + 3  # before and after opening, flushing and renaming, and within writing; at random


@pytest.mark.slow
@pytest.mark.parametrize("name", WORKS)
def test_many_kills_leave_whole_files(name):
    found = killed(name, "--random", "100", "--seed", "20261117")
    assert found["faults"] == []
    assert found["kills"] >= 100
