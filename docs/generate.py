"""Write the parts of the documentation that are made from something else.

=================================  ==================================================================
docs/reference/command-line.md     from the commands and their help
docs/reference/modules.md          from the first sentence of every module and header
docs/benchmarks.md, README.md      the tables between the markers, from benchmarks/results/*.json
docs/images/*.png                  from the examples, and from the code of docs/guide/pictures.md; drawn anew, and
                                   not compared by --check
=================================  ==================================================================

``python docs/generate.py`` writes them. ``python docs/generate.py --check`` writes nothing, names what is stale
and then ends with 1. Where there are no results, the tables stay as they are.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import calibration_results
import gallery
import svm_results

ROOT = SOURCE = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
FIGURES = ROOT / "docs" / "images"
DPI = 80  # legible, and each picture well below 120 KB
BEGIN, END = "<!-- benchmarks:begin -->", "<!-- benchmarks:end -->"
# Benchmarks whose results are more than a list of times: modules that make a section of them (``section``) and, where
# there are times of a peer, lines of a table (``summary``).
RENDERERS: dict[str, Any] = {
    path.stem.removesuffix("_results"): import_module(path.stem) for path in Path(__file__).parent.glob("*_results.py")
}
IN_README = (("svm", "scikit-learn SVC"), ("search", "scikit-learn SVC"), ("tree", "DecisionTreeClassifier"))
IN_PARTS = [each for each in RENDERERS.values() if hasattr(each, "is_there")]  # whose results have no list of cases
NOTICE = "<!-- Made by docs/generate.py; edit that, or the help of the command. -->"


def main(arguments: list[str] | None = None) -> int:
    """Write, or check; the exit status."""
    parser = argparse.ArgumentParser(description="Write the generated parts of the documentation.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if something is stale")
    is_check = parser.parse_args(arguments).check
    stale = [(path, text) for path, text in generated() if not path.is_file() or path.read_text("utf-8") != text]
    for path, text in stale:
        print(f"{'stale' if is_check else 'written'}: {path.relative_to(ROOT)}")
        if not is_check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    if is_check:
        if stale:
            print("Say: python docs/generate.py")
        return int(bool(stale))
    draw_figures()
    return 0


def generated() -> Iterator[tuple[Path, str]]:
    """Each file with the text it should have."""
    yield ROOT / "docs" / "reference" / "command-line.md", command_line()
    yield ROOT / "docs" / "reference" / "modules.md", modules()
    results = read_results(RESULTS)
    if not results:
        return
    for page, table in (
        (ROOT / "docs" / "benchmarks.md", "\n\n".join([summary(results), *map(section, results)])),
        (ROOT / "README.md", summary(results, IN_README)),
        (ROOT / "docs" / "install.md", "\n\n".join(_only(results, "install", "sizes"))),
        (ROOT / "docs" / "guide" / "messy-tables.md", "\n\n".join(_only(results, "exports"))),
    ):
        text = page.read_text("utf-8")
        if BEGIN in text:
            yield page, between_markers(text, table)


# --- benchmarks ---------------------------------------------------------------------------------------------------


def read_results(folder: Path) -> list[dict[str, Any]]:
    """The results that have something, by name; keys that only some benchmarks write may be missing."""
    results = []
    for path in sorted(folder.glob("*.json")):
        result = json.loads(path.read_text("utf-8"))
        is_in_parts = isinstance(result, dict) and any(part.is_there(result) for part in IN_PARTS)
        if is_in_parts or (isinstance(result, dict) and result.get("cases")):
            results.append({"benchmark": path.stem, **result})
    return results


def _only(results: list[dict[str, Any]], benchmark: str, part: str = "section") -> list[str]:
    return [getattr(RENDERERS[benchmark], part)(result) for result in results if result["benchmark"] == benchmark]


def section(result: dict[str, Any]) -> str:
    """One benchmark: its name, its bar, its table, its machine."""
    lines = [f"## {result['benchmark']}"]
    if isinstance(result.get("bar"), str):
        lines.append(f"Bar: {result['bar']}")
    if result["benchmark"] in RENDERERS:
        lines.append(RENDERERS[result["benchmark"]].section(result))
    else:
        lines.append(table_of([row(case) for case in result["cases"]]))
    machine = result.get("machine") or {}
    if machine:
        lines.append(f"Measured on {', '.join(in_words(machine))}.")
    return "\n\n".join(lines)


def summary(results: list[dict[str, Any]], chosen: tuple[tuple[str, str], ...] | None = None) -> str:
    """Return one table of the cases of all benchmarks, or of those that are chosen by benchmark and peer."""
    rows = [(result["benchmark"], line) for result in results for line in lines_of(result)]
    if chosen is not None:
        rows = [next(row for row in rows if row[0] == benchmark and peer in row[1][1]) for benchmark, peer in chosen]
    return table_of([(f"{benchmark}: {name}", *rest) for benchmark, (name, *rest) in rows])


def lines_of(result: dict[str, Any]) -> list[tuple[str, ...]]:
    """A benchmark's lines in the README."""
    if result["benchmark"] in RENDERERS:
        renderer = RENDERERS[result["benchmark"]]
        return renderer.summary(result) if hasattr(renderer, "summary") else []
    return [row(case) for case in result["cases"]]


def row(case: dict[str, Any]) -> tuple[str, ...]:
    """What was done, by whom else, our time, theirs, and how many times as fast we are."""
    name = str(case.get("name", case.get("case", "")))
    ours, peer = case.get("ours_s"), case.get("peer_s")
    factor = times(peer / ours) if ours and peer else ""
    return name, f"`{case['peer']}`" if case.get("peer") else "", seconds(ours), seconds(peer), factor


def in_words(machine: dict[str, Any]) -> Iterator[str]:
    """Each fact of a machine, those within facts included."""
    for key, value in machine.items():
        if isinstance(value, dict):
            yield from in_words(value)
        else:
            yield f"{key} {value}"


def times(factor: float) -> str:
    """A factor with two digits or so."""
    return f"{factor:.0f} ×" if factor >= 10 else f"{factor:.1f} ×" if factor >= 1 else f"{factor:.2g} ×"


def seconds(value: float | None) -> str:
    """A time in the unit that suits it."""
    if value is None:
        return ""
    return f"{value * 1000:.3g} ms" if value < 1 else f"{value:.3g} s"


def table_of(rows: list[tuple[str, ...]]) -> str:
    """Markdown."""
    head = ["| | peer | Margrove | the peer | times as fast |", "|---|---|---:|---:|---:|"]
    return "\n".join(head + ["| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |" for cells in rows])


def between_markers(text: str, table: str) -> str:
    """The text with the table between its markers."""
    before, rest = text.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


# --- the command line ---------------------------------------------------------------------------------------------


def command_line() -> str:
    """A page with every command: the words of ``margrove COMMAND --help``, set as tables."""
    import typer.main

    from margrove.app.cli import app

    group: Any = typer.main.get_command(app)
    parts = [
        NOTICE,
        "# The command line",
        f"{first_line(group.help)} This page has the text of `margrove --help` and `margrove COMMAND --help`.",
    ]
    for name, command in group.commands.items():
        if not command.hidden:
            parts += command_section(name, command)
    return "\n\n".join(parts) + "\n"


def command_section(name: str, command: Any) -> list[str]:
    """Usage, help, arguments, options by panel, and the example."""
    shown = [parameter for parameter in command.params if not getattr(parameter, "hidden", False)]
    arguments = [p for p in shown if p.param_type_name == "argument"]
    options = [p for p in shown if p.param_type_name == "option" and p.name not in ("help",)]
    usage = " ".join(["margrove", name, *(usage_of(p) for p in arguments), *(["[OPTIONS]"] if options else [])])
    parts = [f"## margrove {name}", f"```text\n{usage}\n```", (command.help or "").strip()]
    panels: dict[str, list[str]] = {"": []}  # as the help groups them
    panels[""] += [f"| `{p.name.upper()}` | {cell(p.help)} |" for p in arguments]
    for option in options:
        rows = panels.setdefault(option.rich_help_panel or "", [])
        rows.append(f"| {option_names(option)} | {cell(option.help)}{default_of(option)} |")
    for title, rows in panels.items():
        if rows:
            parts.append("\n".join([f"| {title} | |", "|---|---|", *rows]))
    if command.epilog:
        parts.append(example_of(command.epilog))
    return [part for part in parts if part]


def usage_of(argument: Any) -> str:
    """FILE, or [FILE] where it may be left out."""
    name = argument.name.upper()
    return name if argument.required else f"[{name}]"


def option_names(option: Any) -> str:
    """`--output`, `-o` and, unless it is a switch, what it takes."""
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    return names if option.is_flag else f"{names} {cell(option.metavar or option.name.upper())}"


def default_of(option: Any) -> str:
    """The default, where the help shows it."""
    default = option.default
    is_shown = option.show_default and not option.is_flag and default not in (None, "", ()) and not callable(default)
    return f" Default: `{default}`." if is_shown else ""


def example_of(epilog: str) -> str:
    """The example that ends a command's help."""
    words = epilog.strip()
    if words.startswith("Example:"):
        return f"Example:\n\n```text\n{words.removeprefix('Example:').strip()}\n```"
    return words


def cell(text: str | None) -> str:
    """A help text in a cell of a table."""
    return " ".join((text or "").split()).replace("|", "\\|")


def first_line(text: str | None) -> str:
    """The sentence that says what it is about."""
    return " ".join((text or "").strip().split("\n\n")[0].split())


# --- modules ------------------------------------------------------------------------------------------------------


def modules() -> str:
    """Return a page with every Python module and C++ header, by folder, with its first sentence."""
    parts = [
        NOTICE,
        "# All modules",
        "Each with its first sentence. [Architecture](../architecture.md) explains the layout.",
    ]
    for root, pattern in ((SOURCE / "src" / "margrove", "*.py"), (SOURCE / "core", "*.hpp")):
        folders: dict[Path, list[Path]] = {}
        for path in sorted(root.rglob(pattern)):
            folders.setdefault(path.parent, []).append(path)
        for folder, paths in folders.items():
            rows = [f"| `{path.stem}` | {cell(first_sentence(path))} |" for path in paths if path.stem != "__init__"]
            package = folder / "__init__.py"
            about = first_sentence(package) if package.exists() else ""
            parts.append(f"## {folder.relative_to(SOURCE).as_posix()}")
            parts += [each for each in (about, "\n".join(["| module | |", "|---|---|", *rows]) if rows else "") if each]
    return "\n\n".join(parts) + "\n"


def first_sentence(path: Path) -> str:
    """Return the first sentence of a module's docstring, or of the comment that a header begins with."""
    text = path.read_text("utf-8")
    if path.suffix == ".py":
        words = ast.get_docstring(ast.parse(text)) or ""
    else:
        words = "\n".join(
            line.removeprefix("//").strip() for line in takewhile(lambda x: x.startswith("//"), text.splitlines())
        )
    paragraph = " ".join(words.split("\n\n")[0].split())
    return re.split(r"(?<=[.:]) (?=[A-Z`])", paragraph)[0].rstrip(":")


# --- figures ------------------------------------------------------------------------------------------------------


def draw_figures() -> None:
    """The pictures that the pages show, drawn by the examples."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    sys.path.insert(0, str(ROOT / "examples"))
    import boosting
    import linear_side_by_side
    import many_classes
    import penguins
    import support_vectors
    import trees
    import two_spirals

    FIGURES.mkdir(parents=True, exist_ok=True)
    for module in (boosting, linear_side_by_side, many_classes, penguins, support_vectors, trees, two_spirals):
        for name, figure in module.figures().items():
            figure.savefig(FIGURES / f"{name}.png", dpi=DPI, metadata={"Software": None})
            plt.close(figure)
    for name, figure in gallery.figures(FIGURES):
        figure.savefig(FIGURES / f"{name}.png", dpi=DPI, metadata={"Software": None})
        plt.close("all")
    for result in read_results(RESULTS):
        if result.get("scaling"):
            svm_results.draw_scaling(result, FIGURES / "svm-scaling.png", DPI)
        if result["benchmark"] == "calibration":
            calibration_results.draw_reliability(result, FIGURES / "calibration.png", DPI)


if __name__ == "__main__":
    sys.exit(main())
