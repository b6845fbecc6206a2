"""How Sphinx builds these pages; formulas become MathML, see mathml.py beside this file."""

from __future__ import annotations

import sys
from pathlib import Path

import margrove

sys.path.insert(0, str(Path(__file__).parent))

project = "Margrove"
author = "The Margrove developers"
copyright = "2026, The Margrove developers"
version = release = margrove.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc", "mathml", "offline_search"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
nitpicky = False

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_fence_as_directive = ["math"]  # as GitHub has it
myst_heading_anchors = 3

default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say more
autosummary_generate = False  # numpydoc brings autosummary along; the reference pages are written by hand
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_math_renderer = "mathml"
html_theme = "furo"
html_title = f"Margrove {release}"
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
html_static_path = ["_static"]
html_css_files = ["width.css"]
