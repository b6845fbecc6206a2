"""The end of `make release`: the documentation from the wheel, the bill of materials and the checksums, into dist/."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import sys
from importlib.metadata import version

from wheels import DIST, ROOT, WORK, environment, run


def main() -> None:
    wheel = next(DIST.glob(f"*cp311-cp311*{platform.machine()}.whl"), None)
    if wheel is None:
        sys.exit("There is no wheel in dist/. Run: make wheels")
    bin_ = environment(sys.executable, "docs", f"{wheel}[test,docs]")
    site = WORK / "site"
    run(str(bin_ / "python"), "-m", "sphinx", "-W", "-q", "-b", "html", "docs", str(site))
    shutil.make_archive(str(DIST / "margrove-docs"), "zip", site)
    bill_of_materials(str(wheel))
    files = sorted(path for path in DIST.iterdir() if path.name != "SHA256SUMS")
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (DIST / "SHA256SUMS").write_text("".join(lines))
    print("".join(lines))


def bill_of_materials(wheel: str) -> None:
    """Write what an installation holds, as CycloneDX: packages with versions, and what is compiled into the core."""
    shutil.rmtree(WORK / "plain", ignore_errors=True)
    plain = environment(sys.executable, "plain", wheel)
    run(str(plain / "python"), "-m", "pip", "uninstall", "--quiet", "--yes", "setuptools", "pip")  # which venv brought
    tools = environment(sys.executable, "tools", "cyclonedx-bom")
    path = DIST / "margrove.cdx.json"
    options = ("--output-reproducible", "--of", "JSON", "-o", str(path), str(plain / "python"))
    run(str(tools / "cyclonedx-py"), "environment", *options)
    bill = json.loads(path.read_text().replace(f"file://{DIST}/", ""))
    bill["components"].append(
        {
            "type": "library",
            "name": "nanobind",
            "version": version("nanobind"),
            "purl": f"pkg:pypi/nanobind@{version('nanobind')}",
            "licenses": [{"license": {"id": "BSD-3-Clause"}}],
            "description": "compiled into margrove._core, with tsl::robin_map (MIT), libstdc++ (GPL with exception) "
            "and, for aarch64, libc++ and libunwind of LLVM (Apache-2.0 with exception)",
        }
    )
    path.write_text(json.dumps(bill, indent=2) + "\n")


if __name__ == "__main__":
    main()
    print(f"Release files are in {DIST.relative_to(ROOT)}/.")
