"""`make sanitize`: builds the core with AddressSanitizer and UndefinedBehaviorSanitizer and runs the core's tests on
it.

The sanitized module is put into a copy of the package under build/sanitize, so the installed one is left alone. Python
itself is not instrumented: the sanitizer's run-time library is preloaded, and leaks, which CPython leaves many of at
exit, are not looked for.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "sanitize"


def run(*command: str, **environment: str) -> None:
    subprocess.run(command, check=True, cwd=ROOT, env={**os.environ, **environment})


def runtime_library(name: str) -> str:
    compiler = os.environ.get("CXX", "g++")
    return subprocess.run(
        [compiler, f"-print-file-name={name}"], check=True, capture_output=True, text=True
    ).stdout.strip()


def main() -> None:
    run(
        *(
            "cmake",
            "-S",
            str(ROOT),
            "-B",
            str(BUILD),
            "-G",
            "Ninja",
            "-DMARGROVE_SANITIZE=ON",
            "-DMARGROVE_PRECOMPILE=OFF",  # so that a missing #include is an error
            "-DCMAKE_BUILD_TYPE=Debug",
        ),
        f"-DPython_EXECUTABLE={sys.executable}",
        PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    )
    run("cmake", "--build", str(BUILD), PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    package = BUILD / "package" / "margrove"
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree(ROOT / "src" / "margrove", package)
    (module,) = BUILD.glob("_core*.so")
    shutil.copy(module, package)
    # An editable install finds the package before any path is asked: it must not.
    (package.parent / "sitecustomize.py").write_text(
        "import sys\n"
        "sys.meta_path[:] = [f for f in sys.meta_path if type(f).__name__ != 'ScikitBuildRedirectingFinder']\n",
        encoding="utf-8",
    )
    run(
        *(
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "tests/core",
            "tests/engine",
            "tests/laws",
            "tests/linear_svm/test_l1_native.py",
            "tests/linear_svm/test_native_linear.py",
            "tests/linear_svm/test_crammer_singer_native.py",
            "tests/svm",
            "tests/tree/test_native_engine.py",
            "tests/forest/test_walk.py",
            "tests/forest/test_forests.py",
            "tests/boost/test_native_booster.py",
            "tests/boost/test_boost_engines.py",
            "tests/select",
        ),
        LD_PRELOAD=" ".join([runtime_library("libasan.so"), runtime_library("libubsan.so")]),
        ASAN_OPTIONS="detect_leaks=0:abort_on_error=1",
        UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1",
        PYTHONPATH=str(package.parent),
        MARGROVE_EXPECT_CORE=str(package),
    )


if __name__ == "__main__":
    main()
