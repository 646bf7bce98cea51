"""Sphinx configuration of the documentation site: `make docs`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

from umdqn import __version__

project = "umdqn"
author = "The umdqn developers"
project_copyright = "The umdqn developers, MIT licence"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "sphinx_design",
    "umdqn_site",
]
exclude_patterns = ["_build", "_ext"]
source_suffix = {".md": "markdown"}
language = "en"
default_role = "code"
smartquotes = False
html_math_renderer = "mathml"

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header"]

autodoc_default_options = {"member-order": "bysource"}
autodoc_preserve_defaults = True
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_type_aliases = {"ArrayLike": "ArrayLike", "Checkpoint": "Checkpoint"}
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
add_module_names = False
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = "umdqn"
html_short_title = "umdqn"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/mark.svg"
html_show_sourcelink = False
html_copy_source = False
html_domain_indices = False
html_show_sphinx = False
pygments_style = "tango"
pygments_dark_style = "one-dark"
copybutton_prompt_text = "$ "
html_theme_options = {
    "light_logo": "mark.svg",
    "dark_logo": "mark.svg",
    "sidebar_hide_name": False,
    "navigation_with_keys": True,
    "light_css_variables": {
        "color-brand-primary": "#0072B2",
        "color-brand-content": "#00639C",
        "color-brand-visited": "#6A4C93",
        "font-stack": "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, "
        "'Liberation Sans', sans-serif",
        "font-stack--monospace": "ui-monospace, SFMono-Regular, Menlo, Consolas, "
        "'DejaVu Sans Mono', monospace",
    },
    "dark_css_variables": {
        "color-brand-primary": "#56B4E9",
        "color-brand-content": "#7CC6F2",
        "color-brand-visited": "#C3A5E8",
    },
}
