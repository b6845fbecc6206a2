"""How Sphinx builds these pages.

Formulas are written in Unicode, in code style, letter for letter as in the sources: they read the same in a page, in
``help()``, in a terminal and in a search. MathJax and KaTeX would have to come from the network or be shipped along.
"""

from __future__ import annotations

import margrove

project = "Margrove"
author = "The Margrove developers"
copyright = "2026, The Margrove developers"
version = release = margrove.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
nitpicky = False

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say more
autosummary_generate = False  # numpydoc brings autosummary along; the reference pages are written by hand
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_theme = "furo"
html_title = f"Margrove {release}"
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
html_static_path = ["_static"]
html_css_files = ["width.css"]
