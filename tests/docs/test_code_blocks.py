"""Nobody can break an example: the code of every page, docstring and script runs as a test.

In README.md and docs/**/*.md, blocks fenced as ``python`` are run in order, in one namespace per page; blocks fenced as
``pycon`` (with prompts) run in the same namespace, and must print what they show. A block fenced as ``python torch`` is
run where torch is installed. Other blocks are not run.
"""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import pkgutil
import re
import runpy
from pathlib import Path
from textwrap import dedent
from typing import Any, NamedTuple

import pytest

import margrove

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(margrove.__path__, "margrove.")
    if not module.name.endswith("._core")
)
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
EXTRAS = ("torch", "onnx", "onnxruntime")  # packages that a module may need and that need not be there
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>python|pycon)(?P<extra> torch)?[ ]*\n(?P<code>.*?)^(?P=indent)```", re.M | re.S
)


class Block(NamedTuple):
    language: str
    code: str
    line: int  # of the first line of code in the page, from 1
    extra: str = ""  # a package without which it is not run


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            found["language"],
            dedent(found["code"]),
            text.count("\n", 0, found.start("code")) + 1,
            (found["extra"] or "").strip(),
        )
        for found in FENCE.finditer(text)
    ]


def run_blocks(page: Path, blocks: list[Block]) -> None:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks:
        if block.extra and importlib.util.find_spec(block.extra) is None:
            continue
        if block.language == "python":
            # Blank lines in front, so that a traceback names the line of the page.
            exec(compile("\n" * (block.line - 1) + block.code, str(page), "exec"), namespace)
        else:
            test = doctest.DocTestParser().get_doctest(block.code, namespace, page.name, str(page), block.line - 1)
            test.globs = namespace  # the parser copies it
            run_doctest(test)


def run_doctest(test: doctest.DocTest) -> None:
    report: list[str] = []
    doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.append, clear_globs=False)
    assert not report, "".join(report)


@pytest.mark.parametrize(
    "page", [p for p in PAGES if p.is_file() and blocks_of(p)], ids=lambda p: str(p.relative_to(ROOT))
)
def test_the_code_of_a_page_runs(page):
    run_blocks(page, blocks_of(page))


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_hold(name):
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in EXTRAS:
            raise
        pytest.skip(f"{error.name} is not installed")
    for test in doctest.DocTestFinder().find(module):
        if test.examples:
            run_doctest(test)


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda p: p.name)
def test_an_example_runs(script):
    runpy.run_path(str(script), run_name="__main__")


def test_a_wrong_output_is_noticed():
    page = Path("page.md")
    with pytest.raises(AssertionError, match="Expected"):
        run_blocks(page, [Block("python", "x = 1\n", 1), Block("pycon", ">>> x + 1\n3\n", 4)])


def test_a_broken_block_is_noticed_with_its_line():
    page = Path("page.md")
    page.write_text("# Title\n\n```python\nx = 1\nx.nothing\n```\n\n```text\nnot run (\n```\n")
    with pytest.raises(AttributeError) as caught:
        run_blocks(page, blocks_of(page))
    assert caught.traceback[-1].lineno == 4  # counted from 0
