"""A report of a model: one page that anybody can read, as HTML, JSON or Markdown."""

from margrove.app.report.writing import FORMATS, write_report

__all__ = ["FORMATS", "write_report"]
