"""The site: ``make docs`` builds it from these pages, the docstrings and the tutorials, offline."""

import sys
from importlib.util import find_spec
from pathlib import Path

from unitmargin import __version__

sys.path[:0] = [str(Path(__file__).with_name("_extensions"))]

project = "unitmargin"
author = "The unitmargin authors"
copyright = author
version = release = __version__

extensions = [
    "accessible",
    "commands",
    "docstrings",
    "equations",
    "files",
    "myst_parser",
    "signatures",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "**/README.txt"]

suppress_warnings = ["toc.empty_glob"]
"""A page that may be there or not is named by a pattern."""

# Pages are Markdown as GitHub reads it: headings are targets, formulas stand between dollars.
myst_enable_extensions = ["dollarmath", "amsmath", "deflist"]
myst_heading_anchors = 4
myst_links_external_new_tab = False

# Docstrings.
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 80
napoleon_use_ivar = True
napoleon_use_rtype = False
napoleon_attr_annotations = False  # the signature has them, and their shapes hold stars
napoleon_custom_sections = [("Arguments of every model", "params_style")]

# One script of MathJax 3, which a package of pip brings, is copied; nothing is fetched by a page.
_mathjax = find_spec("sphinx-mathjax-offline")
if _mathjax is None or _mathjax.origin is None:
    raise ImportError('sphinx-mathjax-offline is not installed; pip install "unitmargin[docs]"')
html_static_path = ["_static", str(Path(_mathjax.origin).parent / "static/mathjax/tex-svg.js")]
mathjax_path = "tex-svg.js"
mathjax3_config = {"svg": {"scale": 0.9}}

html_theme = "furo"
html_title = "unitmargin"
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_search_summary = False  # pages that lie in files may not read each other
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b5394", "color-brand-content": "#0b5394"},
    "dark_css_variables": {"color-brand-primary": "#8ab8ff", "color-brand-content": "#8ab8ff"},
}
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"

sphinx_gallery_conf = {
    "examples_dirs": "../examples/tutorials",
    "gallery_dirs": "tutorials",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "plot_gallery": "True",
}
