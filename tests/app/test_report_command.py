"""``margrove report``: what is typed, what is written, what is refused."""

from __future__ import annotations

import json
import webbrowser
from pathlib import Path

import pytest

from margrove import load
from margrove.app.options.table import Reading
from margrove.app.report import write_report
from margrove.errors import InputError, ParameterError


def test_page_is_written_beside_the_model_unless_output_is_given(run, model, flowers, folder):
    result = run("report", model, flowers)
    assert result.exit_code == 0, result.output
    assert "Wrote flowers.report.html" in result.output
    page = (folder / "flowers.report.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert 'name="generator" content="Margrove"' in page[:4096]  # distinguishes it from other pages
    assert "How &#39;kind&#39; is predicted" in page
    assert run("report", model, flowers, "-o", "other.html").exit_code == 0
    assert (folder / "other.html").read_text(encoding="utf-8") == page


def test_report_as_json(run, model, flowers, folder):
    assert run("report", model, flowers, "--format", "json").exit_code == 0
    record = json.loads((folder / "flowers.report.json").read_text(encoding="utf-8"))
    assert record["summary"]["target"] == "kind"
    assert record["summary"]["table_is_training_data"] is True
    assert record["certificate"]["holds"] is True
    assert {"quality", "what_matters", "examples", "data", "about"} <= record.keys()


def test_report_as_markdown_on_standard_output(run, model, flowers):
    result = run("report", model, flowers, "--format", "md", "-o", "-")
    assert result.exit_code == 0
    assert result.stdout.startswith("# How 'kind' is predicted\n")
    assert "## The certificate" in result.stdout


def test_size_of_a_small_report_is_printed_in_kilobytes(run, model, flowers, folder):
    small = run("report", model, flowers, "--format", "md", "-o", "p.md")
    n = (folder / "p.md").stat().st_size
    assert 1000 < n < 100_000
    assert f"Wrote p.md ({round(n / 1000)} kB)" in small.output
    large = run("report", model, flowers, "-o", "p.html")
    assert f"Wrote p.html ({(folder / 'p.html').stat().st_size / 1e6:.1f} MB)" in large.output


def test_json_has_the_path_of_the_page(run, model, flowers, folder):
    result = run("report", model, flowers, "--json")
    record = json.loads(result.stdout)
    assert record["output"] == "flowers.report.html"
    assert record["bytes"] == (folder / "flowers.report.html").stat().st_size


def test_no_file_means_the_embedded_penguins(run, folder):
    assert run("train", "--model", "tree", "--folds", "0").exit_code == 0
    assert run("report", "penguins.margrove", "--quiet").exit_code == 0
    assert (folder / "penguins.report.html").is_file()


def test_page_is_opened_on_request(run, model, flowers, folder, monkeypatch):
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    assert run("report", model, flowers).exit_code == 0
    assert opened == []
    assert run("report", model, flowers, "--open").exit_code == 0
    assert opened == [(folder / "flowers.report.html").resolve().as_uri()]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--format", "pdf"], "format is 'pdf'; it must be one of html, json, md."),
        (["--open", "-o", "-"], "--open needs an HTML page in a file"),
        (["--open", "--format", "md"], "--open needs an HTML page in a file"),
        (["--json", "-o", "-"], "--json and -o - both write to standard output"),
        (["-o", "nowhere/page.html"], "there is no folder 'nowhere'"),
        (["-o", "flowers.margrove"], "is also an input, so it is not overwritten"),
        (["-o", "flowers.csv"], "is also an input, so it is not overwritten"),
    ],
)
def test_impossible_options_are_refused_before_any_work(run, model, flowers, words, message):
    result = run("report", model, flowers, *words)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


def test_table_without_a_needed_column_is_refused(run, model, folder):
    Path("others.csv").write_text("petal,colour,kind\n1.0,red,daisy\n3.0,red,tulip\n")
    result = run("report", model, "others.csv")
    assert result.exit_code == 2
    assert "height" in result.output
    assert not (folder / "others.report.html").exists()


def test_report_on_a_table_without_a_target_shows_the_recorded_score(run, model, folder):
    Path("new.csv").write_text("petal,colour,height\n1.0,red,10\n3.0,red,31\n2.0,white,20\n")
    assert run("report", model, "new.csv", "--format", "json", "-o", "new.json").exit_code == 0
    record = json.loads(Path("new.json").read_text(encoding="utf-8"))
    assert record["summary"]["table_rows"] == 3
    assert record["quality"]["origin"] == "record"  # what the training held out, of its own table


def test_a_report_may_be_written_from_python(model, flowers, folder):
    table = Reading(flowers).labelled()
    write_report(load(model), table, folder / "page.html")
    assert (folder / "page.html").read_text(encoding="utf-8").count("<h2") > 8
    with pytest.raises(ParameterError, match="format is 'docx'"):
        write_report(load(model), table, folder / "page.docx", format="docx")
    with pytest.raises(InputError, match="cannot be written"):
        write_report(load(model), table, folder / "nowhere" / "page.html")
