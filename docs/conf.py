"""How Sphinx builds the site: `make docs`. The pages are plain Markdown, which reads as well where they
lie."""

from __future__ import annotations

import sys
from importlib.metadata import version as installed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "onchip"
author = "the onchip developers"
copyright = author
version = release = installed("onchip")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "navigation",
    "markdown_pages",
    "plain_docstrings",
    "public_modules",
    "commands",
    "offline",
    "titles_only",
]
exclude_patterns = ["_build", "_ext"]
suppress_warnings = ["toc.empty_glob", "myst.header"]
smartquotes = False
toc_object_entries_show_parents = "hide"
python_maximum_signature_line_length = 90

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = False  # signatures with options are not those of the source
autodoc_class_signature = "mixed"

myst_heading_anchors = 4
myst_enable_extensions = ["attrs_block", "dollarmath"]
myst_links_external_new_tab = False

html_theme = "furo"
html_title = "onchip"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_search_summary = False  # it fetches pages, which a browser refuses from disk
html_show_sourcelink = False
html_show_copyright = False
html_show_sphinx = False
html_theme_options = {
    "navigation_with_keys": True,
    "light_css_variables": {"color-brand-primary": "#0b5fa5", "color-brand-content": "#0b5fa5"},
    "dark_css_variables": {"color-brand-primary": "#6cb6ff", "color-brand-content": "#6cb6ff"},
}
pygments_style = "friendly"
pygments_dark_style = "github-dark"
copybutton_prompt_text = "$ "
copybutton_copy_empty_lines = False
