"""What a release is made of agrees with pyproject.toml, and builds that cannot work are refused by name."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import margrove

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def test_the_version_stands_in_one_place():
    version = PROJECT["project"]["version"]
    assert margrove.__version__ == version
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\n## {version} " in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_every_source_of_the_core_is_compiled():
    listed = set(re.findall(r"core/[\w/]+\.cpp", (ROOT / "CMakeLists.txt").read_text("utf-8")))
    assert listed == {str(path.relative_to(ROOT)) for path in (ROOT / "core").rglob("*.cpp")}


def configured(folder: Path, *options: str) -> str:
    """Return what CMake says about the build files with these options."""
    cmake = shutil.which("cmake", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if cmake is None:
        pytest.skip("CMake is not installed")
    given = [f"-DPython_EXECUTABLE={sys.executable}", *options]
    found = subprocess.run([cmake, "-S", ROOT, "-B", folder, *given], capture_output=True, text=True)
    assert found.returncode != 0
    return " ".join(found.stderr.split())


def test_a_free_threaded_python_is_refused_by_name(tmp_path):
    assert "does not support free-threaded Python (3.13t, 3.14t)" in configured(tmp_path, "-DMARGROVE_FREE_THREADED=1")


def test_msvc_is_refused_by_name(tmp_path):
    assert "Use clang-cl" in configured(tmp_path, "-DMSVC=1")


@pytest.mark.slow
def test_wheels_are_built_audited_and_tested():
    subprocess.run([sys.executable, "release/wheels.py", "--once"], check=True, cwd=ROOT)
    names = {path.name for path in (ROOT / "dist").glob("*.whl")}
    assert {"cp311", "cp312"} == {name.split("-")[2] for name in names}
    assert all("-manylinux_2_" in name for name in names if sys.platform == "linux")
