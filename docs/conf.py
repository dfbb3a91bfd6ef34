"""Sphinx configuration: MyST pages, the API from docstrings, no network while building."""

from __future__ import annotations

from importlib.metadata import version as installed_version

project = "memprov"
author = "memprov contributors"
copyright = "memprov contributors"
release = installed_version("memprov")
version = release

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
myst_heading_anchors = 3
autodoc_typehints = "description"
autodoc_member_order = "bysource"

html_theme = "furo"
html_title = f"memprov {release}"
