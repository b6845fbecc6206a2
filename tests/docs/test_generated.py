"""What is generated is fresh, and the reference names everything public."""

from __future__ import annotations

import importlib
import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import pytest

import margrove

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
MODULES = ("data", "plots", "store")  # whose names are described as theirs


@pytest.fixture
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def repository(generate, tmp_path, monkeypatch) -> Path:
    """A repository of three pages with markers and one result; its command line is ours."""
    text = f"before\n{generate.BEGIN}\nold\n{generate.END}\nafter\n"
    for name in ("README.md", "docs/benchmarks.md", "docs/install.md", "docs/guide/messy-tables.md"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    results = tmp_path / "benchmarks" / "results"
    results.mkdir(parents=True)
    case = {"name": "100,000 × 50", "peer": "sklearn", "ours_s": 0.25, "peer_s": 2.0, "extra": [1]}
    (results / "speed.json").write_text(
        json.dumps({"cases": [case], "machine": {"cores": 2, "packages": {"numpy": "2.0"}}, "bar": "6 ×"})
    )
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    monkeypatch.setattr(generate, "RESULTS", results)
    monkeypatch.setattr(generate, "FIGURES", tmp_path / "figures")
    monkeypatch.setattr(generate, "IN_README", (("speed", "sklearn"),))
    monkeypatch.setattr(generate, "draw_figures", lambda: None)
    return tmp_path


def test_nothing_generated_is_stale(generate, capsys):
    assert generate.main(["--check"]) == 0, capsys.readouterr().out


def test_check_names_what_is_stale_and_writes_nothing(generate, repository, capsys):
    assert generate.main(["--check"]) == 1
    assert "stale: README.md" in capsys.readouterr().out
    assert "old" in (repository / "README.md").read_text()


def test_after_writing_nothing_is_stale(generate, repository):
    assert generate.main([]) == 0
    assert generate.main(["--check"]) == 0


def test_tables_are_made_of_the_results(generate, repository):
    generate.main([])
    readme = (repository / "README.md").read_text()
    assert "| speed: 100,000 × 50 | `sklearn` | 250 ms | 2 s | 8.0 × |" in readme
    assert readme.startswith("before")
    assert readme.endswith("after\n")
    page = (repository / "docs" / "benchmarks.md").read_text()
    assert "## speed" in page
    assert "Measured on cores 2, numpy 2.0." in page


def test_without_results_the_tables_stay(generate, repository):
    (repository / "benchmarks" / "results" / "speed.json").unlink()
    generate.main([])
    assert "old" in (repository / "README.md").read_text()


def test_a_page_without_markers_stays(generate, repository):
    (repository / "README.md").write_text("nothing here\n")
    generate.main([])
    assert (repository / "README.md").read_text() == "nothing here\n"


def test_results_of_other_shapes_do_no_harm(generate, repository):
    results = repository / "benchmarks" / "results"
    (results / "list.json").write_text("[1, 2]")
    (results / "empty.json").write_text('{"cases": []}')
    (results / "bare.json").write_text('{"cases": [{"case": "bare", "ours_s": 3.0}]}')
    generate.main([])
    assert "| bare: bare |  | 3 s |  |  |" in (repository / "docs" / "benchmarks.md").read_text()
    assert "bare" not in (repository / "README.md").read_text()


def test_every_command_is_on_its_page(generate):
    import typer.main

    from margrove.app.cli import app

    page = generate.command_line()
    for name in typer.main.get_command(app).commands:
        assert f"## margrove {name}\n" in page


def test_choices_of_an_option_do_not_end_its_cell(generate):
    rows = [line for line in generate.command_line().splitlines() if line.startswith("| `--")]
    assert any("best\\|simple" in row for row in rows)
    assert [row for row in rows if len(re.findall(r"(?<!\\)\|", row)) != 3] == []


def public_names() -> list[str]:
    """Every name that is for users, without the leading ``margrove.``."""
    names = []
    for name in (*margrove.__all__, "store"):
        inner = getattr(importlib.import_module(f"margrove.{name}"), "__all__", []) if name in MODULES else []
        names += [f"{name}.{each}" for each in inner] if name in MODULES else [name]
    return names


@pytest.mark.parametrize("name", public_names())
def test_every_public_name_is_in_the_reference(name):
    pages = "\n".join(path.read_text("utf-8") for path in (DOCS / "reference").glob("*.md"))
    described = set(re.findall(r"^\.\. auto\w+:: margrove\.([\w.]+)$", pages, re.M))
    # What stands under `margrove` itself is described there, once.
    assert {name, name.partition(".")[2]} & described, f"not in docs/reference: {name}"
