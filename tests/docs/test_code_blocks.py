"""Nobody can break an example: the code of every page, docstring and script runs as a test.

In README.md and docs/**/*.md, blocks fenced as ``python`` are run in order, in one namespace per page; blocks fenced as
``pycon`` (with prompts) run in the same namespace, and must print what they show. Commands of ``console`` blocks run in
the same folder, as far as their files are there; what they say with ``--quiet`` is compared. A command on a file of the
user's (`USERS`) is only parsed. Blocks fenced as ``text`` are no code. A block fenced as ``python torch`` is run where
torch is installed.
"""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import pkgutil
import re
import runpy
import shlex
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from textwrap import dedent
from typing import Any, NamedTuple

import pytest
import typer.main
from typer.testing import CliRunner

import margrove
from margrove import learner as registry
from margrove.app.cli import app

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

# Files that a reader has and we have not, or models of them; all of them are told from names of ours.
USERS = {"adult", "data", "houses", "income", "new", "orders", "people", "pets", "ragged", "reviews", "titanic"}
FILE = re.compile(r"(?P<stem>[\w-]+)(\.(csv|gz|libsvm|margrove|model|parquet|onnx|html|json|md))+")
OTHER_PROGRAMS = {"jq", "zcat"}  # beside margrove and make, in pipes
LANGUAGES = {"python", "pycon", "console", "text", "math", "{eval-rst}", "{toctree}"}
# What an exported file says of itself, under names that begin as ours do.
KEYS_OF_FILES = {"certificate.holds", "certificate.sha256", "inputs", "learner", "status", "version"}
SOON = ("--budget", "5s")  # a search that has no limit of its own

FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>python|pycon|console)(?P<extra> torch)?[ ]*\n(?P<code>.*?)^(?P=indent)```",
    re.M | re.S,
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
        elif block.language == "console":
            run_console(block.code)
        else:
            test = doctest.DocTestParser().get_doctest(block.code, namespace, page.name, str(page), block.line - 1)
            test.globs = namespace  # the parser copies it
            run_doctest(test)


def run_console(code: str) -> None:
    for command, shown in commands_of(code):
        words = shlex.split(command, comments=True)
        parts = [list(part) for is_bar, part in groupby(words, lambda word: word in "|>") if not is_bar]
        files = [found for word in words if (found := FILE.fullmatch(word)) and words[words.index(word) - 1] != "-o"]
        if any(found[0] == "penguins.margrove" for found in files) and not Path("penguins.margrove").exists():
            run_command(["train", "--model", "tree"], "")  # a page may begin where another one ends
        absent = [found for found in files if not Path(found[0]).exists()]
        for found in absent:
            assert found["stem"] in USERS or ">" in words, f"{command}: nothing has made {found[0]}"
        for program, *rest in parts:
            if program == "margrove":
                check_parses(rest)
            elif program == "make":
                assert re.search(rf"^{rest[0]}:", (ROOT / "Makefile").read_text(), re.M), command
            else:
                assert program in OTHER_PROGRAMS or FILE.fullmatch(program), command
        is_ours = not absent and not USERS & set(words)  # a folder of the user's is named as its files would be
        if parts[0][0] == "margrove" and len(parts) == 1 and is_ours:
            run_command(words[1:], shown)


def commands_of(code: str) -> Iterator[tuple[str, str]]:
    """Each command with what is shown below it; a block without prompts has a command in each line."""
    if "$ " not in code:
        yield from ((line, "") for line in code.splitlines() if line.strip())
        return
    for part in re.split(r"^\$ ", code, flags=re.M)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown


def check_parses(words: list[str]) -> None:
    """Whether there are such a command and such options; --help is where they are from."""
    group: Any = typer.main.get_command(app)
    assert words[0] in group.commands, f"there is no margrove {words[0]}"
    options = {name for each in group.commands[words[0]].params for name in (*each.opts, *each.secondary_opts)}
    for word in words[1:]:
        assert not word.startswith("-") or word == "-" or word in options, f"margrove {words[0]} has no option {word}"


def run_command(words: list[str], shown: str) -> None:
    is_open = words[0] == "train" and not {"--model", "--budget"} & set(words)
    done = CliRunner().invoke(app, [*words, *(SOON if is_open else ())], catch_exceptions=False)
    assert done.exit_code == 0, f"margrove {' '.join(words)}: {done.output}"
    if "--quiet" in words:
        doctest_like = doctest.OutputChecker().check_output(shown.strip(), done.output.strip(), FLAGS)
        assert doctest_like, f"margrove {' '.join(words)} says {done.output!r}"


def run_doctest(test: doctest.DocTest) -> None:
    report: list[str] = []
    doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.append, clear_globs=False)
    assert not report, "".join(report)


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch):
    """Forget what a page or an example registers."""
    registry.learner_named("")  # loads every description
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))


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


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("$ margrove trian penguins.csv\n", "nothing has made penguins.csv"),
        ("$ margrove trian people.csv\n", "no margrove trian"),
        ("$ margrove train people.csv --modl tree\n", "has no option --modl"),
        ("$ make nothing\n", "make nothing"),
        ("$ curl somewhere\n", "curl"),
        ("$ margrove train --model tree --quiet\ntree: accuracy 12.3 %\n", "says"),
        ("$ margrove train --model trees\n", "trees"),
    ],
)
def test_a_wrong_command_is_noticed(code, message):
    with pytest.raises(AssertionError, match=message):
        run_console(code)


def test_every_block_is_of_a_language_that_is_checked_or_no_code():
    for page in PAGES:
        fences = re.findall(r"^ *```(\S+)", page.read_text(encoding="utf-8"), re.M)
        assert set(fences) <= LANGUAGES, f"{page.relative_to(ROOT)} has {set(fences) - LANGUAGES}"


def names_in(page: Path) -> set[str]:
    """Every dotted name of ours that a page mentions; `margrove.train` and the like are files and addresses."""
    text = re.sub(r"^ *```(python|pycon|console).*?^ *```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    found = re.findall(r"(?<![\w/.-])margrove((?:\.[A-Za-z_]\w*)+)", text)
    return {name.removeprefix(".") for name in found} - KEYS_OF_FILES


def is_there(name: str) -> bool:
    """Whether it is a module of ours, or an attribute of one, or of a class of one."""
    parts = name.split(".")
    for n in range(len(parts), -1, -1):
        try:
            thing: Any = importlib.import_module(".".join(("margrove", *parts[:n])))
        except ModuleNotFoundError as error:
            if error.name == "torch":  # a module of ours that needs it; nobody can look into it here
                return True
            continue
        for attribute in parts[n:]:
            if not hasattr(thing, attribute) and attribute not in getattr(thing, "__annotations__", {}):
                return False
            thing = getattr(thing, attribute, None)
        return True
    return False


@pytest.mark.parametrize("page", [p for p in PAGES if names_in(p)], ids=lambda p: str(p.relative_to(ROOT)))
def test_every_name_that_a_page_mentions_is_there(page):
    assert [name for name in sorted(names_in(page)) if not is_there(name)] == []


def test_a_name_that_is_not_there_is_noticed():
    assert is_there("svm.problem.classification")
    assert is_there("SVC.leave_one_out")
    assert not is_there("svm.problem.clasification")
    assert not is_there("nothing")
